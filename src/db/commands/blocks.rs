//! Going to a block by its address: daddr, fsblock, logblock, rtblock, rtextent, rtsb, dquot.

use serde_json::json;

use super::number;
use super::options::Options;
use crate::db::answer::{Answer, Nothing, Text};
use crate::db::command::Command;
use crate::db::position::Position;
use crate::db::session::Session;
use crate::db::types::TypeId;
use crate::error::{DeviceRole, Error, Result};
use crate::forms::{ForkKind, QuotaKind, map_file_block, quota_file};
use crate::geometry::{Daddr, FileBlock, FsBlock, Geometry, RtBlock};
use crate::ondisk::{OnDisk, RawDquotBlock};

macro_rules! block {
    ($name:literal, $min:literal, $max:literal, $usage:literal, $brief:literal, $help:expr, $run:ident) => {
        Command {
            name: $name,
            alias: None,
            min: $min,
            max: Some($max),
            moves: true,
            usage: $usage,
            brief: $brief,
            help: $help,
            run: $run,
        }
    };
}

pub(super) const COMMANDS: &[Command] = &[
    block!(
        "daddr",
        0,
        2,
        "[-l|-r] [address]",
        "go to a disk address, or tell the current one",
        "Goes to this address, in units of 512 bytes, on the data device; with -l on the external log device, with -r on \
         the realtime device. Without an address tells the current one.",
        daddr
    ),
    block!(
        "dquot",
        1,
        2,
        "[-g|-p|-u] id",
        "go to the quota record of a user, group or project",
        "Goes to the quota record of the user with this id, with -g of the group, with -p of the project.",
        dquot
    ),
    block!(
        "fsblock",
        0,
        1,
        "[block]",
        "go to a filesystem block, or tell the current one",
        "Goes to this filesystem block: number of the group and block in it, as extents have it. Without one tells the \
         current one.",
        fsblock
    ),
    block!(
        "logblock",
        0,
        1,
        "[block]",
        "go to a block of the log, or tell the current one",
        "Goes to this block of the log, internal or external, counted from its start. Without one tells the current one.",
        logblock
    ),
    block!(
        "rtblock",
        0,
        1,
        "[block]",
        "go to a realtime block, or tell the current one",
        "Goes to this realtime block, as extents of realtime files have it. Without one tells the current one.",
        rtblock
    ),
    block!(
        "rtextent",
        0,
        1,
        "[extent]",
        "go to a realtime extent, or tell the current one",
        "Goes to this realtime extent, counted from the start of the realtime device. Without one tells the current one.",
        rtextent
    ),
    block!(
        "rtsb",
        0,
        0,
        "",
        "go to the realtime superblock",
        "Goes to the superblock of the realtime device, which filesystems with realtime groups have.",
        rtsb
    ),
];

/// The position, if it is on this device.
fn on_device(session: &Session, device: DeviceRole, name: &str) -> Result<Daddr> {
    let position = session.position().filter(|position| position.device == device);
    let position = position.ok_or_else(|| Error::Usage(format!("the current position is not on the {name} device")))?;
    Ok(current_daddr(position))
}

fn current_daddr(position: &Position) -> Daddr {
    Daddr(position.byte_offset() / 512)
}

fn bad(word: &str, what: &str) -> Error {
    Error::Usage(format!("there is no {what} {word}"))
}

fn told(text: String, key: &str, value: u64) -> Result<Box<dyn Answer>> {
    Ok(Text::boxed(text, json!({ key: value })))
}

fn daddr(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let options = Options::parse(words, "lr")?;
    let geometry = session.geometry();
    let (device, blocks) = match options.last_of("lr") {
        Some('r') => (DeviceRole::Realtime, geometry.realtime.blocks),
        Some(_) => (DeviceRole::Log, u64::from(geometry.log.blocks)),
        None => (DeviceRole::Data, geometry.dblocks),
    };
    if device == DeviceRole::Log && geometry.log.start.is_some() {
        return Err(Error::Usage("the log is not on a device of its own".to_owned()));
    }
    let Some(word) = options.operands.first() else {
        let position = session.position();
        let daddr = position.map_or(0, |position| current_daddr(position).0);
        let name = match position.map(|position| position.device) {
            Some(DeviceRole::Data) => "datadev",
            Some(DeviceRole::Log) => "logdev",
            Some(DeviceRole::Realtime) => "rtdev",
            None => "current",
        };
        return told(format!("{name} daddr is {daddr}\n"), "daddr", daddr);
    };
    let daddr = number::parse(word, "disk address")?;
    let end = geometry.blocks_to_basic_blocks(blocks).unwrap_or(u64::MAX);
    if daddr >= end || options.operands.len() > 1 {
        return Err(bad(word, "disk address"));
    }
    let basic_blocks = u64::from(geometry.sectsize / 512);
    let position = session.read(TypeId::Data, device, Daddr(daddr), basic_blocks)?;
    session.set_position(position);
    Ok(Box::new(Nothing))
}

fn fsblock(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let Some(word) = words.first() else {
        let daddr = on_device(session, DeviceRole::Data, "data")?;
        let fsb = session.geometry().daddr_fsb(daddr);
        let fsb = fsb.ok_or_else(|| Error::Usage("the current position is behind the last block".to_owned()))?;
        return told(format!("current fsblock is {fsb}\n"), "fsblock", fsb.0);
    };
    let fsb = FsBlock(number::parse(word, "filesystem block")?);
    let daddr = session.geometry().fsb_daddr(fsb).ok_or_else(|| bad(word, "filesystem block"))?;
    session.go(TypeId::Data, daddr, session.basic_blocks(1))?;
    Ok(Box::new(Nothing))
}

fn logblock(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let geometry = session.geometry();
    let log = &geometry.log;
    // where the log begins, in blocks from the start of its device
    let start =
        log.start.and_then(|fsb| Some(geometry.fsb_daddr(fsb)?.0 / basic_blocks_per_block(geometry))).unwrap_or(0);
    let device = if log.start.is_some() { DeviceRole::Data } else { DeviceRole::Log };
    let Some(word) = words.first() else {
        let position = session.position().filter(|position| position.device == device);
        // like xfs_db, a place inside of a block of an external log counts as the next block
        let round = if log.start.is_some() { u64::div_euclid } else { u64::div_ceil };
        let block = position.map(|position| round(current_daddr(position).0, basic_blocks_per_block(geometry)));
        let block = block.and_then(|block| block.checked_sub(start)).filter(|block| *block < u64::from(log.blocks));
        let block = block.ok_or_else(|| Error::Usage("the current position is not in the log".to_owned()))?;
        return told(format!("current logblock is {block}\n"), "logblock", block);
    };
    let block = number::parse(word, "block of the log")?;
    if block >= u64::from(log.blocks) {
        return Err(bad(word, "block of the log"));
    }
    let daddr =
        geometry.blocks_to_basic_blocks(start + block).map(Daddr).ok_or_else(|| bad(word, "block of the log"))?;
    let position = session.read(TypeId::Data, device, daddr, session.basic_blocks(1))?;
    session.set_position(position);
    Ok(Box::new(Nothing))
}

fn basic_blocks_per_block(geometry: &Geometry) -> u64 {
    u64::from(geometry.basic_blocks_per_block())
}

fn rtblock(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let Some(word) = words.first() else {
        let daddr = on_device(session, DeviceRole::Realtime, "realtime")?;
        let rtb = session.geometry().daddr_rtb(daddr);
        let rtb = rtb.ok_or_else(|| Error::Usage("the current position is behind the last block".to_owned()))?;
        return told(format!("current rtblock is {rtb}\n"), "rtblock", rtb.0);
    };
    let rtb = RtBlock(number::parse(word, "realtime block")?);
    let daddr = session.geometry().rtb_daddr(rtb).ok_or_else(|| bad(word, "realtime block"))?;
    session.go_realtime(TypeId::Data, daddr, session.basic_blocks(1))?;
    Ok(Box::new(Nothing))
}

fn rtextent(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let geometry = session.geometry();
    let blocks = geometry.realtime.extent_blocks;
    let Some(word) = words.first() else {
        let daddr = on_device(session, DeviceRole::Realtime, "realtime")?;
        // like xfs_db, a place inside of a block counts as the next block
        let extent = daddr.0.div_ceil(basic_blocks_per_block(geometry)) / u64::from(blocks.max(1));
        return told(format!("current rtextent is {extent}\n"), "rtextent", extent);
    };
    let extent = number::parse(word, "realtime extent")?;
    if extent >= geometry.realtime.extents {
        return Err(bad(word, "realtime extent"));
    }
    let daddr = extent.checked_mul(u64::from(blocks)).and_then(|block| geometry.blocks_to_basic_blocks(block));
    let daddr = daddr.map(Daddr).ok_or_else(|| bad(word, "realtime extent"))?;
    session.go_realtime(TypeId::Data, daddr, session.basic_blocks(blocks))?;
    Ok(Box::new(Nothing))
}

fn rtsb(session: &mut Session, _words: &[String]) -> Result<Box<dyn Answer>> {
    if !session.geometry().features.has_rtgroups() {
        return Err(Error::Usage("there is no realtime superblock without realtime groups".to_owned()));
    }
    session.agno = None;
    session.go_realtime(TypeId::Rtsb, Daddr(0), session.basic_blocks(1))?;
    Ok(Box::new(Nothing))
}

fn dquot(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let options = Options::parse(words, "gpu")?;
    let kind = match options.last_of("gpu") {
        Some('g') => QuotaKind::Group,
        Some('p') => QuotaKind::Project,
        _ => QuotaKind::User,
    };
    let [word] = options.operands.as_slice() else {
        return Err(Error::Usage(format!("dquot takes one {} id", kind.name())));
    };
    let id = u32::try_from(number::parse(word, "id")?).map_err(|_| bad(word, "id"))?;
    let inode = quota_file(session.image.cache(), kind)?;
    let inode = inode.ok_or_else(|| Error::Usage(format!("there are no {} quotas", kind.name())))?;
    // xfs_db looks at the inode twice on the way
    session.note_inode(inode.ino)?;
    session.note_inode(inode.ino)?;
    let per_block = session.geometry().quota.dquots_per_block.max(1);
    let at = FileBlock(u64::from(id / per_block));
    let fork = inode.fork(ForkKind::Data)?;
    let pieces = fork.map(|fork| map_file_block(session.image.cache(), &fork, at, 1)).transpose()?.flatten();
    let piece = pieces.as_ref().and_then(|pieces| pieces.first());
    let daddr = piece.and_then(|piece| session.geometry().fsb_daddr(piece.start));
    let daddr = daddr.ok_or_else(|| Error::Usage(format!("there is no {} quota record {id}", kind.name())))?;
    let mut position = session.read(TypeId::Dqblk, DeviceRole::Data, daddr, session.basic_blocks(1))?;
    position.offset = usize::try_from(id % per_block).unwrap_or(0) * RawDquotBlock::SIZE;
    position.len = RawDquotBlock::SIZE;
    session.set_position(position);
    Ok(Box::new(Nothing))
}
