//! What a command has to say.

use std::io::{self, Write};

use serde_json::Value;

use crate::report::name::escape;

/// What a command has to say, as text and as data. Both are made when they are asked for, so that large answers stream.
pub trait Answer {
    /// Writes the text, which is that of xfs_db.
    ///
    /// # Errors
    /// Those of `out`.
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()>;

    /// The same as data.
    fn json(&self) -> Value;
}

/// The command has nothing to say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Answer for Nothing {
    fn write_text(&self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn json(&self) -> Value {
        Value::Null
    }
}

/// A name or another string of bytes as data: text with escapes for what is none.
pub fn bytes_value(bytes: &[u8]) -> Value {
    Value::from(escape(bytes))
}

/// Bytes up to the first zero: what C shows of a string.
pub(in crate::db) fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// An answer that is ready, and need not be text.
#[derive(Clone, Debug)]
pub struct Bytes {
    /// The bytes to be written.
    pub bytes: Vec<u8>,
    /// The same as data.
    pub value: Value,
}

impl Bytes {
    /// What a command returns to say this.
    pub fn boxed(bytes: Vec<u8>, value: impl Into<Value>) -> Box<dyn Answer> {
        Box::new(Bytes { bytes, value: value.into() })
    }
}

impl Answer for Bytes {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.bytes)
    }

    fn json(&self) -> Value {
        self.value.clone()
    }
}

/// An answer that is short enough to be ready.
#[derive(Clone, Debug)]
pub struct Text {
    /// The text, with the line feeds that belong to it.
    pub text: String,
    /// The same as data.
    pub value: Value,
}

impl Text {
    /// An answer with this text and data.
    pub fn new(text: impl Into<String>, value: impl Into<Value>) -> Self {
        Text { text: text.into(), value: value.into() }
    }

    /// The same as what a command returns.
    pub fn boxed(text: impl Into<String>, value: impl Into<Value>) -> Box<dyn Answer> {
        Box::new(Self::new(text, value))
    }
}

impl Answer for Text {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.text.as_bytes())
    }

    fn json(&self) -> Value {
        self.value.clone()
    }
}
