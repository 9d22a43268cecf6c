//! crc.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::options::Options;
use super::print;
use crate::db::answer::Answer;
use crate::db::command::Command;
use crate::db::field::{Node, Shape, first_of, write_nodes};
use crate::db::position::Position;
use crate::db::session::Session;
use crate::db::types::{Body, body};
use crate::error::{Error, Result};
use crate::geometry::Geometry;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "crc",
    alias: None,
    min: 0,
    max: Some(1),
    moves: false,
    usage: "[-v]",
    brief: "tell whether the CRC of the current block is right",
    help: "Prints the CRC of the block that one looks at, and whether it is that of the contents. The options -i and -r of \
           xfs_db, which write another one, are refused: the image is only read.",
    run: crc,
}];

fn crc(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let geometry = session.geometry();
    if !geometry.features.has_crc() {
        return Err(Error::Usage("blocks of this filesystem have no CRCs".to_owned()));
    }
    let options = Options::parse(words, "irv")?;
    if options.has('i') || options.has('r') {
        return Err(Error::Usage("the image is only read: its CRCs cannot be changed".to_owned()));
    }
    let position = session.require_position()?;
    let object = print::object(position, geometry);
    let name = position.ty.name(session.family()).unwrap_or_default();
    let Some(Body::Fields(format)) = body(position.ty, session.family()) else {
        return Err(Error::Usage(format!("blocks of type {name} have no fields")));
    };
    let found = first_of(format.rows().unwrap_or_default(), |shape| matches!(shape, Shape::Crc), &object, 0);
    let node = found.ok_or_else(|| Error::Usage(format!("blocks of type {name} have no CRC")))?;
    Ok(Box::new(Crc { position: position.clone(), geometry: geometry.clone(), node }))
}

/// The field of the CRC.
struct Crc {
    position: Position,
    geometry: Geometry,
    node: Node,
}

impl Answer for Crc {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"Verifying CRC:\n")?;
        write_nodes(out, std::slice::from_ref(&self.node), &print::object(&self.position, &self.geometry), "")
    }

    fn json(&self) -> Value {
        let object = print::object(&self.position, &self.geometry);
        let field = self.node.innermost();
        json!({ "value": object.number(field.offset, field.size(&object)), "state": object.crc.word() })
    }
}
