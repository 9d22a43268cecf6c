//! A piece of a dump: contents, and where on which device they belong.

use crate::device::Device;
use crate::error::Result;
use crate::geometry::limits::BASIC_BLOCK;
use crate::ondisk::metadump::MetaDevice;

/// Contiguous units of 512 bytes of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The device.
    pub(super) device: MetaDevice,
    /// Where they start.
    pub(super) daddr: u64,
    /// How many.
    pub(super) sectors: u32,
}

/// Contents of some runs, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Segment {
    bytes: Vec<u8>,
    runs: Vec<Run>,
}

impl Segment {
    /// The contents.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where they belong.
    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Forgets everything, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.runs.clear();
    }

    /// Adds `bytes`, whole units of 512, which belong at `daddr`.
    pub(super) fn append(&mut self, device: MetaDevice, daddr: u64, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.add_run(device, daddr, bytes.len());
    }

    /// Adds `len` bytes, whole units of 512, from `daddr` of `from`, at whose byte `start` address 0 is.
    pub(super) fn read(
        &mut self,
        from: &dyn Device,
        start: u64,
        device: MetaDevice,
        daddr: u64,
        len: usize,
    ) -> Result<()> {
        let old = self.bytes.len();
        self.bytes.resize(old + len, 0);
        let offset = start.saturating_add(daddr.saturating_mul(u64::from(BASIC_BLOCK)));
        if let Err(error) = from.read_at(offset, &mut self.bytes[old..]) {
            self.bytes.truncate(old);
            return Err(error);
        }
        self.add_run(device, daddr, len);
        Ok(())
    }

    fn add_run(&mut self, device: MetaDevice, daddr: u64, len: usize) {
        let sectors = u32::try_from(len / BASIC_BLOCK as usize).expect("invariant: pieces of a segment are small");
        // the primary superblock stays alone, so that a reader finds it as the first run
        if let Some(last) = self.runs.last_mut()
            && last.device == device
            && last.daddr != 0
            && last.daddr + u64::from(last.sectors) == daddr
        {
            last.sectors += sectors;
            return;
        }
        self.runs.push(Run { device, daddr, sectors });
    }
}
