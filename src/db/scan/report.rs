//! What a scan found, as an answer.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::message::{Links, Message};
use crate::db::answer::Answer;

/// What a scan found, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanReport {
    /// The messages.
    pub messages: Vec<Message>,
    /// Findings, told or not.
    pub errors: u64,
    /// Findings that kept parts of the filesystem from being scanned.
    pub serious: u64,
    /// What each line begins with.
    pub prefix: Vec<u8>,
}

impl Answer for ScanReport {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut links = Links::default();
        self.messages.iter().try_for_each(|message| message.write(out, &self.prefix, &mut links))
    }

    fn json(&self) -> Value {
        let mut text = Vec::new();
        let plain = ScanReport { prefix: Vec::new(), ..self.clone() };
        // a vector takes everything
        let _ = plain.write_text(&mut text);
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        json!({ "errors": self.errors, "serious": self.serious, "messages": lines })
    }
}
