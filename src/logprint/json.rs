//! Entries as JSON.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::entry::{Entry, Fields, Value};

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_none(),
            Value::Bool(yes) => serializer.serialize_bool(*yes),
            Value::Number(number) => serializer.serialize_u64(*number),
            Value::Signed(number) => serializer.serialize_i64(*number),
            Value::Hex(number) => serializer.collect_str(&format_args!("{number:#x}")),
            Value::Mode(mode) => serializer.collect_str(&format_args!("{mode:#o}")),
            Value::Percent(part) => serializer.serialize_f64((part * 10.0).round() / 10.0),
            Value::Lsn(lsn) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("cycle", &lsn.cycle())?;
                map.serialize_entry("block", &lsn.block())?;
                map.end()
            }
            Value::Block(block, None) => serializer.serialize_u64(*block),
            Value::Block(block, Some((group, within))) => {
                let mut map = serializer.serialize_map(Some(3))?;
                map.serialize_entry("fsblock", block)?;
                map.serialize_entry("group", group)?;
                map.serialize_entry("block", within)?;
                map.end()
            }
            Value::Range(offset, len) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("offset", offset)?;
                map.serialize_entry("bytes", len)?;
                map.end()
            }
            Value::Time(seconds, nanoseconds) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("seconds", seconds)?;
                map.serialize_entry("nanoseconds", nanoseconds)?;
                map.end()
            }
            Value::Uuid(uuid) => serializer.collect_str(&uuid::Uuid::from_bytes(*uuid)),
            Value::Word(word) => serializer.serialize_str(word),
            Value::Words(words) => serializer.collect_seq(words),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Name(bytes) => serializer.collect_str(&bytes.escape_ascii()),
            Value::Bytes(bytes) => serializer.collect_str(&Hex(bytes)),
            Value::List(values) => serializer.collect_seq(values),
            Value::Slice(first, values) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("first", first)?;
                map.serialize_entry("values", values)?;
                map.end()
            }
            Value::Group(fields) => serialize_fields(fields, serializer),
        }
    }
}

/// Bytes in hexadecimal, without anything between them.
struct Hex<'a>(&'a [u8]);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn serialize_fields<S: Serializer>(fields: &Fields, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().map(|(name, value)| (name, value)))
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.kind)?;
        for (name, value) in self.heading.fields().iter().chain(&self.fields) {
            map.serialize_entry(name, value)?;
        }
        if !self.children.0.is_empty() {
            map.serialize_entry(self.children.0, &self.children.1)?;
        }
        map.end()
    }
}
