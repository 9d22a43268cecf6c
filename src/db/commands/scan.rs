//! Commands that scan the whole filesystem: freesp, frag, fsmap, blockget, blockuse, blockfree, ncheck.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::number;
use super::options::Options;
use crate::db::answer::{Answer, Nothing};
use crate::db::command::Command;
use crate::db::scan::{
    BlockUse, Buckets, FragOptions, FreeSpaceOptions, NamedInode, ScanOptions, fragmentation, free_space,
    realtime_owners, scan_usage, space_owners,
};
use crate::db::session::Session;
use crate::error::{DeviceRole, Error, Result};
use crate::geometry::Daddr;
use crate::journal::LogState;

const fn command(
    name: &'static str,
    max: Option<usize>,
    usage: &'static str,
    brief: &'static str,
    help: &'static str,
    run: crate::db::command::Run,
) -> Command {
    Command { name, alias: None, min: 0, max, moves: false, usage, brief, help, run }
}

pub(super) const COMMANDS: &[Command] = &[
    command(
        "blockfree",
        Some(0),
        "",
        "forget what blockget found",
        "Forgets what blockget found out about the use of blocks, so that it can be run again.",
        blockfree,
    ),
    command(
        "blockget",
        None,
        "[-s|-v] [-n] [-p] [-t] [-b bno]... [-i ino]...",
        "find out what every block is used for, and what does not fit",
        "Reads all metadata, finds out what every block is used for, and tells what contradicts itself: blocks that two \
         own, counters and btrees that are wrong, directories whose index does not fit. blockuse and ncheck stand on \
         what it finds.\n\
         -b tells all about a filesystem block, -i all about an inode, -v about everything; -s tells nothing else, save \
         what is serious; -n keeps names for ncheck and blockuse -n; -p begins each line with the name of the image; -t \
         is taken for compatibility.",
        blockget,
    ),
    command(
        "blockuse",
        Some(3),
        "[-n] [-c count]",
        "tell what the current block is used for",
        "Tells what blockget found out about the current block, or about as many blocks from it on as -c says; with -n \
         the path of the inode too.",
        blockuse,
    ),
    command(
        "frag",
        None,
        "[-a] [-d] [-f] [-l] [-q] [-R] [-r] [-v]",
        "tell how fragmented files are",
        "Counts the extents of all inodes, and those that would do. -a attribute forks, -d directories, -f files, -l \
         symbolic links, -q quota files, -R realtime bitmap and summary, -r realtime files; all of them when none is \
         named. -v tells each inode.",
        frag,
    ),
    command(
        "freesp",
        None,
        "[-bcds] [-A alignment] [-a agno]... [-e binsize] [-h h1]... [-m binmult]",
        "tell how free space is cut up",
        "A histogram of free extents. -b powers of two (as without options), -e buckets of equal size, -m powers of a \
         number, -h a single bucket; -a one group, -A only extents aligned to a number of blocks, -c from the btree by \
         size, -d lists each extent, -s totals.",
        freesp,
    ),
    command(
        "fsmap",
        Some(3),
        "[-r] [start_fsb] [end_fsb]",
        "tell who owns the space",
        "Lists the reverse mappings between two filesystem blocks, or of the whole device; -r those of the realtime \
         section.",
        fsmap,
    ),
    command(
        "ncheck",
        None,
        "[-s] [-i ino]...",
        "list inodes with their names",
        "Lists all inodes with their paths, after blockget -n; -i only these, -s only set-user and set-group files, \
         devices, pipes and sockets.",
        ncheck,
    ),
];

/// A number as the C library's `atoi` reads it: what stands behind the digits does not matter, and nothing is 0.
fn lenient(text: &str) -> i64 {
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let value = digits[..end].parse().unwrap_or(if end == 0 { 0 } else { i64::MAX });
    if negative { -value } else { value }
}

fn freesp(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let options = Options::parse(words, "A:a:bcde:h:m:s")?;
    options.no_operands()?;
    let agblocks = u64::from(session.geometry().agblocks);
    let shapes: Vec<(char, &str)> = options.all().filter(|(letter, _)| "behm".contains(*letter)).collect();
    if shapes.len() > 1 && shapes.iter().any(|(letter, _)| *letter != 'h') {
        return Err(Error::Usage("freesp takes only one of -b, -e, -h and -m".to_owned()));
    }
    let buckets = match shapes.first() {
        None | Some(('b', _)) => Buckets::powers(2, agblocks),
        Some((letter, value)) => match (letter, lenient(value)) {
            ('h', _) | (_, 0) => Buckets::At(vec![1]),
            ('e', step) if step > 0 => Buckets::Equal(step.unsigned_abs()),
            ('m', factor) if factor > 1 => Buckets::powers(factor.unsigned_abs(), agblocks),
            (letter, value) => return Err(Error::Usage(format!("-{letter} {value} gives no buckets"))),
        },
    };
    let numbers = |letter| options.all().filter(move |(given, _)| *given == letter).map(|(_, value)| lenient(value));
    let options = FreeSpaceOptions {
        groups: numbers('a').map(|agno| u32::try_from(agno).unwrap_or(u32::MAX)).collect(),
        alignment: numbers('A').last().unwrap_or(0).unsigned_abs(),
        by_size: options.has('c'),
        dump: options.has('d'),
        summary: options.has('s'),
        buckets,
    };
    Ok(Box::new(free_space(&session.image, &*session.observer, &options)))
}

fn frag(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let given = Options::parse(words, "adflqRrv")?;
    let any = given.last_of("adflqRr").is_some();
    let wants = |letter| !any || given.has(letter);
    let options = FragOptions {
        attributes: wants('a'),
        directories: wants('d'),
        files: wants('f'),
        symlinks: wants('l'),
        quota: wants('q'),
        realtime_control: wants('R'),
        realtime: wants('r'),
        verbose: given.has('v'),
    };
    Ok(Box::new(fragmentation(&session.image, &*session.observer, options)))
}

fn fsmap(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let geometry = session.geometry();
    if !geometry.features.has_rmapbt() {
        return Err(Error::Usage("the filesystem has no reverse mapping btrees".to_owned()));
    }
    let options = Options::parse(words, "r")?;
    let mut numbers = options.operands.iter();
    let mut next = || numbers.next().map(|word| number::parse(word, "filesystem block")).transpose();
    let (start, end) = (next()?.unwrap_or(0), next()?);
    if start >= geometry.dblocks {
        return Err(Error::Usage(format!("block {start} lies behind the end of the filesystem")));
    }
    if options.operands.len() > 2 {
        return Err(Error::Usage("fsmap takes a first and a last block".to_owned()));
    }
    let (image, observer) = (&session.image, &*session.observer);
    let owners = if options.has('r') {
        realtime_owners(image, observer, start, end)
    } else {
        space_owners(image, observer, start, end)
    };
    Ok(Box::new(owners?))
}

fn blockget(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    if session.block_usage.is_some() {
        return Err(Error::Usage("what blocks are used for is known already; blockfree forgets it".to_owned()));
    }
    let given = Options::parse(words, "b:i:npstv")?;
    let numbers = |letter| {
        let values = given.all().filter(move |(option, _)| *option == letter);
        values.map(|(_, value)| lenient(value).cast_unsigned())
    };
    let prefix = if given.has('p') { format!("{}: ", session.names.data).into_bytes() } else { Vec::new() };
    let options = ScanOptions {
        blocks: numbers('b').collect(),
        inodes: numbers('i').collect(),
        names: given.has('n'),
        prefix,
        silent: given.has('s'),
        verbose: given.has('v'),
    };
    match session.image.journal() {
        Ok(scan) if scan.state == LogState::Dirty => session.observer.warn(&Error::Unsupported(
            "the journal holds changes that are not in place yet; blockget does not see them".to_owned(),
        )),
        Ok(_) => {}
        Err(error) => session.observer.warn(&error),
    }
    let (usage, report) = scan_usage(&session.image, &*session.observer, &options);
    session.block_usage = Some(usage);
    Ok(Box::new(report))
}

fn blockfree(session: &mut Session, _words: &[String]) -> Result<Box<dyn Answer>> {
    match session.block_usage.take() {
        Some(_) => Ok(Box::new(Nothing)),
        None => Err(Error::Usage("what blocks are used for is not known; blockget finds out".to_owned())),
    }
}

/// The use of some blocks.
struct Uses {
    rows: Vec<Use>,
}

struct Use {
    fsb: u64,
    agno: u32,
    agbno: u32,
    block: BlockUse,
    path: Option<Vec<u8>>,
}

impl Answer for Uses {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        for Use { fsb, agno, agbno, block, path } in &self.rows {
            write!(out, "block {fsb} ({agno}/{agbno}) type {}", block.kind.name())?;
            if let Some(ino) = block.ino {
                write!(out, " inode {}", ino.cast_signed())?;
            }
            if let Some(path) = path {
                out.write_all(b" ")?;
                out.write_all(path)?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "fsblock": row.fsb,
                "agno": row.agno,
                "agbno": row.agbno,
                "type": row.block.kind.name(),
                "inode": row.block.ino,
                "path": row.path.as_ref().map(|path| String::from_utf8_lossy(path)),
            })
        });
        Value::Array(rows.collect())
    }
}

fn blockuse(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let unknown = || Error::Usage("what blocks are used for is not known; run blockget first".to_owned());
    let usage = session.block_usage.as_ref().ok_or_else(unknown)?;
    let options = Options::parse(words, "c:n")?;
    let names = if options.has('n') {
        Some(usage.names().ok_or_else(|| Error::Usage("names are not known; run blockget -n first".to_owned()))?)
    } else {
        None
    };
    let geometry = session.geometry();
    let position = session.require_position()?;
    let place = Some(Daddr(position.byte_offset() >> 9)).filter(|_| position.device == DeviceRole::Data);
    let outside = || Error::Usage("the position lies in no allocation group".to_owned());
    let (agno, first) = place.and_then(|daddr| geometry.daddr_parts(daddr)).ok_or_else(outside)?;
    let count = options.value('c').map_or(Some(1), |value| number::value(value).and_then(|n| u32::try_from(n).ok()));
    let last = count.filter(|count| *count > 0).and_then(|count| first.0.checked_add(count - 1));
    let last = last.filter(|last| *last < geometry.agblocks);
    let last = last.ok_or_else(|| Error::Usage("so many blocks there are not in the group".to_owned()))?;
    let rows = (first.0..=last).map(|agbno| {
        let block = usage.of_block(agno.0, agbno);
        let path = block.ino.and_then(|ino| names.and_then(|names| names.path(ino)));
        let fsb = u64::from(agno.0) << geometry.agblklog | u64::from(agbno);
        Use { fsb, agno: agno.0, agbno, block, path }
    });
    Ok(Box::new(Uses { rows: rows.collect() }))
}

/// Inodes with their paths.
struct Names {
    inodes: Vec<NamedInode>,
}

impl Answer for Names {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        for NamedInode { ino, path, directory } in &self.inodes {
            write!(out, "{ino:>11} ")?;
            out.write_all(path)?;
            out.write_all(if *directory { b"/.\n" } else { b"\n" })?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let rows = self.inodes.iter().map(|inode| {
            json!({ "ino": inode.ino, "path": String::from_utf8_lossy(&inode.path), "directory": inode.directory })
        });
        Value::Array(rows.collect())
    }
}

fn ncheck(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let names = session.block_usage.as_ref().and_then(|usage| usage.names());
    let names = names.ok_or_else(|| Error::Usage("names are not known; run blockget -n first".to_owned()))?;
    let options = Options::parse(words, "i:s")?;
    let listed: Vec<u64> =
        options.all().filter(|(letter, _)| *letter == 'i').map(|(_, value)| lenient(value).cast_unsigned()).collect();
    let inodes = if listed.is_empty() { names.all(options.has('s')) } else { listed };
    Ok(Box::new(Names { inodes: inodes.into_iter().filter_map(|ino| names.named(ino)).collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_digits_end() {
        for (text, number) in [("12", 12), ("-3", -3), ("7x", 7), ("x", 0), ("", 0), (" +5", 5)] {
            assert_eq!(lenient(text), number, "{text}");
        }
    }
}
