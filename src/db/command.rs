//! The rows of the command table.

use super::answer::Answer;
use super::commands::tables;
use super::session::Session;
use crate::error::{Error, Result};

/// What a command does: moves the session, and answers. The words are those behind the command's name.
pub type Run = fn(&mut Session, &[String]) -> Result<Box<dyn Answer>>;

/// A command.
#[derive(Clone, Copy)]
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// Its short name.
    pub alias: Option<&'static str>,
    /// Fewest words behind the name.
    pub min: usize,
    /// Most words behind the name; `None` is any number.
    pub max: Option<usize>,
    /// Whether `push` may run it, once the position is saved: those that move.
    pub moves: bool,
    /// Its words, as help shows them: `[-a] [agno]`.
    pub usage: &'static str,
    /// One line about it.
    pub brief: &'static str,
    /// All about it.
    pub help: &'static str,
    /// What it does.
    pub run: Run,
}

/// All commands, by name.
pub fn all() -> Vec<&'static Command> {
    let mut commands: Vec<&Command> = tables().iter().flat_map(|table| table.iter()).collect();
    commands.sort_by_key(|command| command.name);
    commands
}

/// The command with this name or short name.
///
/// # Errors
/// `Usage` when there is none.
pub fn find(name: &str) -> Result<&'static Command> {
    let mut commands = tables().iter().flat_map(|table| table.iter());
    let found = commands.find(|command| command.name == name || command.alias == Some(name));
    found.ok_or_else(|| Error::Usage(format!("there is no command {name}; help lists them")))
}

impl Command {
    /// Runs the command, if the number of words is right.
    ///
    /// # Errors
    /// `Usage` if it is not; else the command's own.
    pub fn run(&self, session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
        if words.len() < self.min || self.max.is_some_and(|max| words.len() > max) {
            let usage = if self.usage.is_empty() { "no arguments" } else { self.usage };
            return Err(Error::Usage(format!("{} takes {usage}, not {} arguments", self.name, words.len())));
        }
        (self.run)(session, words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_used_once_and_described() {
        let mut names: Vec<&str> = Vec::new();
        for command in all() {
            names.push(command.name);
            names.extend(command.alias);
            assert!(command.max.is_none_or(|max| max >= command.min), "{}", command.name);
            assert!(!command.brief.is_empty() && !command.help.is_empty(), "{}", command.name);
            assert!(!command.brief.ends_with('.'), "{}", command.name);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn commands_are_found_by_both_names() {
        assert!(find("quit").is_ok_and(|command| command.name == "quit"));
        assert!(find("q").is_ok_and(|command| command.name == "quit"));
        assert!(find("qui").is_err());
    }
}
