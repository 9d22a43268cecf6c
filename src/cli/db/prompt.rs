//! The prompt: lines typed on a terminal, with history and completion.

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};

use crate::db::{Completion, line};

/// Reads lines from the terminal.
pub(super) struct Prompt {
    editor: Editor<Words, FileHistory>,
    text: String,
}

impl Prompt {
    /// A prompt that begins with the program's name.
    ///
    /// # Errors
    /// Those of the terminal.
    pub(super) fn new(program: &str) -> anyhow::Result<Self> {
        let config = Config::builder().max_history_size(1000)?.auto_add_history(true).build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Words::default()));
        Ok(Prompt { editor, text: format!("{program}> ") })
    }

    /// The next line; `None` at the end. `known` are the words that can be completed now. A line that was given up is
    /// empty.
    ///
    /// # Errors
    /// Those of the terminal.
    pub(super) fn line(&mut self, known: Completion) -> anyhow::Result<Option<String>> {
        if let Some(words) = self.editor.helper_mut() {
            words.known = known;
        }
        match self.editor.readline(&self.text) {
            Ok(line) => Ok(Some(line)),
            Err(ReadlineError::Interrupted) => Ok(Some(String::new())),
            Err(ReadlineError::Eof) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Completes words.
#[derive(Default)]
struct Words {
    known: Completion,
}

impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _context: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..pos).unwrap_or_default();
        let begun =
            if typed.ends_with([' ', '\t']) { "" } else { typed.rsplit([' ', '\t']).next().unwrap_or_default() };
        let before = line::words(&typed[..typed.len() - begun.len()]);
        Ok((typed.len() - begun.len(), self.known.candidates(&before, begun)))
    }
}

impl Helper for Words {}
impl Highlighter for Words {}
impl Validator for Words {}
impl Hinter for Words {
    type Hint = String;
}
