//! The headers of allocation groups: sb, agf, agi, agfl.

use super::number;
use crate::db::answer::{Answer, Nothing};
use crate::db::command::Command;
use crate::db::session::Session;
use crate::db::types::TypeId;
use crate::error::{Error, Result};
use crate::geometry::AgNumber;
use crate::ondisk::{RawAgf, RawAgfl, RawAgi};

macro_rules! header {
    ($name:literal, $brief:literal, $help:literal, $run:ident) => {
        Command {
            name: $name,
            alias: None,
            min: 0,
            max: Some(1),
            moves: true,
            usage: "[agno]",
            brief: $brief,
            help: $help,
            run: $run,
        }
    };
}

pub(super) const COMMANDS: &[Command] = &[
    header!(
        "agf",
        "go to the free space header of a group",
        "Goes to the AGF of the given allocation group, or of the group that one is in: roots and levels of the free space, reverse mapping and reference count btrees, and counters.",
        agf
    ),
    header!(
        "agfl",
        "go to the free list of a group",
        "Goes to the AGFL of the given allocation group, or of the group that one is in: blocks kept for its btrees.",
        agfl
    ),
    header!(
        "agi",
        "go to the inode header of a group",
        "Goes to the AGI of the given allocation group, or of the group that one is in: roots and levels of the inode btrees, counters, and the lists of unlinked inodes.",
        agi
    ),
    header!(
        "sb",
        "go to the superblock of a group",
        "Goes to the superblock of the given allocation group, or of the group that one is in; that of group 0 is the primary one.",
        sb
    ),
];

fn sb(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    go(session, words, TypeId::Sb, 0)
}

fn agf(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    go(session, words, TypeId::Agf, RawAgf::SECTOR)
}

fn agi(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    go(session, words, TypeId::Agi, RawAgi::SECTOR)
}

fn agfl(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    go(session, words, TypeId::Agfl, RawAgfl::SECTOR)
}

/// Goes to sector number `sector` of the group that is named, else of the current one, else of the first.
fn go(session: &mut Session, words: &[String], ty: TypeId, sector: u32) -> Result<Box<dyn Answer>> {
    let agno = match words.first() {
        Some(word) => {
            let number = u32::try_from(number::parse(word, "number of a group")?).unwrap_or(u32::MAX);
            Some(AgNumber(number)).filter(|agno| agno.0 < session.geometry().agcount).ok_or_else(|| {
                Error::Usage(format!("there is no group {word}; the last one is {}", session.geometry().agcount - 1))
            })?
        }
        None => session.agno.unwrap_or_default(),
    };
    let geometry = session.geometry();
    let daddr = geometry.ag_header_daddr(agno, sector);
    let daddr = daddr.ok_or_else(|| Error::Usage(format!("there is no group {agno}")))?;
    let basic_blocks = u64::from(geometry.sectsize / 512);
    session.go(ty, daddr, basic_blocks)?;
    session.agno = Some(agno);
    Ok(Box::new(Nothing))
}
