//! Running a command that was typed.

use super::answer::Answer;
use super::command;
use super::session::Session;
use crate::error::Result;

/// Runs the command that `words` are, with the name first. No words are no command.
///
/// # Errors
/// `Usage` when there is no such command; else the command's own.
pub fn interpret(session: &mut Session, words: &[String]) -> Result<Option<Box<dyn Answer>>> {
    let Some((name, rest)) = words.split_first() else { return Ok(None) };
    command::find(name)?.run(session, rest).map(Some)
}
