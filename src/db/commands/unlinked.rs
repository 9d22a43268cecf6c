//! `dump_iunlinked`: the lists of inodes that lost their last name while they were open (xfsprogs `db/iunlink.c`).

use std::collections::HashSet;
use std::fmt::Write;

use serde_json::{Value, json};

use super::header_block;
use super::number;
use super::options::Options;
use crate::db::answer::{Answer, Text};
use crate::db::command::Command;
use crate::db::session::Session;
use crate::error::{Check, Error, Place, Result, Rule};
use crate::forms::{ForkKind, Inode};
use crate::geometry::{AgIno, AgNumber};
use crate::ondisk::{NULLAGINO, RawAgi};

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "dump_iunlinked",
    alias: None,
    min: 0,
    max: None,
    moves: false,
    usage: "[-a agno] [-b BUCKET] [-q] [-v]",
    brief: "show the lists of unlinked inodes",
    help: "Shows the inodes that lost their last name while they were open: 64 lists in each group.\n  -a agno    only those of this group\n  -b BUCKET  only this list of each group\n  -q         leave out empty lists and the ends of lists\n  -v         show how many blocks each inode has",
    run: dump_iunlinked,
}];

fn dump_iunlinked(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let options = Options::parse(words, "a:b:qv")?;
    options.no_operands()?;
    let limited = |letter: char, limit: u32, what: &str| -> Result<Option<u32>> {
        let Some(text) = options.value(letter) else { return Ok(None) };
        let number = u32::try_from(number::parse(text, what)?).ok().filter(|number| *number < limit);
        number.map(Some).ok_or_else(|| Error::Usage(format!("there is no {what} {text}; they end at {}", limit - 1)))
    };
    let buckets = u32::try_from(RawAgi::UNLINKED_BUCKETS).unwrap_or(0);
    let agno = limited('a', session.geometry().agcount, "group")?;
    let bucket = limited('b', buckets, "list")?;
    let mut dump =
        Dump { session, quiet: options.has('q'), verbose: options.has('v'), text: String::new(), lists: Vec::new() };
    let groups: Vec<AgNumber> = dump.session.geometry().ag_numbers().collect();
    for agno in groups.into_iter().filter(|group| agno.is_none_or(|agno| group.0 == agno)) {
        match header_block::agi(dump.session, agno) {
            Ok(agi) => {
                for (bucket, head) in (0_u32..).zip(agi.unlinked).filter(|(at, _)| bucket.is_none_or(|one| one == *at))
                {
                    dump.list(agno, bucket, head.get());
                }
            }
            Err(error) => dump.session.observer.warn(&error),
        }
    }
    Ok(Text::boxed(dump.text, dump.lists))
}

struct Dump<'a> {
    session: &'a Session,
    quiet: bool,
    verbose: bool,
    text: String,
    lists: Vec<Value>,
}

impl Dump<'_> {
    fn write(&mut self, line: std::fmt::Arguments<'_>) {
        self.text.write_fmt(line).expect("invariant: a String takes all that is written");
    }

    fn list(&mut self, agno: AgNumber, bucket: u32, head: u32) {
        if head == NULLAGINO {
            if !self.quiet {
                self.write(format_args!("AG {agno} bucket {bucket} agino NULL\n"));
            }
            return;
        }
        self.write(format_args!("AG {agno} bucket {bucket} agino {head}"));
        let (mut agino, mut seen, mut inodes) = (head, HashSet::new(), Vec::new());
        for index in 0.. {
            if !seen.insert(agino) {
                let place = Place { agno: Some(agno.0), ..Place::default() };
                let check = Check::new("agi", "unlinked", Rule::Cycle);
                self.session.observer.warn(&Error::corrupt(check, place));
                self.write(format_args!("\n"));
                break;
            }
            match self.member(agno, agino) {
                Ok((value, next)) => {
                    inodes.push(value);
                    agino = next;
                }
                Err(error) => {
                    self.write(format_args!("\n"));
                    self.session.observer.warn(&error);
                    agino = NULLAGINO;
                }
            }
            if agino == NULLAGINO {
                if !self.quiet {
                    self.write(format_args!("    [{index}] agino NULL\n"));
                }
                break;
            }
            self.write(format_args!("    [{index}] agino {agino}"));
        }
        self.lists.push(json!({ "group": agno.0, "bucket": bucket, "inodes": inodes }));
    }

    /// Ends the line of an inode, and gives what there is to say about it, and the next one.
    fn member(&mut self, agno: AgNumber, agino: u32) -> Result<(Value, u32)> {
        let geometry = self.session.geometry();
        let ino = geometry.ino(agno, AgIno(agino));
        let ino = ino.ok_or_else(|| {
            let place = Place { agno: Some(agno.0), ..Place::default() };
            Error::corrupt(Check::new("agi", "unlinked", Rule::Range), place)
        })?;
        let inode = Inode::read(self.session.image.cache(), ino)?;
        let core = &inode.raw().core;
        let realtime = if inode.is_realtime() { self.data_blocks(&inode)? } else { 0 };
        let blocks = core.nblocks.get().wrapping_sub(realtime);
        if self.verbose {
            self.write(format_args!(" blocks {blocks} rtblocks {realtime}\n"));
        } else {
            self.write(format_args!("\n"));
        }
        let value = json!({ "ino": ino.0, "agino": agino, "blocks": blocks, "rtblocks": realtime });
        Ok((value, core.next_unlinked.get()))
    }

    fn data_blocks(&self, inode: &Inode) -> Result<u64> {
        let mut blocks = 0;
        if let Some(fork) = inode.fork(ForkKind::Data)? {
            for extent in fork.extents(self.session.image.cache()) {
                match extent {
                    Ok(extent) => blocks += u64::from(extent.blockcount),
                    Err(error) => self.session.observer.warn(&error),
                }
            }
        }
        Ok(blocks)
    }
}
