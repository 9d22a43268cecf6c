//! source, log.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::db::answer::{Answer, Nothing, Text};
use crate::db::command::Command;
use crate::db::session::Session;
use crate::error::{Error, Result};

/// Files that a session reads at most: one that reads itself comes to an end.
const MOST_FILES: u32 = 1000;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "log",
        alias: None,
        min: 0,
        max: Some(2),
        moves: false,
        usage: "[stop|start file]",
        brief: "write all output to a file, too",
        help: "`log start FILE` adds all output that follows to the end of the file, until `log stop`. Alone it tells \
               which file that is.",
        run: log,
    },
    Command {
        name: "source",
        alias: None,
        min: 1,
        max: Some(1),
        moves: false,
        usage: "file",
        brief: "run the commands in a file",
        help: "Runs the commands in the file, one a line; a line that ends with a backslash goes on in the next.",
        run: source,
    },
];

fn log(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match (words.as_slice(), &session.log) {
        ([], Some(path)) => {
            let name = path.display().to_string();
            Ok(Text::boxed(format!("logging to {name}\n"), json!({ "file": name })))
        }
        ([], None) => Ok(Text::boxed("no log file\n", json!({ "file": Value::Null }))),
        (["stop"], Some(_)) => {
            session.log = None;
            Ok(Box::new(Nothing))
        }
        (["stop"], None) => Err(Error::Usage("there is no log to stop".to_owned())),
        (["start", _], Some(path)) => Err(Error::Usage(format!("output goes to {} already", path.display()))),
        (["start", name], None) => {
            session.log = Some(PathBuf::from(name));
            Ok(Box::new(Nothing))
        }
        _ => Err(Error::Usage("log takes `start FILE`, `stop` or nothing".to_owned())),
    }
}

fn source(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let cannot = |reason: String| Error::Usage(format!("cannot read {}: {reason}", words[0]));
    if session.sourced >= MOST_FILES {
        return Err(cannot(format!("{MOST_FILES} files were read already")));
    }
    session.sourced += 1;
    let text = std::fs::read_to_string(&words[0]).map_err(|error| cannot(error.to_string()))?;
    let text = text.replace("\\\n", " ");
    // the next one to run is the last one
    session.script.extend(text.lines().rev().map(str::to_owned));
    Ok(Box::new(Nothing))
}
