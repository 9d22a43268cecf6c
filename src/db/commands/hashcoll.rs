//! `hashcoll`: names that have the hash of a given one (xfsprogs `db/hash.c`).

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, Mode, OFlags, XattrFlags, fsetxattr, linkat, open, openat};
use rustix::io::Errno;

use super::hash::directory_hash;
use super::number;
use super::options::Options;
use crate::db::answer::{Answer, Bytes, Nothing, bytes_value};
use crate::db::c_random::CRandom;
use crate::db::collision::{Alternate, alternate, other_name};
use crate::db::command::Command;
use crate::db::session::Session;
use crate::error::{Error, Place, Result};
use crate::ondisk::dir_data::MAXNAMELEN;
use crate::ondisk::name_hash::NameHash;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "hashcoll",
    alias: None,
    min: 0,
    max: None,
    moves: false,
    usage: "[-a] [-s SEED] [-n COUNT] [-p PATH] -i | NAME...",
    brief: "make names that have the same hash",
    help: "Makes names that have the length and the hash of each given one, to see what many collisions do to a directory or an attribute fork. Names end with a zero byte. Names of fewer than five bytes leave no choice.\n  -a        names of attributes, with `user.` before them\n  -i        take the name from the standard input, up to 255 bytes\n  -n COUNT  so many names, all of them different\n  -p PATH   create entries in this folder (or with -a, attributes of this file) of the running system instead of showing names\n  -s SEED   random numbers from this seed; the same seed gives the same names",
    run: hashcoll,
}];

/// Before the name of an attribute that any user may set.
const PREFIX: &[u8] = b"user.";

fn hashcoll(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let options = Options::parse(words, "ain:p:s:")?;
    let numeric = |letter: char| options.value(letter).map(|text| number::parse(text, "number")).transpose();
    let count = numeric('n')?.unwrap_or(1);
    if let Some(seed) = numeric('s')?.and_then(|seed| u32::try_from(seed).ok()).filter(|seed| *seed != 0) {
        session.random = CRandom::seeded(seed);
    }
    let names: Vec<Vec<u8>> = if options.has('i') {
        vec![from_standard_input()?]
    } else {
        options.operands.iter().map(|name| name.as_bytes().to_vec()).collect()
    };
    let attributes = options.has('a');
    let target = options.value('p').map(|path| Target::open(path, attributes)).transpose()?;
    let mut makers = Maker {
        hash: if attributes { NameHash::Bytes } else { directory_hash(session) },
        prefix: if attributes { PREFIX } else { b"" },
        random: &mut session.random,
    };
    let (mut made, mut problems) = (Vec::new(), Vec::new());
    for name in names {
        if name.len() > MAXNAMELEN {
            return Err(Error::Usage(format!("a name has at most {MAXNAMELEN} bytes")));
        }
        match &target {
            Some(target) => makers.create(&name, count, target)?,
            None => {
                if let Err(error) = makers.list(&name, count, &mut made) {
                    problems.push(error);
                }
            }
        }
    }
    session.settle(problems, made.is_empty())?;
    if target.is_some() {
        return Ok(Box::new(Nothing));
    }
    let values: Vec<_> = made.iter().map(|name| bytes_value(name)).collect();
    let bytes = made.into_iter().flat_map(|name| name.into_iter().chain([0])).collect();
    Ok(Bytes::boxed(bytes, values))
}

fn from_standard_input() -> Result<Vec<u8>> {
    let mut name = Vec::new();
    let most = u64::try_from(MAXNAMELEN).unwrap_or(0);
    let read = std::io::stdin().lock().take(most).read_to_end(&mut name);
    read.map_err(|error| Error::io(Place::default(), error))?;
    Ok(name)
}

/// Makes names.
struct Maker<'a> {
    hash: NameHash,
    prefix: &'static [u8],
    random: &'a mut CRandom,
}

impl Maker<'_> {
    fn one(&mut self, name: &[u8]) -> Vec<u8> {
        [self.prefix, &other_name(name, self.hash, self.random)].concat()
    }

    /// Adds `count` names to `made`. Those of one given name are different: where chance gives one again, bits of it
    /// are turned that leave the hash alone.
    fn list(&mut self, name: &[u8], count: u64, made: &mut Vec<Vec<u8>>) -> Result<()> {
        let mut seen = HashSet::new();
        for _ in 0..count {
            let mut other = self.one(name);
            let mut sequence = 1;
            while count > 1 && seen.contains(&other) {
                let found = loop {
                    let found = alternate(&mut other, sequence);
                    sequence += 1;
                    if found != Alternate::Invalid {
                        break found;
                    }
                };
                if found == Alternate::Exhausted {
                    return Err(Error::Usage(format!("there are no more than {} names of this hash", seen.len())));
                }
            }
            if count > 1 {
                seen.insert(other.clone());
            }
            made.push(other);
        }
        Ok(())
    }

    fn create(&mut self, name: &[u8], count: u64, target: &Target) -> Result<()> {
        target.first(name, self.prefix)?;
        for _ in 0..count {
            target.add(name, &self.one(name))?;
        }
        Ok(())
    }
}

/// A folder that takes links, or a file that takes attributes.
struct Target {
    file: OwnedFd,
    path: String,
    attributes: bool,
}

impl Target {
    fn open(path: &str, attributes: bool) -> Result<Self> {
        let flags = if attributes { OFlags::RDWR } else { OFlags::RDONLY | OFlags::DIRECTORY };
        let file = open(path, flags | OFlags::CLOEXEC, Mode::empty());
        let file = file.map_err(|error| failed(path, error))?;
        Ok(Target { file, path: path.to_owned(), attributes })
    }

    /// The file that the other names become links of, or the attribute with the name itself.
    fn first(&self, name: &[u8], prefix: &[u8]) -> Result<()> {
        if self.attributes {
            return self.add(name, &[prefix, name].concat());
        }
        let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::CLOEXEC;
        let made = openat(&self.file, OsStr::from_bytes(name), flags, Mode::RUSR | Mode::WUSR);
        made.map(drop).map_err(|error| failed(&self.path, error))
    }

    fn add(&self, name: &[u8], other: &[u8]) -> Result<()> {
        let (name, other) = (OsStr::from_bytes(name), OsStr::from_bytes(other));
        let added = if self.attributes {
            fsetxattr(&self.file, other, b"1", XattrFlags::empty())
        } else {
            linkat(&self.file, name, &self.file, other, AtFlags::empty())
        };
        match added {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(failed(&self.path, error)),
        }
    }
}

fn failed(path: &str, error: Errno) -> Error {
    Error::Usage(format!("{path}: {}", std::io::Error::from(error)))
}
