//! A tree, file by file.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{FileType as NodeType, Mode, OFlags, makedev, mknodat, openat, symlinkat};

use super::kept::{NotKept, Property};
use super::place::{Place, check};
use super::properties::{Made, apply};
use crate::forms::{FileType, Inode, StoredData};
use crate::tree::Order;
use crate::tree::Reader;
use crate::tree::Stat;
use crate::tree::Xattrs;
use crate::tree::{Event, Next, Visited, walk};

/// What was extracted.
#[derive(Clone, Debug, Default)]
pub struct Extracted {
    /// Files and folders that were made.
    pub files: u64,
    /// Bytes of data that were written.
    pub bytes: u64,
    /// What could not be kept.
    pub not_kept: NotKept,
}

/// Puts files of an image into a folder.
pub struct Extraction<'a> {
    reader: &'a Reader<'a>,
    place: Place,
    buf: Vec<u8>,
    /// The way from the folder to where the walk is.
    path: Vec<u8>,
    /// Where each file with more than one link was made.
    links: HashMap<u64, Box<[u8]>>,
    extracted: Extracted,
}

const NEW_FILE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl<'a> Extraction<'a> {
    /// Puts files into `folder`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn into(reader: &'a Reader<'a>, folder: File) -> io::Result<Self> {
        let (buf, path, links) = (Vec::new(), Vec::new(), HashMap::new());
        Ok(Extraction { reader, place: Place::new(folder)?, buf, path, links, extracted: Extracted::default() })
    }

    /// Makes `start` and all below it, under `name`; without a name, the folder itself becomes what `start` is.
    ///
    /// A file whose name is taken stays out; folders that are there are filled. What cannot be made or kept is noted.
    ///
    /// # Errors
    /// `InvalidInput` when there is no name and `start` is no folder; else what makes it useless to go on, such as a disk
    /// that is full, with the path.
    pub fn add(&mut self, name: Option<&[u8]>, start: &Inode) -> io::Result<()> {
        if name.is_none() && start.file_type() != Some(FileType::Directory) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "is no folder"));
        }
        walk(self.reader, start, Order::Stored, &mut |event| {
            let (Event::Enter(at) | Event::Leave(at)) = event;
            self.path.clear();
            self.path.extend_from_slice(name.unwrap_or_default());
            if !at.path.is_empty() {
                if !self.path.is_empty() {
                    self.path.push(b'/');
                }
                self.path.extend_from_slice(at.path);
            }
            let own_name = if at.depth == 0 { name } else { Some(at.name) };
            let result = match event {
                Event::Enter(at) => self.enter(own_name, &at),
                Event::Leave(at) => self.leave(own_name.is_some(), &at).map(|()| Next::Descend),
            };
            result.map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", crate::report::name::escape(&self.path)))
            })
        })
    }

    /// What was extracted.
    pub fn finish(self) -> Extracted {
        self.extracted
    }

    fn enter(&mut self, name: Option<&[u8]>, at: &Visited<'_>) -> io::Result<Next> {
        self.reader.observer().advance(1);
        let is_folder = at.inode.file_type() == Some(FileType::Directory);
        // without a name the folder is there, and open
        let Some(name) = name else { return Ok(Next::Descend) };
        let made = if is_folder { self.place.enter(name) } else { self.make(name, at.inode) };
        match made {
            Ok(()) => {
                self.extracted.files += u64::from(!is_folder);
                Ok(Next::Descend)
            }
            Err(error) if is_fatal(&error) => Err(error),
            Err(error) => {
                self.extracted.not_kept.note(Property::File, &self.path, &error);
                Ok(Next::Skip)
            }
        }
    }

    fn leave(&mut self, has_name: bool, at: &Visited<'_>) -> io::Result<()> {
        let folder = if has_name { self.place.leave()? } else { self.place.here().try_clone_to_owned()? };
        self.extracted.files += 1;
        self.give(Made::Open(folder.as_fd()), at.inode);
        Ok(())
    }

    /// Gives a file that was made what the inode says of it.
    fn give(&mut self, made: Made<'_>, inode: &Inode) {
        if let Some(stat) = Stat::of(self.reader, inode) {
            let xattrs = Xattrs::read(self.reader, inode);
            apply(made, &stat, &xattrs, &self.path, &mut self.extracted.not_kept);
        }
    }

    /// Makes what is no folder.
    fn make(&mut self, name: &[u8], inode: &Inode) -> io::Result<()> {
        check(name)?;
        let Some(stat) = Stat::of(self.reader, inode) else { return Ok(()) };
        if stat.nlink > 1
            && let Some(first) = self.links.get(&stat.ino.0)
        {
            match self.place.link(first, name) {
                Ok(()) => return Ok(()),
                Err(error) if is_fatal(&error) || error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
                // a copy is better than nothing
                Err(error) => self.extracted.not_kept.note(Property::HardLink, &self.path, &error),
            }
        }
        match stat.file_type {
            FileType::Regular => self.make_file(name, inode)?,
            FileType::Symlink => {
                let target = match self.reader.target(inode) {
                    Ok(target) => target,
                    Err(error) => {
                        self.reader.report(&error);
                        return Err(io::Error::new(io::ErrorKind::InvalidData, "its target cannot be read"));
                    }
                };
                symlinkat(target.as_slice(), self.place.here(), name)?;
                self.give_by_name(name, inode)?;
            }
            kind => {
                let device = stat.device.unwrap_or_default();
                let number = makedev(device.major, device.minor);
                let kind = match kind {
                    FileType::CharDevice => NodeType::CharacterDevice,
                    FileType::BlockDevice => NodeType::BlockDevice,
                    FileType::Socket => NodeType::Socket,
                    _ => NodeType::Fifo,
                };
                mknodat(self.place.here(), name, kind, Mode::RUSR | Mode::WUSR, number)?;
                self.give_by_name(name, inode)?;
            }
        }
        if stat.nlink > 1 {
            self.links.entry(stat.ino.0).or_insert_with(|| self.path.as_slice().into());
        }
        Ok(())
    }

    fn give_by_name(&mut self, name: &[u8], inode: &Inode) -> io::Result<()> {
        let folder = self.place.here().try_clone_to_owned()?;
        self.give(Made::Named(folder.as_fd(), name), inode);
        Ok(())
    }

    fn make_file(&mut self, name: &[u8], inode: &Inode) -> io::Result<()> {
        let data = StoredData::open(self.reader.source(), inode);
        let data = match data {
            Ok(data) => data,
            Err(error) => {
                self.reader.report(&error);
                return Err(io::Error::new(io::ErrorKind::InvalidData, "its contents cannot be read"));
            }
        };
        let file = File::from(openat(self.place.here(), name, NEW_FILE, Mode::RUSR | Mode::WUSR)?);
        // the size first: what grows by writing gets space in advance on some filesystems, and so no holes
        file.set_len(inode.size())?;
        for range in data {
            match range {
                Ok(range) if range.unwritten => {}
                Ok(range) => {
                    self.reader.copy(inode, &range, &mut self.buf, &mut |at, bytes| file.write_all_at(bytes, at))?;
                    self.extracted.bytes += range.len;
                }
                Err(error) => self.reader.report(&error),
            }
        }
        self.give(Made::Open(file.as_fd()), inode);
        Ok(())
    }
}

/// Whether it is useless to go on after this error.
fn is_fatal(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem)
        || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}
