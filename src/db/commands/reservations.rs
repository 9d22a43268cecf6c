//! What is kept in reserve: agresv, rgresv, logres, untorn_write_max (xfsprogs `db/info.c`, `db/logformat.c`).

use serde_json::{Value, json};

use super::header_block;
use super::number;
use super::options::Options;
use crate::btree::{Step, Tree, walk};
use crate::db::answer::{Answer, Nothing, Text};
use crate::db::command::Command;
use crate::db::session::Session;
use crate::error::{Error, Result};
use crate::forms::{RtGroupFile, rtgroup_file};
use crate::geometry::log_minimum::{atomic_write_log_space, largest_reservation};
use crate::geometry::reservation::{ReservationInputs, Reservations};
use crate::geometry::{AgBlock, AgNumber, BtreeKind, Geometry, RgNumber};

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "agresv",
        alias: None,
        min: 0,
        max: None,
        moves: false,
        usage: "[agno]...",
        brief: "show what groups keep in reserve for their btrees",
        help: "Shows for each allocation group, or each that is named: its length, its free blocks, the blocks that its btrees of reference counts, free inodes and reverse mappings may come to need, and those that they have.",
        run: agresv,
    },
    Command {
        name: "rgresv",
        alias: None,
        min: 0,
        max: None,
        moves: false,
        usage: "[rgno]...",
        brief: "show what is kept in reserve for the btrees of realtime groups",
        help: "Shows for each realtime group, or each that is named: blocks and free blocks of the data device, the blocks that the group's btrees may come to need, and those that they have.",
        run: rgresv,
    },
    Command {
        name: "logres",
        alias: None,
        min: 0,
        max: Some(0),
        moves: false,
        usage: "",
        brief: "show how much log each kind of transaction reserves",
        help: "Shows bytes of log, number of steps and flags of each kind of transaction in the kernel's order, and the largest reservation as the smallest size of a log counts it.",
        run: logres,
    },
    Command {
        name: "untorn_write_max",
        alias: None,
        min: 0,
        max: None,
        moves: false,
        usage: "-l BYTES | -b BLOCKS",
        brief: "show how large an atomic write can be",
        help: "Shows, for writes that are atomic because they are made out of place:\n  -b BLOCKS  how much log one of so many blocks reserves\n  -l BYTES   how many blocks a reservation of so much log allows",
        run: untorn_write_max,
    },
];

/// The groups that are named, below `count`; all without a name. What is no group is a problem.
fn chosen(words: &[String], count: u32, what: &str) -> Vec<Result<u32>> {
    if words.is_empty() {
        return (0..count).map(Ok).collect();
    }
    let parse = |word: &String| {
        let number = number::parse(word, "number of a group")?;
        let number = u32::try_from(number).ok().filter(|number| *number < count);
        number.ok_or_else(|| Error::Usage(format!("there is no {what} {word}")))
    };
    words.iter().map(parse).collect()
}

/// Blocks that are wanted, and those that are there.
#[derive(Clone, Copy, Debug, Default)]
struct Reserve {
    ask: u64,
    used: u64,
}

fn agresv(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let (mut text, mut values, mut problems) = (String::new(), Vec::<Value>::new(), Vec::new());
    for agno in chosen(words, session.geometry().agcount, "group") {
        match agno.and_then(|agno| group(session, AgNumber(agno))) {
            Ok((line, value)) => {
                text += &line;
                values.push(value);
            }
            Err(error) => problems.push(error),
        }
    }
    session.settle(problems, values.is_empty())?;
    Ok(Text::boxed(text, values))
}

fn group(session: &Session, agno: AgNumber) -> Result<(String, Value)> {
    let geometry = session.geometry();
    let agf = header_block::agf(session, agno)?;
    let mut reserve = Reserve::default();
    let length = agf.length.get();
    let without_log = |blocks: u32| {
        u64::from(if geometry.ag_contains_log(agno) { blocks.wrapping_sub(geometry.log.blocks) } else { blocks })
    };
    let room = without_log(length);
    if geometry.features.has_reflink() {
        reserve.ask += geometry.btree(BtreeKind::Refcountbt).blocks_for_records(room);
        reserve.used += u64::from(agf.refcount_blocks.get());
    }
    if geometry.features.has_finobt() {
        let inodes = without_log(geometry.ag_blocks(agno).unwrap_or(0)) * u64::from(geometry.inodes.per_block);
        reserve.ask += geometry.btree(BtreeKind::Finobt).blocks_for_records(inodes / 64);
        reserve.used += finobt_blocks(session, agno)?;
    }
    if geometry.features.has_rmapbt() {
        reserve.ask += (room / 100).max(geometry.btree(BtreeKind::Rmapbt).blocks_for_records(room));
        reserve.used += u64::from(agf.rmap_blocks.get());
    }
    let free = u64::from(agf.freeblks.get()) + u64::from(agf.flcount.get());
    let short = reserve.ask.saturating_sub(reserve.used) > free;
    let Reserve { ask, used } = reserve;
    let mark = if short { " <not enough space>" } else { "" };
    let text = format!("AG {agno}: length: {length} free: {free} reserved: {ask} used: {used}{mark}\n");
    let value = json!({
        "group": agno.0, "length": length, "free": free, "reserved": ask, "used": used, "enough": !short,
    });
    Ok((text, value))
}

/// Blocks of the btree of free inodes: as the AGI counts them, else counted.
fn finobt_blocks(session: &Session, agno: AgNumber) -> Result<u64> {
    let agi = header_block::agi(session, agno)?;
    if session.geometry().features.has_inobtcount() {
        return Ok(u64::from(agi.fblocks.get()));
    }
    let tree = Tree::of_group(BtreeKind::Finobt, agno, AgBlock(agi.free_root.get()), agi.free_level.get());
    let budget = u64::from(session.geometry().agblocks);
    let walked = walk(session.image.cache(), &tree, budget, &mut |_| Ok(Step::Continue))?;
    session.warn_of(&walked.verdict);
    Ok(walked.blocks)
}

fn rgresv(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let count = session.geometry().realtime.groups.map_or(0, |groups| groups.count);
    if count == 0 && words.is_empty() {
        return Ok(Box::new(Nothing));
    }
    let (mut text, mut values, mut problems) = (String::new(), Vec::<Value>::new(), Vec::new());
    for rgno in chosen(words, count, "realtime group") {
        match rgno.and_then(|rgno| realtime_group(session, RgNumber(rgno))) {
            Ok((line, value)) => {
                text += &line;
                values.push(value);
            }
            Err(error) => problems.push(error),
        }
    }
    session.settle(problems, values.is_empty())?;
    Ok(Text::boxed(text, values))
}

/// What the btrees of a realtime group of full size may come to need.
fn realtime_ask(geometry: &Geometry) -> u64 {
    let Some(groups) = geometry.realtime.groups else { return 0 };
    let mut ask = 0;
    if geometry.features.has_rtrmapbt() {
        let blocks = u64::from(groups.blocks);
        ask += (blocks / 100).max(geometry.btree(BtreeKind::Rtrmapbt).blocks_for_records(blocks));
    }
    if geometry.features.has_rtreflink() {
        ask += geometry.btree(BtreeKind::Rtrefcountbt).blocks_for_records(u64::from(groups.extents));
    }
    ask
}

fn realtime_group(session: &Session, rgno: RgNumber) -> Result<(String, Value)> {
    let geometry = session.geometry();
    let sb = &session.image.superblock().sb;
    let (dblocks, fdblocks) = (sb.dblocks.get(), sb.fdblocks.get());
    let mut used = 0_u64;
    for (has, file) in [
        (geometry.features.has_rtrmapbt(), RtGroupFile::Rmap),
        (geometry.features.has_rtreflink(), RtGroupFile::Refcount),
    ] {
        let inode = if has { rtgroup_file(session.image.cache(), rgno, file)? } else { None };
        used = used.saturating_add(inode.map_or(0, |inode| inode.raw().core.nblocks.get()));
    }
    let ask = realtime_ask(geometry);
    let short = ask.saturating_sub(used) > fdblocks;
    let mark = if short { " <not enough space>" } else { "" };
    let text = format!("rtg {rgno}: dblocks: {dblocks} fdblocks: {fdblocks} reserved: {ask} used: {used}{mark}\n");
    let value = json!({
        "group": rgno.0, "dblocks": dblocks, "fdblocks": fdblocks, "reserved": ask, "used": used, "enough": !short,
    });
    Ok((text, value))
}

/// Flag of a reservation that can be renewed between steps.
const PERMANENT: u32 = 4;

fn logres(session: &mut Session, _words: &[String]) -> Result<Box<dyn Answer>> {
    let inputs = ReservationInputs::of(session.geometry());
    let (mut text, mut values) = (String::new(), Vec::<Value>::new());
    for (index, (name, kind)) in Reservations::new(&inputs).all().into_iter().enumerate() {
        let flags = if kind.permanent { PERMANENT } else { 0 };
        text += &format!("type {index} logres {} logcount {} flags {flags:#x}\n", kind.logres, kind.logcount);
        values.push(json!({
            "type": index, "name": name, "logres": kind.logres, "logcount": kind.logcount, "flags": flags,
        }));
    }
    let largest = largest_reservation(&inputs);
    text += &format!("minlogsize logres {} logcount {}\n", largest.logres, largest.logcount);
    let largest = json!({ "logres": largest.logres, "logcount": largest.logcount });
    Ok(Text::boxed(text, json!({ "types": values, "largest": largest })))
}

fn untorn_write_max(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let options = Options::parse(words, "l:b:")?;
    options.no_operands()?;
    let number = |letter: char| -> Result<Option<u32>> {
        let Some(text) = options.value(letter) else { return Ok(None) };
        let number = number::parse(text, "number")?;
        let number = u32::try_from(number).map_err(|_| Error::Usage(format!("{text} has more than 32 bits")))?;
        Ok(Some(number).filter(|number| *number != 0))
    };
    let (log, blocks) = (number('l')?, number('b')?);
    if !session.geometry().features.has_reflink() {
        return Err(Error::Unsupported("without reflink there are no writes out of place".to_owned()));
    }
    let (step, each) = atomic_write_log_space(&ReservationInputs::of(session.geometry()));
    let common = format!("step_size: {step}\nper_intent: {each}\n");
    match (blocks, log) {
        (Some(blocks), _) => {
            let log = u64::from(blocks) * each + step;
            let text = format!("desired_max: {blocks}\n{common}logres: {log}\n");
            Ok(Text::boxed(text, json!({ "blocks": blocks, "step_size": step, "per_intent": each, "logres": log })))
        }
        (None, Some(log)) => {
            let most = u64::from(log).saturating_sub(step) / each;
            let text = format!("logres: {log}\n{common}max_awu: {most}\n");
            Ok(Text::boxed(text, json!({ "logres": log, "step_size": step, "per_intent": each, "blocks": most })))
        }
        (None, None) => Err(Error::Usage("untorn_write_max takes -l or -b with a number that is not 0".to_owned())),
    }
}
