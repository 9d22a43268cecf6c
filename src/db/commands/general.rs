//! Commands that are not about the image: help, echo, quit.

use serde_json::json;

use crate::db::answer::{Answer, Nothing, Text};
use crate::db::command::{Command, all, find};
use crate::db::session::Session;
use crate::error::Result;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "echo",
        alias: None,
        min: 0,
        max: None,
        moves: false,
        usage: "[text]...",
        brief: "print the arguments",
        help: "Prints each argument with a blank behind it: marks in the output of a script.",
        run: echo,
    },
    Command {
        name: "help",
        alias: Some("?"),
        min: 0,
        max: Some(1),
        moves: false,
        usage: "[command]",
        brief: "list the commands, or tell about one",
        help: "Without an argument lists all commands, one a line; with the name of one, tells all about it.",
        run: help,
    },
    Command {
        name: "quit",
        alias: Some("q"),
        min: 0,
        max: Some(0),
        moves: false,
        usage: "",
        brief: "end the session",
        help: "Ends the session. Nothing needs to be saved: the image is only read.",
        run: quit,
    },
];

fn echo(_session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let text: String = words.iter().map(|word| format!("{word} ")).collect();
    Ok(Text::boxed(text + "\n", json!(words)))
}

fn quit(session: &mut Session, _words: &[String]) -> Result<Box<dyn Answer>> {
    session.done = true;
    Ok(Box::new(Nothing))
}

fn help(_session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let describe = |command: &Command| {
        let alias = command.alias.map(|alias| format!(" (or {alias})")).unwrap_or_default();
        let usage = if command.usage.is_empty() { String::new() } else { format!(" {}", command.usage) };
        format!("{}{alias}{usage} -- {}\n", command.name, command.brief)
    };
    let data = |command: &Command| {
        json!({
            "name": command.name,
            "alias": command.alias,
            "usage": command.usage,
            "brief": command.brief,
        })
    };
    if let Some(name) = words.first() {
        let command = find(name)?;
        let mut value = data(command);
        value["help"] = command.help.into();
        return Ok(Text::boxed(format!("{}\n{}\n", describe(command), command.help), value));
    }
    let commands = all();
    let text: String = commands.iter().map(|command| describe(command)).collect();
    let list: Vec<_> = commands.iter().map(|command| data(command)).collect();
    Ok(Text::boxed(text + "\nhelp COMMAND tells all about one.\n", list))
}
