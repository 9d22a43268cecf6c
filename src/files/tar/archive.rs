//! The files of a tree, one after the other.

use std::collections::HashMap;
use std::io::{self, Write};

use super::header::{self, BLOCK, Header, kind};
use super::records::Records;
use super::sparse::{Data, too_many};
use crate::forms::{FileType, Inode};
use crate::tree::Order;
use crate::tree::Reader;
use crate::tree::Stat;
use crate::tree::Xattrs;
use crate::tree::zeroes;
use crate::tree::{Event, Next, Visited, walk};

/// Archives end at a multiple of this many bytes.
const RECORD: u64 = 10_240;

/// What was archived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Archived {
    /// Members.
    pub members: u64,
    /// Bytes of the archive.
    pub bytes: u64,
    /// Sockets, for which an archive has no kind of member.
    pub sockets: u64,
    /// Files whose contents are not known, which were left out.
    pub lost: u64,
}

/// Counts what goes through it.
struct Counted<'o> {
    out: &'o mut dyn Write,
    bytes: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let written = self.out.write(buf)?;
        self.bytes += u64::try_from(written).unwrap_or(0);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// An archive that is being written. [`Archive::finish`] must be called in the end.
pub struct Archive<'a> {
    reader: &'a Reader<'a>,
    out: Counted<'a>,
    records: Records,
    buf: Vec<u8>,
    name: Vec<u8>,
    /// The member of each file with more than one link that is in the archive.
    links: HashMap<u64, Box<[u8]>>,
    archived: Archived,
}

impl<'a> Archive<'a> {
    /// Writes to `out`, which had better be buffered.
    pub fn new(reader: &'a Reader<'a>, out: &'a mut dyn Write) -> Self {
        Archive {
            reader,
            out: Counted { out, bytes: 0 },
            records: Records::default(),
            buf: Vec::new(),
            name: Vec::new(),
            links: HashMap::new(),
            archived: Archived::default(),
        }
    }

    /// Adds `start` and all below it, under the name `prefix`, whose last byte is no slash.
    ///
    /// # Errors
    /// Those of the output. Damage is reported to the reader.
    pub fn add(&mut self, prefix: &[u8], start: &Inode) -> io::Result<()> {
        walk(self.reader, start, Order::Stored, &mut |event| {
            if let Event::Enter(at) = event {
                self.member(prefix, &at)?;
                self.reader.observer().advance(1);
            }
            Ok(Next::Descend)
        })
    }

    /// Two blocks of zeroes end an archive.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<Archived> {
        let end = (self.out.bytes + 2 * 512).next_multiple_of(RECORD);
        let left = end - self.out.bytes;
        zeroes(&mut self.out, left)?;
        self.out.flush()?;
        self.archived.bytes = self.out.bytes;
        Ok(self.archived)
    }

    fn member(&mut self, prefix: &[u8], at: &Visited<'_>) -> io::Result<()> {
        let Some(stat) = Stat::of(self.reader, at.inode) else { return Ok(()) };
        self.name.clear();
        self.name.extend_from_slice(prefix);
        if !at.path.is_empty() {
            self.name.push(b'/');
            self.name.extend_from_slice(at.path);
        }
        self.records.clear();
        if stat.file_type != FileType::Directory && stat.nlink > 1 {
            if let Some(first) = self.links.get(&stat.ino.0).cloned() {
                return self.put(&stat, kind::HARD_LINK, &first, 0);
            }
            self.links.insert(stat.ino.0, self.name.as_slice().into());
        }
        match stat.file_type {
            FileType::Directory => {
                self.name.push(b'/');
                self.put_with_xattrs(at.inode, &stat, kind::DIRECTORY, b"")
            }
            FileType::Regular => self.file(at.inode, &stat),
            FileType::Symlink => match self.reader.target(at.inode) {
                Ok(target) => self.put_with_xattrs(at.inode, &stat, kind::SYMLINK, &target),
                Err(error) => {
                    self.reader.report(&error);
                    self.lose(&stat);
                    Ok(())
                }
            },
            FileType::CharDevice => self.put_with_xattrs(at.inode, &stat, kind::CHARACTER, b""),
            FileType::BlockDevice => self.put_with_xattrs(at.inode, &stat, kind::BLOCK, b""),
            FileType::Fifo => self.put_with_xattrs(at.inode, &stat, kind::FIFO, b""),
            FileType::Socket => {
                self.archived.sockets += 1;
                self.links.remove(&stat.ino.0);
                Ok(())
            }
        }
    }

    /// A file that cannot be archived; other links to it cannot be either.
    fn lose(&mut self, stat: &Stat) {
        self.archived.lost += 1;
        self.links.remove(&stat.ino.0);
    }

    fn put_with_xattrs(&mut self, inode: &Inode, stat: &Stat, kind: u8, link: &[u8]) -> io::Result<()> {
        self.xattrs(inode);
        self.put(stat, kind, link, 0)
    }

    fn xattrs(&mut self, inode: &Inode) {
        let xattrs = Xattrs::read(self.reader, inode);
        for xattr in &xattrs.list {
            self.records.put_xattr(&xattr.name, &xattr.value);
        }
        for (key, acl) in [("SCHILY.acl.access", &xattrs.access), ("SCHILY.acl.default", &xattrs.default)] {
            if let Some(acl) = acl {
                self.records.put(key.as_bytes(), acl.to_text().as_bytes());
            }
        }
    }

    fn file(&mut self, inode: &Inode, stat: &Stat) -> io::Result<()> {
        let Some(data) = Data::read(self.reader, inode) else {
            self.lose(stat);
            return Ok(());
        };
        self.xattrs(inode);
        let written = if data.is_cut {
            self.reader.report(&too_many(inode));
            self.put(stat, kind::FILE, b"", data.size)?;
            self.reader.cat(inode, &mut self.out)?;
            data.size
        } else if data.is_sparse() {
            let map = data.map();
            let size = data.stored + u64::try_from(map.len()).expect("invariant: memory holds fewer than 2^64 bytes");
            self.put_sparse(stat, &data, size)?;
            self.out.write_all(&map)?;
            data.write(self.reader, inode, &mut self.buf, &mut self.out)?;
            size
        } else {
            self.put(stat, kind::FILE, b"", data.size)?;
            data.write(self.reader, inode, &mut self.buf, &mut self.out)?;
            data.size
        };
        zeroes(&mut self.out, written.next_multiple_of(BLOCK as u64) - written)
    }

    /// Readers that know nothing of sparse files see the map and the data under a name that says so.
    fn put_sparse(&mut self, stat: &Stat, data: &Data, size: u64) -> io::Result<()> {
        self.records.put(b"GNU.sparse.major", b"1");
        self.records.put(b"GNU.sparse.minor", b"0");
        self.records.put_name("GNU.sparse.name", &self.name);
        self.records.put_number("GNU.sparse.realsize", data.size);
        let (folder, last) = match self.name.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => self.name.split_at(slash + 1),
            None => (&b""[..], &self.name[..]),
        };
        let mut name = [folder, b"GNUSparseFile.0/", last].concat();
        if header::split(&name).is_none() {
            name = [b"GNUSparseFile.0/", &last[..last.len().min(80)]].concat();
        }
        std::mem::swap(&mut self.name, &mut name);
        let result = self.put(stat, kind::FILE, b"", size);
        self.name = name;
        result
    }

    /// Writes the header of the member `self.name`, after records for what it cannot say.
    fn put(&mut self, stat: &Stat, kind: u8, link: &[u8], size: u64) -> io::Result<()> {
        if header::split(&self.name).is_none() {
            self.records.put_name("path", &self.name);
        }
        if !header::link_fits(link) {
            self.records.put_name("linkpath", link);
        }
        if size > header::LARGEST_LONG {
            self.records.put_number("size", size);
        }
        if kind != kind::HARD_LINK {
            for (key, id) in [("uid", stat.uid), ("gid", stat.gid)] {
                if !header::id_fits(id) {
                    self.records.put_number(key, u64::from(id));
                }
            }
            if stat.mtime.nanoseconds != 0 || !header::time_fits(stat.mtime.seconds) {
                self.records.put_time("mtime", stat.mtime);
            }
            self.records.put_time("atime", stat.atime);
        }
        if !self.records.is_empty() {
            let mtime = stat.mtime.seconds;
            self.records.write(&self.name, mtime, &mut self.out)?;
        }
        let device = stat.device.unwrap_or_default();
        let header = Header {
            name: &self.name,
            mode: u32::from(stat.permissions),
            uid: stat.uid,
            gid: stat.gid,
            size,
            mtime: stat.mtime.seconds,
            kind,
            link,
            major: device.major,
            minor: device.minor,
        };
        header.write(&mut self.out)?;
        self.archived.members += 1;
        Ok(())
    }
}
