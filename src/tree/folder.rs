//! The entries of a directory.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::reader::Reader;
use crate::error::{Check, Corruption, Error, Rule};
use crate::forms::{Directory, FileType, Inode};
use crate::geometry::Ino;

/// In which order entries come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As they stand in the directory.
    Stored,
    /// By the bytes of their names.
    Name,
}

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its name: one component, not empty, without a slash or a zero byte; never `.` or `..`.
    pub name: &'a [u8],
    /// The inode.
    pub ino: Ino,
    /// Kind of the file, where the filesystem keeps it in directories.
    pub file_type: Option<FileType>,
}

/// The entries of a directory that a file can be reached by.
#[derive(Clone, Debug, Default)]
pub struct Folder {
    names: Vec<u8>,
    entries: Vec<Stored>,
}

#[derive(Clone, Copy, Debug)]
struct Stored {
    /// Where the name starts, and its length.
    start: usize,
    len: usize,
    ino: Ino,
    ftype: Option<u8>,
}

impl Folder {
    /// The entries of the directory that `inode` is, without `.` and `..`. Damage is reported; so are entries with names
    /// that no file can have, and all but the first of those with one name, which are left out.
    pub fn read(reader: &Reader<'_>, inode: &Inode, order: Order) -> Self {
        let mut folder = Folder::default();
        let directory = match Directory::open(reader.source(), inode) {
            Ok(directory) => directory,
            Err(error) => {
                reader.report(&error);
                return folder;
            }
        };
        directory.for_each(&mut |entry| {
            match entry {
                Err(error) => reader.report(&error),
                // what is wrong with a name that cannot be was reported before
                Ok(entry) if entry.name.is_empty() || entry.name.iter().any(|byte| matches!(byte, 0 | b'/')) => {}
                Ok(entry) if matches!(entry.name, b"." | b"..") => {}
                Ok(entry) => folder.push(entry.name, entry.ino, entry.ftype),
            }
            ControlFlow::Continue(())
        });
        folder.drop_repeated(reader, inode);
        if order == Order::Name {
            let names = &folder.names;
            folder.entries.sort_by(|a, b| name_in(names, a).cmp(name_in(names, b)));
        }
        folder
    }

    fn push(&mut self, name: &[u8], ino: Ino, ftype: Option<u8>) {
        let start = self.names.len();
        self.names.extend_from_slice(name);
        self.entries.push(Stored { start, len: name.len(), ino, ftype });
    }

    /// Two entries of one name would let an archive write through a symbolic link of its own.
    fn drop_repeated(&mut self, reader: &Reader<'_>, inode: &Inode) {
        let names = &self.names;
        let mut seen = HashSet::with_capacity(self.entries.len());
        self.entries.retain(|entry| {
            let name = name_in(names, entry);
            let first = seen.insert(name);
            if !first {
                let check = Check::new("dirent", "name", Rule::Cycle);
                let detail = crate::report::name::escape_component(name);
                let problem = Corruption { check, place: inode.place.clone(), detail };
                reader.report(&Error::Corrupt(Box::new(problem)));
            }
            first
        });
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Entry number `index`.
    pub fn get(&self, index: usize) -> Option<Entry<'_>> {
        let stored = self.entries.get(index)?;
        let file_type = stored.ftype.and_then(FileType::from_dir_ftype);
        Some(Entry { name: name_in(&self.names, stored), ino: stored.ino, file_type })
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

fn name_in<'a>(names: &'a [u8], entry: &Stored) -> &'a [u8] {
    &names[entry.start..entry.start + entry.len]
}
