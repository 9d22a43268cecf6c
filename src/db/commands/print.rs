//! print.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::db::answer::Answer;
use crate::db::command::Command;
use crate::db::field::{Expression, Node, Object, Row, all, find, json::string_of, object_of, values_of, write_nodes};
use crate::db::position::Position;
use crate::db::session::Session;
use crate::db::types::{Body, body};
use crate::error::{Error, Result};
use crate::geometry::Geometry;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "print",
    alias: Some("p"),
    min: 0,
    max: None,
    moves: false,
    usage: "[field]...",
    brief: "print fields of the current block",
    help: "Prints all fields of the block that one looks at, or those that are named. A field in a structure is named behind \
           a dot, an element of an array by its index in brackets, several by the first and the last: core.mode, \
           u3.bmx[0-3].startblock, recs[1].\nBlocks without fields are printed as bytes.",
    run: print,
}];

/// Prints fields of the current block.
///
/// # Errors
/// `Usage` when there are none of these names.
pub(super) fn print(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let position = session.require_position()?;
    let geometry = session.geometry();
    let object = object(position, geometry);
    let body = body(position.ty, session.family()).unwrap_or(Body::Opaque);
    Ok(match body {
        Body::Fields(format) => {
            let rows = format.rows().unwrap_or_default();
            let shown =
                if words.is_empty() { Shown::All(all(rows, &object, 0)?) } else { named(rows, &object, words)? };
            Box::new(Fields { position: position.clone(), geometry: geometry.clone(), shown })
        }
        Body::Text => Box::new(Raw { position: position.clone(), form: Form::Text }),
        Body::Dump => Box::new(Raw { position: position.clone(), form: Form::Dump }),
        Body::Block => Box::new(Raw { position: position.clone(), form: Form::Block }),
        Body::Opaque => {
            let name = position.ty.name(session.family()).unwrap_or_default();
            return Err(Error::Usage(format!("blocks of type {name} cannot be printed; type data shows their bytes")));
        }
    })
}

/// The fields' object at a position.
pub(super) fn object<'a>(position: &'a Position, geometry: &'a Geometry) -> Object<'a> {
    Object { bytes: position.bytes(), geometry, crc: position.crc }
}

fn named(rows: &'static [Row], object: &Object<'_>, words: &[String]) -> Result<Shown> {
    let mut found = Vec::new();
    for word in words {
        let expression = Expression::parse(word)?;
        let nodes = find(rows, &expression, object, 0)?;
        found.push((expression, nodes));
    }
    Ok(Shown::Named(found))
}

/// Which fields are shown.
enum Shown {
    All(Vec<Node>),
    Named(Vec<(Expression, Vec<Node>)>),
}

/// Fields of a block.
struct Fields {
    position: Position,
    geometry: Geometry,
    shown: Shown,
}

impl Answer for Fields {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let object = object(&self.position, &self.geometry);
        match &self.shown {
            // the words that scripts know; the name of what is shown would stand before them
            Shown::All(nodes) if nodes.is_empty() => out.write_all(b" = Unrecognized metadata or type mismatch\n"),
            Shown::All(nodes) => write_nodes(out, nodes, &object, ""),
            Shown::Named(found) => found.iter().try_for_each(|(_, nodes)| write_nodes(out, nodes, &object, "")),
        }
    }

    fn json(&self) -> Value {
        let object = object(&self.position, &self.geometry);
        match &self.shown {
            Shown::All(nodes) => object_of(nodes, &object),
            Shown::Named(found) => {
                let fields = found.iter().map(|(expression, nodes)| {
                    let nested = std::iter::successors(expression.child.as_deref(), |child| child.child.as_deref());
                    (expression.text(), values_of(nodes, nested.count(), &object))
                });
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }
}

/// How bytes are shown.
#[derive(Clone, Copy)]
enum Form {
    /// In quotes, up to the first zero.
    Text,
    /// 16 a line, in hexadecimal form and as characters.
    Dump,
    /// 32 a line, in hexadecimal form.
    Block,
}

/// The bytes of a block.
struct Raw {
    position: Position,
    form: Form,
}

impl Answer for Raw {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let bytes = self.position.bytes();
        match self.form {
            Form::Text => {
                out.write_all(b"\"")?;
                out.write_all(until_zero(bytes))?;
                out.write_all(b"\"\n")
            }
            Form::Dump => write_lines(out, bytes, 16, write_dump),
            Form::Block => write_lines(out, bytes, 32, write_groups),
        }
    }

    fn json(&self) -> Value {
        let bytes = self.position.bytes();
        match self.form {
            Form::Text => json!({ "text": string_of(until_zero(bytes)) }),
            Form::Dump | Form::Block => {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                json!({ "bytes": hex })
            }
        }
    }
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Lines of `width` bytes with their offsets, in as many digits as the last one needs, but at most four.
fn write_lines(
    out: &mut dyn Write,
    bytes: &[u8],
    width: usize,
    line: fn(&mut dyn Write, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let last = bytes.len().saturating_sub(1) / width * width;
    let digits = match last {
        ..0x10 => 1,
        0x10..0x100 => 2,
        0x100..0x1000 => 3,
        _ => 4,
    };
    for (chunk, offset) in bytes.chunks(width).zip((0..).step_by(width)) {
        write!(out, "{offset:0digits$x}:")?;
        line(out, chunk)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn write_groups(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    for group in bytes.chunks(4) {
        out.write_all(b" ")?;
        group.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
    }
    Ok(())
}

fn write_dump(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(b"  ")?;
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02x} "))?;
    out.write_all(b" ")?;
    let shown: Vec<u8> = bytes.iter().map(|byte| if byte.is_ascii_alphanumeric() { *byte } else { b'.' }).collect();
    out.write_all(&shown)
}
