//! addr, type, push, pop, stack, forward, back, ring.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{follow, number};
use crate::db::answer::{Answer, Nothing, Text};
use crate::db::command::{Command, find};
use crate::db::position::Position;
use crate::db::ring::Visited;
use crate::db::session::{Frame, Session};
use crate::db::types::{Family, TypeId};
use crate::error::{DeviceRole, Error, Result};
use crate::geometry::{Daddr, Geometry};

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "addr",
        alias: Some("a"),
        min: 0,
        max: Some(1),
        moves: true,
        usage: "[field]",
        brief: "go to what a field is the address of, or tell where one is",
        help: "Goes to the block or inode whose address stands in the field, as in `addr rootino` or \
               `addr u3.bmx[2].startblock`. Without a field tells where one is.",
        run: addr,
    },
    Command {
        name: "back",
        alias: Some("b"),
        min: 0,
        max: Some(0),
        moves: false,
        usage: "",
        brief: "go to the position visited before",
        help: "Goes to the position in the ring that was visited before the current one.",
        run: back,
    },
    Command {
        name: "forward",
        alias: Some("f"),
        min: 0,
        max: Some(0),
        moves: false,
        usage: "",
        brief: "go to the position visited after",
        help: "Goes to the position in the ring that was visited after the current one: undoes `back`.",
        run: forward,
    },
    Command {
        name: "pop",
        alias: None,
        min: 0,
        max: Some(0),
        moves: false,
        usage: "",
        brief: "go back to the position saved last",
        help: "Takes the topmost position from the stack; the one below becomes the current one.",
        run: pop,
    },
    Command {
        name: "push",
        alias: None,
        min: 0,
        max: None,
        moves: false,
        usage: "[command]",
        brief: "save the position, then run a command",
        help: "Saves the current position on the stack, where `pop` finds it, and runs a command that moves, as in \
               `push addr rootino`.",
        run: push,
    },
    Command {
        name: "ring",
        alias: None,
        min: 0,
        max: Some(1),
        moves: false,
        usage: "[index]",
        brief: "list the positions visited last, or go to one",
        help: "Lists the last 20 positions that were visited, the newest first and the current one with an asterisk; with an \
               index goes to that one.",
        run: ring,
    },
    Command {
        name: "stack",
        alias: None,
        min: 0,
        max: Some(0),
        moves: false,
        usage: "",
        brief: "list the saved positions",
        help: "Lists the positions on the stack, the current one first.",
        run: stack,
    },
    Command {
        name: "type",
        alias: None,
        min: 0,
        max: Some(1),
        moves: false,
        usage: "[type]",
        brief: "take the block for one of another type, or list the types",
        help: "Takes the block that one looks at for one of the given type. Without a type tells the current one, and \
               lists all that this filesystem can have.",
        run: set_type,
    },
];

fn addr(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    if let Some(word) = words.first() {
        follow::follow(session, word)?;
        return Ok(Box::new(Nothing));
    }
    let frame = session.stack().last().cloned().unwrap_or_default();
    let text = describe("current", &frame, session.geometry(), session.family());
    Ok(Text::boxed(text, data(&frame, session.family())))
}

fn stack(session: &mut Session, _words: &[String]) -> Result<Box<dyn Answer>> {
    let (geometry, family) = (session.geometry(), session.family());
    let mut text = String::new();
    let mut list = Vec::new();
    for (index, frame) in (1..).zip(session.stack()).collect::<Vec<_>>().into_iter().rev() {
        text += &describe(&format!("{index}: "), frame, geometry, family);
        list.push(data(frame, family));
    }
    Ok(Text::boxed(text, list))
}

/// Filesystem block of a disk address; beyond the end of the device too.
fn fsb_of(geometry: &Geometry, daddr: Daddr) -> u64 {
    let block = daddr.0 / u64::from(geometry.basic_blocks_per_block());
    let agblocks = u64::from(geometry.agblocks);
    ((block / agblocks) << geometry.agblklog) | (block % agblocks)
}

fn describe(tag: &str, frame: &Frame, geometry: &Geometry, family: Family) -> String {
    let mut text = format!("{tag}\n");
    let ino = |ino: Option<crate::geometry::Ino>| ino.map_or_else(|| "-1".to_owned(), |ino| ino.to_string());
    let position = frame.position.as_ref();
    let (offset, len) = position.map_or((0, 0), |position| (position.byte_offset(), position.len));
    let (daddr, basic_blocks) = position.map_or((Daddr(0), 0), |position| (position.daddr, position.basic_blocks));
    let unit = match position.map(|position| position.device) {
        Some(DeviceRole::Data) => "fsbno",
        Some(DeviceRole::Log) => "logbno",
        Some(DeviceRole::Realtime) => "rtbno",
        None => "fsbno?",
    };
    let plural = if basic_blocks == 1 { "" } else { "s" };
    let fsb = fsb_of(geometry, daddr);
    let _ = writeln!(text, "\tbyte offset {offset}, length {len}");
    let _ = writeln!(text, "\tbuffer block {daddr} ({unit} {fsb}), {basic_blocks} bb{plural}");
    if let Some(fragments) = position.map(|position| &position.fragments).filter(|fragments| !fragments.is_empty()) {
        text += "\tblock map";
        for fragment in fragments {
            let _ = write!(text, " {}:{}", fragment.daddr, fragment.len / 512);
        }
        text.push('\n');
    }
    let ty = position.and_then(|position| position.ty.name(family)).unwrap_or("none");
    let _ = writeln!(text, "\tinode {}, dir inode {}, type {ty}", ino(frame.ino), ino(frame.directory));
    text
}

fn data(frame: &Frame, family: Family) -> Value {
    let position = frame.position.as_ref();
    let mut value = json!({
        "type": position.and_then(|position| position.ty.name(family)),
        "ino": frame.ino.map(|ino| ino.0),
        "directory": frame.directory.map(|ino| ino.0),
    });
    if let Some(position) = position {
        value["device"] = match position.device {
            DeviceRole::Data => "data".into(),
            DeviceRole::Log => "log".into(),
            DeviceRole::Realtime => "realtime".into(),
        };
        value["byte_offset"] = position.byte_offset().into();
        value["length"] = position.len.into();
        value["daddr"] = position.daddr.0.into();
        value["basic_blocks"] = position.basic_blocks.into();
        let pieces = position.fragments.iter().map(|piece| json!({ "daddr": piece.daddr.0, "bytes": piece.len }));
        value["fragments"] = pieces.collect();
    }
    value
}

fn push(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let command = words.first().map(|name| find(name)).transpose()?;
    if let Some(command) = command.filter(|command| !command.moves) {
        return Err(Error::Usage(format!("{} does not move; push runs only commands that do", command.name)));
    }
    session.push();
    match command {
        Some(command) => command.run(session, &words[1..]),
        None => Ok(Box::new(Nothing)),
    }
}

fn pop(session: &mut Session, _words: &[String]) -> Result<Box<dyn Answer>> {
    session.pop()?;
    Ok(Box::new(Nothing))
}

fn back(session: &mut Session, _words: &[String]) -> Result<Box<dyn Answer>> {
    let visited = session.ring.back().cloned();
    visit_again(session, visited, "there is no earlier position")
}

fn forward(session: &mut Session, _words: &[String]) -> Result<Box<dyn Answer>> {
    let visited = session.ring.forward().cloned();
    visit_again(session, visited, "there is no later position")
}

/// Goes to the buffer of a visited position. Like in xfs_db, the object is its beginning even where it was not, and the
/// current inode stays what it is.
fn visit_again(session: &mut Session, visited: Option<Visited>, none: &str) -> Result<Box<dyn Answer>> {
    let Visited { position, .. } = visited.ok_or_else(|| Error::Usage(none.to_owned()))?;
    let Position { ty, device, daddr, basic_blocks, fragments, .. } = position;
    let again = match fragments.len() {
        0 => session.read(ty, device, daddr, basic_blocks)?,
        _ => session.read_fragments(ty, device, fragments)?,
    };
    session.show(again);
    Ok(Box::new(Nothing))
}

fn ring(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    if let Some(word) = words.first() {
        let index = usize::try_from(number::parse(word, "index")?).unwrap_or(usize::MAX);
        let visited = session.ring.go(index).cloned();
        return visit_again(session, visited, &format!("the ring has no position {word}"));
    }
    let (geometry, family) = (session.geometry(), session.family());
    let mut text = String::from("      type    bblock  bblen    fsbno     inode\n");
    let mut list = Vec::new();
    for (index, current, Visited { position, ino }) in session.ring.newest_first() {
        let name = position.ty.name(family).unwrap_or_default();
        let short: String = name.chars().take(7).collect();
        let mark = if current { '*' } else { ' ' };
        let number = ino.map_or_else(|| "-1".to_owned(), |ino| ino.to_string());
        let fsb = fsb_of(geometry, position.daddr);
        let _ = writeln!(
            text,
            "{mark}{index:2}: {short:<7} {:8} {:5} {fsb:8} {number:>9}",
            position.daddr.0, position.basic_blocks
        );
        list.push(json!({
            "index": index,
            "current": current,
            "type": name,
            "daddr": position.daddr.0,
            "basic_blocks": position.basic_blocks,
            "ino": ino.map(|ino| ino.0),
        }));
    }
    if list.is_empty() {
        text = "no entries in location ring.\n".to_owned();
    }
    Ok(Text::boxed(text, list))
}

fn set_type(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let family = session.family();
    let current = session.position().map(|position| position.ty);
    let Some(word) = words.first() else { return Ok(list_types(current, family)) };
    let ty =
        TypeId::find(word, family).ok_or_else(|| Error::Usage(format!("there is no type {word}; type lists them")))?;
    if current != Some(ty) {
        session.set_type(ty)?;
    }
    Ok(Box::new(Nothing))
}

/// All types. Those that xfs_db leaves out by mistake are left out of the text: the ones before a type that the
/// filesystem does not have.
fn list_types(current: Option<TypeId>, family: Family) -> Box<dyn Answer> {
    let current = current.and_then(|ty| ty.name(family));
    let mut text = match current {
        Some(name) => format!("current type is \"{name}\"\n"),
        None => "no current type\n".to_owned(),
    };
    text += "\n supported types are:\n ";
    let names: Vec<Option<&str>> = TypeId::ALL.iter().map(|ty| ty.name(family)).collect();
    let mut listed = 0;
    for (index, name) in names.iter().enumerate() {
        match (name, names.get(index + 1)) {
            (Some(name), Some(Some(_))) => {
                listed += 1;
                text += &format!("{name}, ");
                text += if listed % 8 == 0 { "\n " } else { "" };
            }
            (Some(name), None) => text += &format!("{name}\n"),
            _ => {}
        }
    }
    Text::boxed(text, json!({ "current": current, "types": names.iter().flatten().collect::<Vec<_>>() }))
}
