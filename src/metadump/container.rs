//! The two formats of dumps, written (xfsprogs `include/xfs_metadump.h`).

use std::io::{self, IoSlice, Write};

use zerocopy::IntoBytes;

use super::segment::Segment;
use crate::geometry::limits::BASIC_BLOCK;
use crate::ondisk::metadump::{MD_MAGIC_V1, MD_MAGIC_V2, RawMetaExtent, RawMetablock, RawMetadumpHeader};
use crate::ondisk::{Be64, OnDisk};

/// Which format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Blocks of 512 bytes, each with its address, 63 to an index block. The data device only.
    V1,
    /// Extents of three devices.
    V2,
}

/// What the head of a dump says of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    /// Of version 1: `info`. Of version 2: `compat_flags`.
    pub(super) compat: u32,
    /// Of version 2: `incompat_flags`.
    pub(super) incompat: u32,
}

pub(super) const SECTOR: usize = BASIC_BLOCK as usize;
/// Sectors behind an index block.
pub(super) const INDICES: usize = (SECTOR - RawMetablock::SIZE) / size_of::<Be64>();
/// Slices that one call writes.
const SLICES: usize = 1024;

/// Where a dump goes.
pub(super) enum Output {
    Plain(Box<dyn Write + Send>),
    Compressed(zstd::Encoder<'static, Box<dyn Write + Send>>),
}

impl Output {
    pub(super) fn new(output: Box<dyn Write + Send>, compress: bool) -> io::Result<Self> {
        Ok(if compress { Output::Compressed(zstd::Encoder::new(output, LEVEL)?) } else { Output::Plain(output) })
    }

    fn write_slices(&mut self, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        match self {
            Output::Plain(output) => write_slices(&mut **output, slices),
            Output::Compressed(encoder) => slices.iter().try_for_each(|slice| encoder.write_all(slice)),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Output::Plain(mut output) => output.flush(),
            Output::Compressed(encoder) => encoder.finish()?.flush(),
        }
    }
}

/// How hard it is tried to make a dump small: the usual level of zstd.
const LEVEL: i32 = 3;

/// A dump that is being written.
pub(super) struct Container {
    output: Output,
    format: Format,
    info: u8,
    /// Version 1: addresses and contents of an index block that is not full yet.
    addresses: Vec<u64>,
    sectors: Vec<u8>,
    written: u64,
}

impl Container {
    /// Begins a dump: writes its head, if the format has one.
    pub(super) fn new(output: Output, format: Format, flags: Flags) -> io::Result<Self> {
        let info = flags.compat.to_le_bytes()[0];
        let (addresses, sectors) = (Vec::new(), Vec::new());
        let mut container = Container { output, format, info, addresses, sectors, written: 0 };
        if format == Format::V2 {
            let header = RawMetadumpHeader {
                magic: MD_MAGIC_V2.into(),
                version: 2.into(),
                compat_flags: flags.compat.into(),
                incompat_flags: flags.incompat.into(),
                reserved: 0.into(),
            };
            container.output.write_slices(&mut [IoSlice::new(header.as_bytes())])?;
        }
        Ok(container)
    }

    /// Bytes of metadata so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn write(&mut self, segment: &Segment) -> io::Result<()> {
        self.written += segment.bytes().len() as u64;
        match self.format {
            Format::V1 => self.write_v1(segment),
            Format::V2 => self.write_v2(segment),
        }
    }

    /// Ends the dump.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if self.format == Format::V1 {
            self.write_partial()?;
        }
        self.output.finish()
    }

    fn write_v2(&mut self, segment: &Segment) -> io::Result<()> {
        let head = |run: &super::segment::Run| {
            RawMetaExtent::new(run.device, run.daddr, run.sectors).ok_or(io::ErrorKind::InvalidInput)
        };
        let heads = segment.runs().iter().map(head).collect::<Result<Vec<_>, _>>()?;
        let mut rest = segment.bytes();
        let mut slices = Vec::with_capacity(2 * heads.len());
        for (head, run) in heads.iter().zip(segment.runs()) {
            let (contents, after) = rest.split_at(run.sectors as usize * SECTOR);
            slices.push(IoSlice::new(head.as_bytes()));
            slices.push(IoSlice::new(contents));
            rest = after;
        }
        self.output.write_slices(&mut slices)
    }

    fn write_v1(&mut self, segment: &Segment) -> io::Result<()> {
        let mut addresses = segment.runs().iter().flat_map(|run| run.daddr..run.daddr + u64::from(run.sectors));
        let mut rest = segment.bytes();
        if !self.addresses.is_empty() {
            let missing = (INDICES - self.addresses.len()).min(rest.len() / SECTOR);
            self.addresses.extend(addresses.by_ref().take(missing));
            let (contents, after) = rest.split_at(missing * SECTOR);
            self.sectors.extend_from_slice(contents);
            rest = after;
            if self.addresses.len() == INDICES {
                self.write_partial()?;
            }
        }
        let whole = rest.len() / (INDICES * SECTOR);
        let mut indices = Vec::with_capacity(whole);
        for _ in 0..whole {
            indices.push(index_block(self.info, addresses.by_ref().take(INDICES)));
        }
        let mut slices = Vec::with_capacity(2 * whole);
        for index in &indices {
            let (contents, after) = rest.split_at(INDICES * SECTOR);
            slices.push(IoSlice::new(index));
            slices.push(IoSlice::new(contents));
            rest = after;
        }
        self.output.write_slices(&mut slices)?;
        self.addresses.extend(addresses);
        self.sectors.extend_from_slice(rest);
        Ok(())
    }

    /// Writes an index block with what there is; with less than it holds, it is the last one.
    fn write_partial(&mut self) -> io::Result<()> {
        let index = index_block(self.info, self.addresses.drain(..));
        let mut slices = [IoSlice::new(&index), IoSlice::new(&self.sectors)];
        self.output.write_slices(&mut slices)?;
        self.sectors.clear();
        Ok(())
    }
}

fn index_block(info: u8, addresses: impl Iterator<Item = u64>) -> [u8; SECTOR] {
    let mut block = [0; SECTOR];
    let (head, table) = block.split_at_mut(RawMetablock::SIZE);
    let mut count: u16 = 0;
    for (place, address) in table.chunks_exact_mut(size_of::<Be64>()).zip(addresses) {
        place.copy_from_slice(&address.to_be_bytes());
        count += 1;
    }
    let header = RawMetablock { magic: MD_MAGIC_V1.into(), count: count.into(), blocklog: BASIC_BLOCK_LOG, info };
    head.copy_from_slice(header.as_bytes());
    block
}

const BASIC_BLOCK_LOG: u8 = SECTOR.trailing_zeros().to_le_bytes()[0];

/// Writes all of `slices`, many with each call.
fn write_slices(output: &mut dyn Write, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        let most = slices.len().min(SLICES);
        match output.write_vectored(&slices[..most]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
