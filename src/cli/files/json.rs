//! Output for programs: one object with a version, and a list of records that is written as it comes.

use std::io::Write;

use serde_json::{Map, Value, json};

use crate::files::name::escape;
use crate::files::{Stat, time};
use crate::ondisk::Timestamp;

use super::words;

/// The version of the output: it changes when a field is removed or gets another meaning.
pub(super) const FORMAT: u32 = 1;

/// A list of records in an object. [`Records::finish`] must be called in the end.
pub(super) struct Records<'o> {
    out: &'o mut dyn Write,
    count: u64,
}

impl<'o> Records<'o> {
    /// Begins the object of `command`, whose list is called `list`.
    pub(super) fn begin(out: &'o mut dyn Write, command: &str, list: &str) -> std::io::Result<Self> {
        write!(out, "{{\"format\":{FORMAT},\"command\":\"{command}\",\"{list}\":[")?;
        Ok(Records { out, count: 0 })
    }

    /// Writes a record.
    pub(super) fn put(&mut self, record: &Value) -> std::io::Result<()> {
        self.out.write_all(if self.count == 0 { b"\n" } else { b",\n" })?;
        self.count += 1;
        serde_json::to_writer(&mut *self.out, record).map_err(std::io::Error::from)
    }

    /// Ends the list and the object.
    pub(super) fn finish(self) -> std::io::Result<()> {
        writeln!(self.out, "\n]}}")
    }
}

/// A path for programs: escaped, as it is taken.
pub(super) fn path(path: &[u8]) -> Value {
    Value::String(escape(path))
}

/// A point in time.
pub(super) fn time(time: Timestamp) -> Value {
    json!({ "seconds": time.seconds, "nanoseconds": time.nanoseconds, "utc": time::show(time) })
}

/// What an inode says of the file at `at`, with the target of a symbolic link.
pub(super) fn stat(at: &[u8], stat: &Stat, target: Option<&[u8]>) -> Value {
    let mut record = Map::new();
    let mut put = |name: &str, value: Value| record.insert(name.to_owned(), value);
    put("path", path(at));
    put("inode", stat.ino.0.into());
    put("type", words::kind(stat.file_type).into());
    put("mode", format!("{:o}", stat.mode()).into());
    put("links", stat.nlink.into());
    put("uid", stat.uid.into());
    put("gid", stat.gid.into());
    put("project", stat.project.into());
    put("size", stat.size.into());
    put("allocated", stat.allocated.into());
    put("atime", time(stat.atime));
    put("mtime", time(stat.mtime));
    put("ctime", time(stat.ctime));
    put("crtime", stat.crtime.map_or(Value::Null, time));
    put("device", stat.device.map_or(Value::Null, |device| json!({ "major": device.major, "minor": device.minor })));
    put("target", target.map_or(Value::Null, path));
    put("flags", stat.flags.names().collect::<Vec<_>>().into());
    put("generation", stat.generation.into());
    put("extents", stat.extents.into());
    put("attribute_extents", stat.attribute_extents.into());
    Value::Object(record)
}
