//! Runs commands and writes what they answer.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use serde_json::{Value, json};

use super::prompt::Prompt;
use crate::cli::output::{complain, standard_output};
use crate::db::{Answer, Completion, Session, interpret, line};

/// Runs commands and writes what they answer.
pub(super) struct Driver {
    session: Session,
    name: String,
    json: bool,
    /// The file that `log` names, opened.
    log: Option<(PathBuf, File)>,
    failed: bool,
}

impl Driver {
    /// Runs commands in `session`; `name` is that of the program in the prompt and in errors.
    pub(super) fn new(session: Session, name: String, json: bool) -> Self {
        Driver { session, name, json, log: None, failed: false }
    }

    /// The exit code, when all is done.
    pub(super) fn code(&self) -> ExitCode {
        if self.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    pub(super) fn lines(&mut self, lines: &[String]) -> anyhow::Result<()> {
        let commands: Vec<_> = lines.iter().map(|line| line::words(line)).collect();
        self.commands(&commands)
    }

    pub(super) fn commands(&mut self, commands: &[Vec<String>]) -> anyhow::Result<()> {
        for words in commands {
            self.command(words)?;
            if self.session.done {
                break;
            }
        }
        Ok(())
    }

    /// Runs the lines of the standard input.
    pub(super) fn standard_input(&mut self) -> anyhow::Result<()> {
        let mut input = io::stdin().lock();
        let mut begun = String::new();
        while !self.session.done {
            let mut bytes = Vec::new();
            if input.read_until(b'\n', &mut bytes).context("cannot read commands")? == 0 {
                break;
            }
            let text = String::from_utf8_lossy(&bytes);
            let text = text.trim_end_matches('\n');
            if let Some(text) = text.strip_suffix('\\') {
                begun += text;
                begun.push(' ');
                continue;
            }
            let line = std::mem::take(&mut begun) + text;
            self.command(&line::words(&line))?;
        }
        Ok(())
    }

    /// Runs lines that are typed at a prompt. That one of them failed is no failure of the session.
    pub(super) fn prompt(&mut self) -> anyhow::Result<()> {
        let mut prompt = Prompt::new(&self.name)?;
        while !self.session.done {
            let Some(line) = prompt.line(Completion::of(&self.session))? else { break };
            self.command(&line::words(&line))?;
        }
        self.failed = false;
        Ok(())
    }

    /// Runs one command, and those of the scripts that it reads. What it has to complain about is written at once; only
    /// output that cannot be written ends the tool.
    fn command(&mut self, words: &[String]) -> anyhow::Result<()> {
        self.single(words)?;
        while !self.session.done {
            let Some(line) = self.session.script.pop() else { break };
            self.single(&line::words(&line))?;
        }
        Ok(())
    }

    fn single(&mut self, words: &[String]) -> anyhow::Result<()> {
        match interpret(&mut self.session, words) {
            Ok(Some(answer)) if self.json => {
                self.write(&Object(json!({ "format": 1, "command": words, "result": answer.json() })))?;
            }
            Ok(Some(answer)) => self.write(&*answer)?,
            Ok(None) => {}
            Err(error) => {
                self.failed = true;
                complain(&self.name, &error.to_string());
                if self.json {
                    self.write(&Object(json!({ "format": 1, "command": words, "error": error.to_string() })))?;
                }
            }
        }
        self.follow_log();
        Ok(())
    }

    fn write(&mut self, answer: &dyn Answer) -> anyhow::Result<()> {
        let out = standard_output();
        let mut out = Tee { out, log: self.log.as_mut().map(|(_, file)| file) };
        answer.write_text(&mut out)?;
        out.flush()?;
        Ok(())
    }

    /// Opens or closes the log as the session says.
    fn follow_log(&mut self) {
        if self.session.log.as_ref() == self.log.as_ref().map(|(path, _)| path) {
            return;
        }
        self.log = None;
        let Some(path) = self.session.log.clone() else { return };
        match OpenOptions::new().create(true).append(true).open(&path) {
            Ok(file) => self.log = Some((path, file)),
            Err(error) => {
                self.failed = true;
                self.session.log = None;
                complain(&self.name, &format!("cannot open {}: {error}", path.display()));
            }
        }
    }
}

/// A line of JSON.
struct Object(Value);

impl Answer for Object {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, &self.0)?;
        out.write_all(b"\n")
    }

    fn json(&self) -> Value {
        self.0.clone()
    }
}

/// An output that goes to a file, too.
struct Tee<'a, W: Write> {
    out: W,
    log: Option<&'a mut File>,
}

impl<W: Write> Write for Tee<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.out.write(bytes)?;
        if let Some(log) = &mut self.log {
            log.write_all(&bytes[..len])?;
        }
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
