//! What is shown, as data.

use super::heading::Heading;
use crate::geometry::Lsn;
use crate::ondisk::RawUuid;

/// Fields in the order in which they are shown.
pub type Fields = Vec<(&'static str, Value)>;

/// What a field holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number.
    Number(u64),
    /// A number that may be negative.
    Signed(i64),
    /// A number that is rather a pattern: flags without names, ids, addresses in memory.
    Hex(u64),
    /// A mode, in octal digits.
    Mode(u16),
    /// Part of a whole, in percent, with the number of which it is.
    Percent(f64),
    /// A place in the log: cycle and block.
    Lsn(Lsn),
    /// A block of the data device, with group and block in it where they are known.
    Block(u64, Option<(u32, u32)>),
    /// Bytes of a buffer: offset and length.
    Range(usize, usize),
    /// A point in time: seconds and nanoseconds since 1970.
    Time(i64, u32),
    /// A UUID.
    Uuid(RawUuid),
    /// One of a few words.
    Word(&'static str),
    /// Some of a few words.
    Words(Vec<&'static str>),
    /// Any text.
    Text(String),
    /// Bytes that may be text: a name.
    Name(Vec<u8>),
    /// Bytes, shown in hexadecimal; in text behind all other fields.
    Bytes(Vec<u8>),
    /// Values of the same kind.
    List(Vec<Value>),
    /// Some values of an array: the index of the first, and the values.
    Slice(usize, Vec<Value>),
    /// Fields of its own.
    Group(Fields),
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Number(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Value::Number(u64::from(number))
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Self {
        Value::Number(u64::from(number))
    }
}

impl From<u8> for Value {
    fn from(number: u8) -> Self {
        Value::Number(u64::from(number))
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Value::Number(number as u64)
    }
}

/// Something that is shown: in text a line, or some; in JSON an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What it is.
    pub kind: &'static str,
    /// What its line begins with.
    pub heading: Heading,
    /// Its fields.
    pub fields: Fields,
    /// What belongs to it, with the name that JSON gives the list.
    pub children: (&'static str, Vec<Entry>),
}

impl Entry {
    /// An entry whose line begins with `heading`.
    pub fn new(kind: &'static str, heading: impl Into<Heading>, fields: Fields) -> Self {
        Entry { kind, heading: heading.into(), fields, children: ("", Vec::new()) }
    }

    /// The same with fields for JSON alone, because the text of the heading has them already.
    pub fn named(mut self, named: Fields) -> Self {
        if let Heading::Text(_, fields) = &mut self.heading {
            *fields = named;
        }
        self
    }

    /// The same with what belongs to it.
    pub fn with(mut self, name: &'static str, children: Vec<Entry>) -> Self {
        self.children = (name, children);
        self
    }
}
