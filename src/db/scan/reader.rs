//! Blocks for scans: read past the cache, since each is looked at once, by many threads.

use crate::buffer::{BlockKind, Fragment, Request};
use crate::device::Device;
use crate::error::{Error, Verdict};
use crate::geometry::{Daddr, Geometry, Ino};
use crate::image::Image;
use crate::report::Observer;

/// Reads blocks and tells the observer of those that are damaged or cannot be read.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    image: &'a Image,
    observer: &'a dyn Observer,
}

impl<'a> Reader<'a> {
    pub fn new(image: &'a Image, observer: &'a dyn Observer) -> Self {
        Reader { image, observer }
    }

    pub fn geometry(&self) -> &'a Geometry {
        self.image.geometry()
    }

    pub fn observer(&self) -> &'a dyn Observer {
        self.observer
    }

    pub fn image(&self) -> &'a Image {
        self.image
    }

    /// Where block `agbno` of group `agno` would lie, whether there is such a block or not.
    pub fn daddr(&self, agno: u32, agbno: u64) -> Option<Daddr> {
        let geometry = self.geometry();
        let block = (u64::from(agno) * u64::from(geometry.agblocks)).checked_add(agbno)?;
        geometry.blocks_to_basic_blocks(block).map(Daddr)
    }

    /// Where filesystem block `fsb` would lie.
    pub fn fsb_daddr(&self, fsb: u64) -> Option<Daddr> {
        let log = self.geometry().agblklog;
        let agno = u32::try_from(fsb >> log).ok()?;
        self.daddr(agno, fsb & ((1 << log) - 1))
    }

    /// The bytes of a block, damaged or not; `None` when they cannot be read.
    pub fn block(&self, kind: BlockKind, daddr: Daddr) -> Option<Vec<u8>> {
        self.request(&Request::new(self.geometry(), kind, daddr))
    }

    /// The bytes of a block that belongs to an inode.
    pub fn block_of(&self, kind: BlockKind, daddr: Daddr, ino: u64) -> Option<Vec<u8>> {
        self.request(&Request::new(self.geometry(), kind, daddr).of_inode(Ino(ino)))
    }

    /// The bytes of the block that `request` asks for.
    pub fn request(&self, request: &Request) -> Option<Vec<u8>> {
        let bytes = self.raw(&request.fragments)?;
        self.warn(&self.image.cache().verifier().verify(request, &bytes));
        Some(bytes)
    }

    /// Bytes of the data device, not verified; `None` when they cannot be read.
    pub fn raw(&self, fragments: &[Fragment]) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        for fragment in fragments {
            let start = bytes.len();
            bytes.resize(start + usize::try_from(fragment.len).ok()?, 0);
            self.fill(fragment.daddr, &mut bytes[start..])?;
        }
        Some(bytes)
    }

    /// Fills `bytes` from `daddr` of the data device on.
    pub fn fill(&self, daddr: Daddr, bytes: &mut [u8]) -> Option<()> {
        let device: &dyn Device = self.image.data();
        let read = match self.geometry().daddr_offset(daddr) {
            Some(offset) => device.read_at(offset, bytes),
            None => Err(Error::Usage(format!("there is no disk address {daddr}"))),
        };
        read.map_err(|error| self.observer.warn(&error)).ok()
    }

    /// Tells of every check that failed.
    pub fn warn(&self, verdict: &Verdict) {
        for failure in verdict.failures() {
            self.observer.warn(&Error::Corrupt(Box::new(failure.clone())));
        }
    }

    /// Every check that an inode fails is told.
    pub fn check_inode(&self, ino: u64, bytes: &[u8]) {
        self.warn(&self.image.cache().verifier().verify_inode(Ino(ino), bytes));
    }
}
