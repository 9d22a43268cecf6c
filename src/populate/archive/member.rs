//! Members: headers, and what extends them.

use super::header::{Header, Numbers, kind};
use super::number;
use super::records::Records;
use super::sparse::Sparse;
use super::stream::{BLOCK, Stream};
use crate::error::{Error, Result};
use crate::ondisk::Timestamp;
use crate::ondisk::dinode::DeviceNumber;
use crate::populate::data::Bytes;
use crate::populate::filling::device;
use crate::report::name::escape;

/// Most bytes of a path. Linux takes 4096 at once.
const MOST_PATH: u64 = 1 << 16;
/// Most bytes of records of a member. Each of its attributes may have 64 KiB, and the map of a sparse file may be long.
const MOST_RECORDS: u64 = 64 << 20;
const OUT_OF_RANGE: &str = "a number in its header is out of range, or is none";

/// What kind of file a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberKind {
    Regular,
    HardLink,
    Symlink,
    CharDevice(DeviceNumber),
    BlockDevice(DeviceNumber),
    Directory,
    Fifo,
}

/// A member.
pub(super) struct Member {
    pub kind: MemberKind,
    /// Its path as it stands in the archive.
    pub path: Vec<u8>,
    /// Target of a link.
    pub link: Vec<u8>,
    pub permissions: u16,
    pub uid: u32,
    pub gid: u32,
    pub mtime: Timestamp,
    pub atime: Option<Timestamp>,
    /// Where it holds data, when it is sparse.
    pub sparse: Option<Sparse>,
    /// Bytes of data that are in the archive.
    pub stored: u64,
    /// Extended header records.
    pub records: Records,
    /// Names of user and group; empty where there are none.
    pub user: Vec<u8>,
    pub group: Vec<u8>,
}

/// The members of an archive, one after the other.
pub(super) struct Members<'a> {
    stream: Stream<'a>,
    global: Records,
    /// Bytes of the member's data that were not read.
    left: u64,
    /// Bytes behind them up to a block.
    padding: u64,
    any: bool,
}

/// What precedes a header and is about it.
#[derive(Default)]
struct Before {
    records: Option<Records>,
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
}

impl<'a> Members<'a> {
    /// The members of an archive.
    pub fn new(stream: Stream<'a>) -> Self {
        Members { stream, global: Records::default(), left: 0, padding: 0, any: false }
    }

    /// An error of the archive.
    pub fn error(&self, problem: impl std::fmt::Display) -> Error {
        self.stream.error(problem)
    }

    /// Reads what follows the end of the archive; whether it is nothing but zeroes.
    pub fn finish(&mut self) -> Result<bool> {
        self.stream.drain()
    }

    /// The next member; `None` at the end of the archive, which a block of zeroes marks. What was not read of the last one's
    /// data is passed over.
    pub fn next(&mut self) -> Result<Option<Member>> {
        let mut before = Before::default();
        loop {
            let left = std::mem::take(&mut self.left) + std::mem::take(&mut self.padding);
            self.stream.skip(left)?;
            let Some(block) = self.stream.block()? else {
                return Err(self.error("ends without the block of zeroes that ends an archive: it is cut off"));
            };
            if block == [0; BLOCK] {
                return if before.is_empty() {
                    Ok(None)
                } else {
                    Err(self.error("ends before a member that was announced"))
                };
            }
            let Some(header) = Header::new(&block) else {
                let problem =
                    if self.any { "is damaged: there is no header where one should be" } else { "is no tar archive" };
                return Err(self.error(problem));
            };
            self.any = true;
            let numbers = header.numbers();
            let size = numbers.size.and_then(|size| u64::try_from(size).ok());
            let size = size.ok_or_else(|| self.error(format!("{}: {OUT_OF_RANGE}", escape(&header.path()))))?;
            match header.kind() {
                kind::RECORDS | kind::SOLARIS_RECORDS => {
                    let bytes = self.text(size, MOST_RECORDS)?;
                    let records = before.records.get_or_insert_default();
                    records.read(&bytes).map_err(|problem| self.error(problem))?;
                }
                kind::GLOBAL_RECORDS => {
                    let bytes = self.text(size, MOST_RECORDS)?;
                    self.global.read(&bytes).map_err(|problem| self.error(problem))?;
                    self.global.keep_last();
                }
                kind::GNU_NAME => before.path = Some(self.path_text(size)?),
                kind::GNU_LINK => before.link = Some(self.path_text(size)?),
                kind::GNU_VOLUME => self.expect(size),
                _ => return self.member(&header, &numbers, size, before).map(Some),
            }
        }
    }

    fn expect(&mut self, size: u64) {
        self.left = size;
        self.padding = size.next_multiple_of(BLOCK as u64) - size;
    }

    /// The data of a member that is about another one.
    fn text(&mut self, size: u64, most: u64) -> Result<Vec<u8>> {
        if size > most {
            return Err(self.error(format!("a header is extended by {size} bytes, which is too much")));
        }
        self.expect(size);
        let mut text = vec![0; usize::try_from(size).unwrap_or(0)];
        self.fill(&mut text)?;
        Ok(text)
    }

    fn path_text(&mut self, size: u64) -> Result<Vec<u8>> {
        let text = self.text(size, MOST_PATH)?;
        Ok(text.split(|byte| *byte == 0).next().unwrap_or_default().to_vec())
    }

    fn member(&mut self, header: &Header, numbers: &Numbers, size: u64, before: Before) -> Result<Member> {
        let is_extended = before.records.is_some();
        let records = before.records.unwrap_or_default().over(&self.global);
        let path = records.last("GNU.sparse.name").or_else(|| records.last("path")).map(<[u8]>::to_vec);
        let path = path.or(before.path).unwrap_or_else(|| header.path());
        let link = records.last("linkpath").map(<[u8]>::to_vec);
        let link = link.or(before.link).unwrap_or_else(|| header.link().to_vec());
        let shown = escape(&path);
        let error = |stream: &Stream<'_>, problem: &str| stream.error(format!("{shown}: {problem}"));

        let number = |key: &str, field: Option<i64>| match records.last(key) {
            Some(text) => number::decimal(text),
            None => field.and_then(|field| u64::try_from(field).ok()),
        };
        let id =
            |key: &str, field| number(key, field).and_then(|id| u32::try_from(id).ok()).filter(|id| *id != u32::MAX);
        let time = |key: &str| records.last(key).map(|text| number::time(text).ok_or(()));
        let seconds = |seconds| Timestamp { seconds, nanoseconds: 0 };
        let (Some(uid), Some(gid), Some(mode)) = (id("uid", numbers.uid), id("gid", numbers.gid), numbers.mode) else {
            return Err(error(&self.stream, OUT_OF_RANGE));
        };
        let mtime = time("mtime").unwrap_or_else(|| numbers.mtime.map(seconds).ok_or(()));
        let (Ok(mtime), Ok(atime)) = (mtime, time("atime").transpose()) else {
            return Err(error(&self.stream, "a time in its header is out of range, or is none"));
        };
        let mut size = match records.last("size") {
            Some(text) => number::decimal(text).ok_or_else(|| error(&self.stream, OUT_OF_RANGE))?,
            None => size,
        };
        let letter = header.kind();
        let device = |stream: &Stream<'_>| {
            let (major, minor) = (number("SCHILY.devmajor", numbers.major), number("SCHILY.devminor", numbers.minor));
            let (major, minor) = major.zip(minor).ok_or_else(|| error(stream, OUT_OF_RANGE))?;
            device(major, minor).map_err(|problem| error(stream, &problem))
        };
        let kind = match letter {
            // that is how folders were marked when there was no letter for them
            kind::FILE | kind::OLD_FILE if path.ends_with(b"/") => MemberKind::Directory,
            kind::FILE | kind::OLD_FILE | kind::CONTIGUOUS | kind::GNU_SPARSE => MemberKind::Regular,
            kind::HARD_LINK => MemberKind::HardLink,
            kind::SYMLINK => MemberKind::Symlink,
            kind::CHARACTER => MemberKind::CharDevice(device(&self.stream)?),
            kind::BLOCK => MemberKind::BlockDevice(device(&self.stream)?),
            kind::DIRECTORY | kind::GNU_FOLDER => MemberKind::Directory,
            kind::FIFO => MemberKind::Fifo,
            kind::GNU_CONTINUED => {
                return Err(error(&self.stream, "is the rest of a file that begins in another archive"));
            }
            other => {
                let letter = escape(&[other]);
                return Err(error(&self.stream, &format!("is of a kind that is not known ({letter})")));
            }
        };
        // many programs note a size where no data follows
        let has_data = match kind {
            MemberKind::Regular => true,
            MemberKind::HardLink => is_extended,
            _ => letter == kind::GNU_FOLDER,
        };
        if !has_data {
            size = 0;
        }
        let mut sparse = None;
        if letter == kind::GNU_SPARSE {
            sparse = Some(Sparse::from_header(header, &mut self.stream)?);
        } else if kind == MemberKind::Regular {
            sparse = Sparse::from_records(&records, size, &mut self.stream)?;
        }
        self.expect(size);
        let stored = size - sparse.as_ref().map_or(0, |sparse| sparse.map_bytes);
        self.left = stored;
        if sparse.as_ref().is_some_and(|sparse| sparse.stored() != stored) || i64::try_from(size).is_err() {
            return Err(error(&self.stream, "its size is not that of its data"));
        }
        let name = |key: &str, field: &[u8]| records.last(key).unwrap_or(field).to_vec();
        let (user, group) = header.names();
        let (user, group) = (name("uname", user), name("gname", group));
        let permissions = u16::try_from(mode & 0o7777).unwrap_or(0);
        Ok(Member { kind, path, link, permissions, uid, gid, mtime, atime, sparse, stored, user, group, records })
    }
}

impl Before {
    fn is_empty(&self) -> bool {
        self.records.is_none() && self.path.is_none() && self.link.is_none()
    }
}

impl Bytes for Members<'_> {
    fn fill(&mut self, buf: &mut [u8]) -> Result<()> {
        let len = u64::try_from(buf.len()).unwrap_or(u64::MAX);
        let left = self.left.checked_sub(len);
        self.left = left.ok_or_else(|| Error::Internal("more was read of a member than it has".into()))?;
        self.stream.fill(buf)
    }
}
