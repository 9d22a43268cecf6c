//! Dumps put back onto devices (xfsprogs `mdrestore/xfs_mdrestore.c`).
//!
//! Nothing in a dump is believed before it has been looked at: the superblock says how large the devices are, and what
//! does not lie on them is an error. The superblock is marked as one that is being made until everything is in place.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, sync_channel};

use super::container::{INDICES, SECTOR};
use super::dump_head::{DumpHead, DumpInfo, Sizes, index_block};
use super::restored_superblock::finished;
use super::stream::{CHUNKS_AHEAD, Chunk, Stream, bad, of_input, read_ahead};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::geometry::limits::BASIC_BLOCK;
use crate::ondisk::metadump::{MetaDevice, RawMetaExtent, RawMetadumpHeader};
use crate::ondisk::{OnDisk, RawSuperblock};
use crate::report::Observer;

/// What a stream that zstd made begins with.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Bytes of a new file that need not be written if they are all zero.
const HOLE: u64 = 4096;

/// A device that a dump is put onto.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The device.
    pub device: &'a dyn Device,
    /// It is a file that was just made, and reads as zeroes: zeroes are left out, and nothing waits for the disk.
    pub is_new: bool,
}

/// Devices that a dump is put onto.
#[derive(Clone, Copy, Default)]
pub struct Targets<'a> {
    /// The data device.
    pub data: Option<Target<'a>>,
    /// The log device.
    pub log: Option<Target<'a>>,
    /// The realtime device.
    pub realtime: Option<Target<'a>>,
}

/// A dump that is being read. Its head and the superblock have been looked at.
pub struct DumpReader {
    head: DumpHead,
    /// The bytes that the dump begins with, and what gives the rest of them.
    first: Chunk,
    input: Box<dyn Read + Send>,
    /// Bytes that have been read, compressed or not.
    count: Arc<AtomicU64>,
}

/// Counts the bytes that are read.
struct Counted<R> {
    input: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(bytes)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

impl DumpReader {
    /// Reads the head of a dump, compressed or not, and the superblock in it.
    ///
    /// # Errors
    /// `Usage` when this is no dump, `Unsupported` when it is none that can be restored.
    pub fn open(input: Box<dyn Read + Send>) -> Result<Self> {
        let count = Arc::new(AtomicU64::new(0));
        let mut input: Box<dyn Read + Send> = Box::new(Counted { input, count: count.clone() });
        let mut first = Chunk::read(&mut *input).map_err(|error| of_input(&error))?;
        if first.bytes().starts_with(&ZSTD_MAGIC) {
            let compressed = io::Cursor::new(first.bytes().to_vec()).chain(input);
            input = Box::new(zstd::Decoder::new(compressed).map_err(|error| of_input(&error))?);
            first = Chunk::read(&mut *input).map_err(|error| of_input(&error))?;
        }
        Ok(DumpReader { head: DumpHead::parse(first.bytes())?, first, input, count })
    }

    /// What the head says.
    pub fn info(&self) -> DumpInfo {
        self.head.info
    }

    /// How large the devices are.
    pub fn sizes(&self) -> Sizes {
        self.head.sizes
    }

    /// Writes everything to `targets`, each of which has the size that [`DumpReader::sizes`] says or more. `observer` is
    /// told how many bytes of the input have been read.
    ///
    /// # Errors
    /// `Usage` when the dump is damaged, or a device is missing for what is in it; `Io` when a device cannot be written.
    pub fn restore(self, targets: &Targets<'_>, observer: &dyn Observer) -> Result<()> {
        let DumpReader { head: DumpHead { info, sizes, superblock }, first, input, count } = self;
        let data = targets.data.ok_or_else(|| Error::Usage("there is no data device".to_owned()))?;
        let mut marked = superblock.clone();
        if let Some((sb, _)) = RawSuperblock::prefix_mut(&mut marked) {
            sb.inprogress = 1;
        }
        data.device.write_at(0, &marked)?;
        let restore = Restore { targets, sizes, superblock: superblock.len() as u64 };
        let (full, chunks) = sync_channel(CHUNKS_AHEAD);
        let (spare, used) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut input = Told { input, count, told: 0, observer };
                read_ahead(&mut input, &full, &used);
            });
            // whichever way this ends, the stream is dropped, which ends the reading
            let stream = Stream::new(first, chunks, spare);
            if info.is_v2 { restore.all_of_v2(stream) } else { restore.all_of_v1(stream) }
        })?;
        // A disk may be pulled out: the superblock follows what it stands for. A file that is lost with the system is
        // restored again.
        let all = [targets.log, targets.realtime, targets.data].into_iter().flatten();
        all.filter(|target| !target.is_new).try_for_each(|target| target.device.flush())?;
        data.device.write_at(0, &finished(superblock))?;
        if data.is_new { Ok(()) } else { data.device.flush() }
    }
}

/// Input whose progress is told.
struct Told<'o> {
    input: Box<dyn Read + Send>,
    count: Arc<AtomicU64>,
    told: u64,
    observer: &'o dyn Observer,
}

impl Read for Told<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(bytes);
        let count = self.count.load(Ordering::Relaxed);
        self.observer.advance(count - self.told);
        self.told = count;
        read
    }
}

/// Where everything goes.
struct Restore<'a> {
    targets: &'a Targets<'a>,
    sizes: Sizes,
    /// Bytes of the primary superblock, which is written by itself.
    superblock: u64,
}

impl Restore<'_> {
    fn all_of_v1(&self, mut stream: Stream) -> Result<()> {
        loop {
            let mut index = [0; SECTOR];
            stream.fill(&mut index)?;
            let (_, addresses) = index_block(&index)?;
            let mut left = addresses;
            while let Some(first) = left.first().map(|first| first.get()) {
                let next =
                    left.iter().zip(0..).take_while(|(address, at)| first.checked_add(*at) == Some(address.get()));
                let count = next.count();
                self.contents(&mut stream, MetaDevice::Data, first, count)?;
                left = &left[count..];
            }
            if addresses.len() < INDICES {
                return Ok(());
            }
        }
    }

    fn all_of_v2(&self, mut stream: Stream) -> Result<()> {
        stream.fill(&mut [0; RawMetadumpHeader::SIZE])?;
        while !stream.is_at_end()? {
            let mut head = [0; RawMetaExtent::SIZE];
            stream.fill(&mut head)?;
            let (extent, _) = RawMetaExtent::prefix(&head).ok_or_else(|| bad("an extent"))?;
            let device = extent.device().ok_or_else(|| bad("an extent of an unknown device"))?;
            let sectors = usize::try_from(extent.len.get()).map_err(|_| bad("an extent is too long"))?;
            if sectors == 0 {
                return Err(bad("an extent without contents"));
            }
            self.contents(&mut stream, device, extent.daddr(), sectors)?;
        }
        Ok(())
    }

    /// The next bytes of the stream are the contents of so many units at `daddr` of `device`.
    fn contents(&self, stream: &mut Stream, device: MetaDevice, daddr: u64, sectors: usize) -> Result<()> {
        let (target, size, name) = match device {
            MetaDevice::Data => (self.targets.data, self.sizes.data, "data"),
            MetaDevice::Log => (self.targets.log, self.sizes.log, "log"),
            MetaDevice::Realtime => (self.targets.realtime, self.sizes.realtime, "realtime"),
        };
        let bytes = |units: u64| units.checked_mul(u64::from(BASIC_BLOCK));
        let end = daddr.checked_add(sectors as u64).and_then(bytes).filter(|end| *end <= size);
        let (Some(mut at), Some(end)) = (bytes(daddr), end) else {
            let what = format!("{sectors} units of 512 bytes at {daddr}, and the {name} device has {size} bytes");
            return Err(bad(what));
        };
        let target = target.ok_or_else(|| Error::Usage(format!("the dump needs a {name} device")))?;
        // the superblock that was marked stays until the end
        let from = if device == MetaDevice::Data { self.superblock } else { 0 };
        while at < end {
            let bytes = stream.take(usize::try_from(end - at).unwrap_or(usize::MAX))?;
            let skip = usize::try_from(from.saturating_sub(at)).unwrap_or(usize::MAX).min(bytes.len());
            target.write(at + skip as u64, &bytes[skip..])?;
            at += bytes.len() as u64;
        }
        Ok(())
    }
}

impl Target<'_> {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        if !self.is_new {
            return self.device.write_at(offset, bytes);
        }
        // only what is not zero, in runs as long as possible
        let (mut from, mut at) = (0, 0);
        while at < bytes.len() {
            let to_boundary = usize::try_from(HOLE - (offset + at as u64) % HOLE).unwrap_or(usize::MAX);
            let end = bytes.len().min(at.saturating_add(to_boundary));
            if is_zero(&bytes[at..end]) {
                self.write_some(offset, bytes, from, at)?;
                from = end;
            }
            at = end;
        }
        self.write_some(offset, bytes, from, at)
    }

    fn write_some(&self, offset: u64, bytes: &[u8], from: usize, end: usize) -> Result<()> {
        if from < end { self.device.write_at(offset + from as u64, &bytes[from..end]) } else { Ok(()) }
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    // most blocks say in their first bytes that they are not
    bytes.chunks(256).all(|part| part.iter().fold(0, |sum, byte| sum | byte) == 0)
}
