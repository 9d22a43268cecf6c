//! Where entries go.

use std::io::{self, Write};

use super::entry::Entry;
use super::text::write_entry;

/// Version of the JSON. Fields may be added without a new one.
const FORMAT: u32 = 1;

/// Writes entries, as text or as JSON.
pub struct Output<'a> {
    out: &'a mut dyn Write,
    json: bool,
    entries: u64,
    /// Memory for a line.
    line: Vec<u8>,
}

impl<'a> Output<'a> {
    /// Writes to `out`.
    pub fn new(out: &'a mut dyn Write, json: bool) -> Self {
        Output { out, json, entries: 0, line: Vec::new() }
    }

    /// Writes what stands before all entries.
    ///
    /// # Errors
    /// Those of the writer, as of all methods.
    pub fn begin(&mut self, log: &Entry) -> io::Result<()> {
        if !self.json {
            write_entry(self.out, log, &mut self.line)?;
            return writeln!(self.out);
        }
        write!(self.out, "{{\"format\":{FORMAT},\"log\":")?;
        serde_json::to_writer(&mut *self.out, log)?;
        write!(self.out, ",\"entries\":[")
    }

    /// Writes an entry.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        self.entries += 1;
        if !self.json {
            return write_entry(self.out, entry, &mut self.line);
        }
        self.out.write_all(if self.entries > 1 { b",\n" } else { b"\n" })?;
        serde_json::to_writer(&mut *self.out, entry).map_err(io::Error::from)
    }

    /// Ends the output.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn end(&mut self) -> io::Result<()> {
        if self.json { self.out.write_all(b"\n]}\n") } else { Ok(()) }
    }
}
