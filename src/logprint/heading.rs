//! What the lines of entries begin with, which JSON has as fields. Those of which a journal has millions are kept as they
//! are, and made text or fields where one or the other is wanted.

use std::borrow::Cow;

use super::entry::{Fields, Value};
use super::text::{push_formatted, push_number, push_str};

/// What the line of an entry begins with.
#[derive(Clone, Debug, PartialEq)]
pub enum Heading {
    /// Any text, and the fields that it stands for.
    Text(Cow<'static, str>, Fields),
    /// The name of a structure.
    Structure(&'static str),
    /// An operation: which one of its record, and what it is.
    Operation(usize, Operation),
    /// An item.
    Item {
        /// The name of its type.
        kind: Option<&'static str>,
        /// The number of its type.
        number: u16,
        /// The lengths of its regions, in bytes.
        regions: Vec<usize>,
    },
}

/// What an operation is.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// It cannot be understood.
    Unknown,
    /// One of a few words.
    Word(&'static str),
    /// A transaction header.
    Header {
        /// The type of the transaction.
        kind: u32,
        /// The regions that it announces.
        regions: u32,
    },
    /// A region of an item.
    Region {
        /// The name of the item's type.
        item: &'static str,
        /// Which one, from 1 on.
        region: usize,
        /// Of how many.
        count: usize,
    },
}

impl From<&'static str> for Heading {
    fn from(text: &'static str) -> Self {
        Heading::Text(text.into(), Fields::new())
    }
}

impl From<String> for Heading {
    fn from(text: String) -> Self {
        Heading::Text(text.into(), Fields::new())
    }
}

impl From<Cow<'static, str>> for Heading {
    fn from(text: Cow<'static, str>) -> Self {
        Heading::Text(text, Fields::new())
    }
}

impl Heading {
    /// Appends its text.
    pub(super) fn push(&self, line: &mut Vec<u8>) {
        match self {
            Heading::Text(text, _) => push_str(line, text),
            Heading::Structure(name) => {
                push_str(line, name);
                push_str(line, ":");
            }
            Heading::Operation(index, operation) => {
                push_str(line, "op ");
                push_number(line, *index);
                push_str(line, ": ");
                operation.push(line);
            }
            Heading::Item { kind: Some(name), .. } => push_str(line, name),
            Heading::Item { kind: None, number, .. } => push_formatted(line, format_args!("item {number:#x}")),
        }
    }

    /// The fields that JSON has for it.
    pub(super) fn fields(&self) -> Cow<'_, [(&'static str, Value)]> {
        Cow::Owned(match self {
            Heading::Text(_, fields) => return Cow::Borrowed(fields),
            Heading::Structure(name) => vec![("structure", Value::Word(name))],
            Heading::Operation(index, operation) => {
                [("index", Value::from(*index))].into_iter().chain(operation.fields()).collect()
            }
            Heading::Item { kind, number, regions } => vec![
                ("type", kind.map_or(Value::Null, Value::Word)),
                ("number", Value::Hex(u64::from(*number))),
                ("regions", Value::List(regions.iter().map(|len| Value::from(*len)).collect())),
            ],
        })
    }
}

impl Operation {
    fn push(&self, line: &mut Vec<u8>) {
        match self {
            Operation::Unknown => push_str(line, "?"),
            Operation::Word(word) => push_str(line, word),
            Operation::Header { kind, regions } => {
                push_formatted(line, format_args!("transaction header, type {kind}, {regions} regions"));
            }
            Operation::Region { item, region, count } => {
                push_str(line, item);
                push_str(line, ", region ");
                push_number(line, *region);
                push_str(line, " of ");
                push_number(line, *count);
            }
        }
    }

    fn fields(&self) -> Fields {
        match self {
            Operation::Unknown => vec![("is", Value::Null)],
            Operation::Word(word) => vec![("is", Value::Word(word))],
            Operation::Header { kind, regions } => {
                vec![
                    ("is", Value::Word("header")),
                    ("type", Value::from(*kind)),
                    ("region_count", Value::from(*regions)),
                ]
            }
            Operation::Region { item, region, count } => vec![
                ("is", Value::Word("region")),
                ("item", Value::Word(item)),
                ("region", Value::from(*region)),
                ("region_count", Value::from(*count)),
            ],
        }
    }
}
