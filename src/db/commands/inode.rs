//! inode, ablock, dblock.

use serde_json::json;

use super::number;
use crate::db::answer::{Answer, Nothing, Text};
use crate::db::command::Command;
use crate::db::session::Session;
use crate::db::types::TypeId;
use crate::error::{Error, Result};
use crate::forms::ForkKind;
use crate::geometry::{FileBlock, Ino};

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "ablock",
        alias: None,
        min: 1,
        max: Some(1),
        moves: true,
        usage: "block",
        brief: "go to a block of the current inode's attributes",
        help: "Goes to this filesystem block of the attribute fork of the current inode, counted from its start.",
        run: ablock,
    },
    Command {
        name: "dblock",
        alias: None,
        min: 1,
        max: Some(1),
        moves: true,
        usage: "block",
        brief: "go to a block of the current inode's contents",
        help: "Goes to this filesystem block of the data fork of the current inode, counted from its start. Blocks of \
               directories, symbolic links, quota files and realtime metadata are taken for what they are.",
        run: dblock,
    },
    Command {
        name: "inode",
        alias: None,
        min: 0,
        max: Some(1),
        moves: true,
        usage: "[number]",
        brief: "go to an inode, or tell which one is current",
        help: "Goes to the inode with this number, which becomes the current inode: the one that ablock, bmap, dblock and \
               other commands are about. Without a number tells which one that is.",
        run: inode,
    },
];

fn inode(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    match words.first() {
        Some(word) => {
            session.go_to_inode(Ino(number::parse(word, "number of an inode")?))?;
            Ok(Box::new(Nothing))
        }
        None => {
            let ino = session.current_inode()?;
            Ok(Text::boxed(format!("current inode number is {ino}\n"), json!({ "ino": ino.0 })))
        }
    }
}

fn ablock(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let at = FileBlock(number::parse(&words[0], "block of a file")?);
    session.note_inode(session.current_inode()?)?;
    session.go_to_file_block(ForkKind::Attr, at, TypeId::Attr)?;
    Ok(Box::new(Nothing))
}

fn dblock(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let at = FileBlock(number::parse(&words[0], "block of a file")?);
    session.note_inode(session.current_inode()?)?;
    let inode = session.open_inode()?;
    let ty = session.data_type(&inode);
    let ty = ty.ok_or_else(|| Error::Usage(format!("inode {} is no file with blocks", inode.ino)))?;
    session.go_to_file_block(ForkKind::Data, at, ty)?;
    Ok(Box::new(Nothing))
}
