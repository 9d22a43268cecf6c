//! `btheight`: how tall btrees of so many records are (xfsprogs `db/btheight.c`).

use serde_json::{Value, json};

use super::number;
use super::options::Options;
use crate::db::answer::{Answer, Text};
use crate::db::command::Command;
use crate::db::session::Session;
use crate::error::{Error, Result};
use crate::geometry::BtreeKind;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "btheight",
    alias: None,
    min: 1,
    max: None,
    moves: false,
    usage: "[-b BLOCKSIZE] [-n RECORDS] [-w max|avg|min|absmax] TYPE...",
    brief: "show how tall btrees of so many records are",
    help: "Shows for each type of btree the blocks of each level, once for blocks that are as full as they can be, once for three quarters of that, and once for as empty as they may be.\n  -b BLOCKSIZE  size of a block; s, b, k, m, g after the number stand for sectors, blocks and so on\n  -n RECORDS    how many records\n  -w WHICH      only the best case (max), the average one (avg) or the worst one (min); or the most levels that the type can have anywhere (absmax)\nTypes: all, bnobt, cntbt, inobt, finobt, bmapbt, refcountbt, rmapbt, rtrmapbt, rtrefcountbt, or sizes in bytes of another one: RECORD:KEY:POINTER:HEADER, where the header is short, long, shortcrc or longcrc.",
    run: btheight,
}];

/// The types in their order, by the name that they have here.
const TYPES: [(&str, BtreeKind); 9] = [
    ("bnobt", BtreeKind::Bnobt),
    ("cntbt", BtreeKind::Cntbt),
    ("inobt", BtreeKind::Inobt),
    ("finobt", BtreeKind::Finobt),
    ("bmapbt", BtreeKind::Bmbt),
    ("refcountbt", BtreeKind::Refcountbt),
    ("rmapbt", BtreeKind::Rmapbt),
    ("rtrmapbt", BtreeKind::Rtrmapbt),
    ("rtrefcountbt", BtreeKind::Rtrefcountbt),
];

/// The smallest block that is considered.
const SMALLEST: u64 = 128;
/// The largest one.
const LARGEST: u64 = i32::MAX as u64;

/// What is to be shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Every,
    Best,
    Average,
    Worst,
    Ever,
}

fn btheight(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let options = Options::parse(words, "b:n:w:")?;
    let (geometry, usage) = (session.geometry(), |text: &str| Err(Error::Usage(text.to_owned())));
    let which = match options.value('w') {
        None => Which::Every,
        Some("max") => Which::Best,
        Some("avg") => Which::Average,
        Some("min") => Which::Worst,
        Some("absmax") => Which::Ever,
        Some(other) => return usage(&format!("-w {other}: allowed are max, avg, min and absmax")),
    };
    let size = |text: &str| number::sized(text, geometry.blocksize, geometry.sectsize);
    let blocksize = options.value('b').map(size).transpose()?.unwrap_or(u64::from(geometry.blocksize));
    let records = options.value('n').map(|text| number::parse(text, "number of records")).transpose()?.unwrap_or(0);
    if which != Which::Ever {
        if records == 0 {
            return usage("-n must say how many records, and more than none");
        }
        if !(SMALLEST..=LARGEST).contains(&blocksize) {
            return usage(&format!("-b {blocksize}: allowed are {SMALLEST} to {LARGEST}"));
        }
    }
    let names: Vec<&str> = match options.operands.iter().any(|name| name == "all") {
        true => TYPES.iter().map(|(name, _)| *name).collect(),
        false => options.operands.iter().map(String::as_str).collect(),
    };
    if names.is_empty() {
        return usage("btheight takes at least one type of btree, or all");
    }
    let blocksize = u32::try_from(blocksize).unwrap_or(u32::MAX);
    let (mut text, mut values, mut problems) = (String::new(), Vec::new(), Vec::new());
    for name in names {
        let report = Report { name, which, records, blocksize, crc: geometry.features.has_crc() };
        match report.write(&mut text) {
            Ok(value) => values.push(value),
            Err(error) => problems.push(error),
        }
    }
    session.settle(problems, values.is_empty())?;
    Ok(Text::boxed(text, values))
}

/// What is to be told about one type.
struct Report<'a> {
    name: &'a str,
    which: Which,
    records: u64,
    blocksize: u32,
    crc: bool,
}

impl Report<'_> {
    fn failed(&self, text: &str) -> Error {
        Error::Usage(format!("{}: {text}", self.name))
    }

    fn write(&self, text: &mut String) -> Result<Value> {
        let kind = TYPES.iter().find(|(name, _)| *name == self.name).map(|(_, kind)| *kind);
        if self.which == Which::Ever {
            let kind = kind.ok_or_else(|| self.failed("its most levels are not known"))?;
            *text += &format!("{}: {}\n", self.name, kind.most_levels());
            return Ok(json!({ "type": self.name, "most_levels": kind.most_levels() }));
        }
        let mut per_block = match kind {
            Some(kind) => [true, false].map(|leaf| kind.maxrecs(self.blocksize, self.crc, leaf)),
            None => self.of_sizes()?,
        };
        let mut value = json!({ "type": self.name, "block_bytes": self.blocksize, "records": self.records });
        for (which, word, least, share) in [
            (Which::Best, "best", [2, 4], [1, 1]),
            (Which::Average, "average", [2, 4], [3, 4]),
            (Which::Worst, "worst", [1, 2], [1, 2]),
        ] {
            if self.which != which && self.which != Which::Every {
                continue;
            }
            let part = |count: u32| u32::try_from(u64::from(count) * share[0] / share[1]).unwrap_or(u32::MAX);
            per_block = per_block.map(part);
            let [leaf, node] = per_block;
            if leaf < least[0] || node < least[1] {
                return Err(self.failed("a block holds too little for a tree"));
            }
            *text += &format!(
                "{}: {word} case per {}-byte block: {leaf} records (leaf) / {node} keyptrs (node)\n",
                self.name, self.blocksize
            );
            let levels = heights(self.records, per_block, text);
            value[word] = json!({ "leaf_records": leaf, "node_keyptrs": node, "blocks_by_level": levels });
        }
        Ok(value)
    }

    /// How many records a leaf and a node hold, from the sizes that the type is given as.
    fn of_sizes(&self) -> Result<[u32; 2]> {
        let parts: Vec<&str> = self.name.split(':').collect();
        let [record, key, pointer, header] = parts[..] else {
            return Err(self.failed("neither a type of btree nor RECORD:KEY:POINTER:HEADER"));
        };
        // the header of any tree of this kind
        let header = match header {
            "short" => BtreeKind::Bnobt.sizes(false).header,
            "shortcrc" => BtreeKind::Bnobt.sizes(true).header,
            "long" => BtreeKind::Bmbt.sizes(false).header,
            "longcrc" => BtreeKind::Bmbt.sizes(true).header,
            _ => return Err(self.failed("the header is short, long, shortcrc or longcrc")),
        };
        let room = self.blocksize.saturating_sub(header);
        let size = |text: &str| {
            let size = number::value(text).and_then(|size| u16::try_from(size).ok()).map(u32::from);
            let size = size.filter(|size| (1..=room).contains(size));
            size.ok_or_else(|| self.failed(&format!("{text} is no size between 1 and {room} bytes")))
        };
        let (record, key, pointer) = (size(record)?, size(key)?, size(pointer)?);
        Ok([room / record, room / (key + pointer)])
    }
}

fn plural(count: u64, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// Writes the blocks of each level from the leaves up; every block but the last holds as many as it is said to.
fn heights(records: u64, per_block: [u32; 2], text: &mut String) -> Vec<u64> {
    let (mut levels, mut count) = (Vec::new(), records);
    loop {
        let holds = u64::from(per_block[usize::from(!levels.is_empty())]);
        let blocks = count.div_ceil(holds);
        *text += &format!("level {}: {}, {}\n", levels.len(), plural(count, "record"), plural(blocks, "block"));
        levels.push(blocks);
        if blocks == 1 {
            break;
        }
        count = blocks;
    }
    let height = u64::try_from(levels.len()).unwrap_or(u64::MAX);
    let total = levels.iter().fold(0_u64, |sum, blocks| sum.saturating_add(*blocks));
    *text += &format!("{}, {} total\n", plural(height, "level"), plural(total, "block"));
    levels
}
