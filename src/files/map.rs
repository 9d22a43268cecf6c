//! Where the blocks of a file lie.

use crate::error::{Error, Result};
use crate::forms::{Extents, Fork, ForkForm, ForkKind, Inode};
use crate::geometry::{AgBlock, AgNumber, FsBlock, RgBlock, RgNumber, RtBlock};
use crate::ondisk::Extent;
use crate::tree::Reader;

/// Where a mapped extent lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// On the data device: filesystem block, its group and block in the group.
    Data(FsBlock, AgNumber, AgBlock),
    /// In the realtime section: its block, with group and block in the group where there are groups.
    Realtime(RtBlock, Option<(RgNumber, RgBlock)>),
}

/// A part of a file, in filesystem blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First block of the file.
    pub offset: u64,
    /// How many blocks.
    pub len: u64,
    /// Where they lie; `None` for a hole.
    pub address: Option<Address>,
    /// They are allocated, and read as zeroes.
    pub unwritten: bool,
}

/// What a fork holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapped {
    /// Extents.
    Extents,
    /// Bytes in the inode: so many.
    Inline(u64),
    /// Nothing that is mapped.
    Nothing,
}

/// The mappings of a fork in order, holes before and between extents among them.
pub struct Map<'a> {
    reader: &'a Reader<'a>,
    extents: Extents<'a>,
    realtime: bool,
    /// First block behind the mappings so far.
    end: u64,
    /// An extent that comes behind a hole.
    next: Option<Extent>,
}

impl<'a> Map<'a> {
    /// The map of a fork of `inode`, and what the fork holds; no map where it holds no extents.
    ///
    /// # Errors
    /// `Corrupt` when the fork cannot be decoded.
    pub fn open(reader: &'a Reader<'a>, inode: &'a Inode, kind: ForkKind) -> Result<(Mapped, Option<Self>)> {
        let Some(fork) = inode.fork(kind)? else { return Ok((Mapped::Nothing, None)) };
        Ok(match fork.form {
            ForkForm::Extents(_) | ForkForm::Btree(_) => (Mapped::Extents, Some(Self::of(reader, inode, fork))),
            ForkForm::Local(bytes) => (Mapped::Inline(u64::try_from(bytes.len()).unwrap_or(0)), None),
            ForkForm::Device(_) | ForkForm::MetaBtree(_) => (Mapped::Nothing, None),
        })
    }

    fn of(reader: &'a Reader<'a>, inode: &Inode, fork: Fork<'a>) -> Self {
        let realtime = fork.kind == ForkKind::Data && inode.is_realtime();
        Map { reader, extents: fork.extents(reader.source()), realtime, end: 0, next: None }
    }

    fn mapping(&mut self, extent: &Extent) -> Mapping {
        let len = u64::from(extent.blockcount);
        self.end = extent.startoff.saturating_add(len);
        let geometry = self.reader.geometry();
        let address = if self.realtime {
            let rtb = RtBlock(extent.startblock);
            Some(Address::Realtime(rtb, geometry.rtb_parts(rtb)))
        } else {
            let fsb = FsBlock(extent.startblock);
            geometry.fsb_parts(fsb).map(|(agno, agbno)| Address::Data(fsb, agno, agbno))
        };
        Mapping { offset: extent.startoff, len, address, unwritten: extent.unwritten }
    }
}

impl Iterator for Map<'_> {
    type Item = std::result::Result<Mapping, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let extent = match self.next.take() {
            Some(extent) => extent,
            None => match self.extents.next()? {
                Ok(extent) => extent,
                Err(error) => return Some(Err(error)),
            },
        };
        if extent.startoff > self.end {
            let hole = Mapping { offset: self.end, len: extent.startoff - self.end, address: None, unwritten: false };
            self.end = extent.startoff;
            self.next = Some(extent);
            return Some(Ok(hole));
        }
        Some(Ok(self.mapping(&extent)))
    }
}
