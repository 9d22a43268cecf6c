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
            write_entry(self.out, log, 0, &mut self.line)?;
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
        self.separate()?;
        if !self.json {
            return write_entry(self.out, entry, 0, &mut self.line);
        }
        serde_json::to_writer(&mut *self.out, entry).map_err(io::Error::from)
    }

    fn separate(&mut self) -> io::Result<()> {
        self.entries += 1;
        match (self.json, self.entries) {
            (false, _) => Ok(()),
            (true, 1) => self.out.write_all(b"\n"),
            (true, _) => self.out.write_all(b",\n"),
        }
    }

    /// Writes an entry, and then what belongs to it while `children` makes it: it may be much.
    ///
    /// # Errors
    /// Those of the writer, and of `children`.
    pub fn entry_with(
        &mut self,
        entry: Entry,
        name: &'static str,
        children: impl FnOnce(&mut Children<'_, 'a>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.separate()?;
        let entry = entry.with(name, Vec::new());
        if self.json {
            self.line.clear();
            serde_json::to_writer(&mut self.line, &entry)?;
            // the end of the list and of the object
            self.line.truncate(self.line.len() - 2);
            self.out.write_all(&self.line)?;
        } else {
            write_entry(self.out, &entry, 0, &mut self.line)?;
        }
        children(&mut Children { output: self, count: 0 })?;
        if self.json { self.out.write_all(b"]}") } else { Ok(()) }
    }

    /// Ends the output.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn end(&mut self) -> io::Result<()> {
        if self.json { self.out.write_all(b"\n]}\n") } else { Ok(()) }
    }
}

/// Takes what belongs to an entry.
pub struct Children<'o, 'a> {
    output: &'o mut Output<'a>,
    count: u64,
}

impl Children<'_, '_> {
    /// Writes one of them.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        let Output { out, line, json, .. } = &mut *self.output;
        self.count += 1;
        if !*json {
            return write_entry(*out, entry, 1, line);
        }
        if self.count > 1 {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut **out, entry).map_err(io::Error::from)
    }
}
