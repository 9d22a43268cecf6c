//! Dumps put back onto devices (xfsprogs `mdrestore/xfs_mdrestore.c`).
//!
//! Nothing in a dump is believed before it has been looked at: the superblock says how large the devices are, and what
//! does not lie on them is an error. The superblock is marked as one that is being made until everything is in place.

use std::io::{self, BufReader, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use zerocopy::IntoBytes;

use super::container::{Format, INDICES};
use super::restored_superblock::finished;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::geometry::limits::BASIC_BLOCK;
use crate::ondisk::metadump::{
    COMPAT_DIRTYLOG, COMPAT_EXTERNALLOG, COMPAT_FULLBLOCKS, COMPAT_OBFUSCATED, INCOMPAT_RTDEVICE, INFO_DIRTYLOG,
    INFO_FLAGS, INFO_FULLBLOCKS, INFO_OBFUSCATED, MD_MAGIC_V1, MD_MAGIC_V2, MetaDevice, RawMetaExtent, RawMetablock,
    RawMetadumpHeader, index_addresses,
};
use crate::ondisk::{OnDisk, RawSuperblock};
use crate::report::Observer;

const SECTOR: usize = BASIC_BLOCK as usize;
/// Bytes that are written at once.
const PIECE: usize = 1 << 20;
/// Pieces between the thread that reads and the one that writes.
const PIECES: usize = 8;
/// What a stream that zstd made begins with.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Bytes of a new file that need not be written if they are all zero.
const HOLE: usize = 4096;

/// What the head of a dump says of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpInfo {
    /// Version 2 of the format.
    pub is_v2: bool,
    /// The other fields mean something; always in version 2.
    pub has_flags: bool,
    /// Names are replaced.
    pub obscured: bool,
    /// The log was dirty.
    pub dirty_log: bool,
    /// Blocks are whole, with what means nothing.
    pub full_blocks: bool,
    /// An external log is in the dump.
    pub external_log: bool,
    /// A realtime device is in the dump.
    pub realtime: bool,
}

/// How large the devices of a dump are, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The data device.
    pub data: u64,
    /// The log device; 0 when there is none.
    pub log: u64,
    /// The realtime device; 0 when there is none.
    pub realtime: u64,
}

/// Devices that a dump is put onto.
#[derive(Default)]
pub struct Targets<'a> {
    /// The data device, and whether all of it reads as zeroes.
    pub data: Option<(&'a dyn Device, bool)>,
    /// The log device.
    pub log: Option<(&'a dyn Device, bool)>,
    /// The realtime device.
    pub realtime: Option<(&'a dyn Device, bool)>,
}

/// A dump that is being read. Its head and the superblock have been looked at.
pub struct DumpReader {
    input: Box<dyn Read + Send>,
    info: DumpInfo,
    sizes: Sizes,
    superblock: Vec<u8>,
    /// What was read with the superblock: contents of version 1 that are to be written first.
    first: Vec<Piece>,
    /// Version 1: whether the index block that was read first was the last.
    ended: bool,
}

/// Contents, and where they belong.
struct Piece {
    device: MetaDevice,
    daddr: u64,
    bytes: Vec<u8>,
    /// Bytes of the dump that have been read with it.
    consumed: u64,
}

impl Piece {
    /// The address behind it; `None` when there is none.
    fn end(&self) -> Option<u64> {
        self.daddr.checked_add((self.bytes.len() / SECTOR) as u64)
    }
}

fn bad(what: impl Into<String>) -> Error {
    Error::Usage(format!("the dump is damaged: {}", what.into()))
}

fn of_input(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => bad("it ends too early"),
        _ => Error::Usage(format!("cannot read the dump: {error}")),
    }
}

fn fill(input: &mut dyn Read, bytes: &mut [u8]) -> Result<()> {
    input.read_exact(bytes).map_err(|error| of_input(&error))
}

impl DumpReader {
    /// Reads the head of a dump, compressed or not, and the superblock in it.
    ///
    /// # Errors
    /// `Usage` when this is no dump, or none that can be restored.
    pub fn open(input: Box<dyn Read + Send>) -> Result<Self> {
        let mut input = input;
        let mut magic = [0; 4];
        fill(&mut *input, &mut magic)?;
        let chained = io::Cursor::new(magic).chain(input);
        if magic == ZSTD_MAGIC {
            let decoder = zstd::Decoder::new(chained).map_err(|error| of_input(&error))?;
            let mut input: Box<dyn Read + Send> = Box::new(BufReader::with_capacity(PIECE, decoder));
            fill(&mut *input, &mut magic)?;
            return Self::of_stream(Box::new(io::Cursor::new(magic).chain(input)), magic);
        }
        Self::of_stream(Box::new(BufReader::with_capacity(PIECE, chained)), magic)
    }

    fn of_stream(input: Box<dyn Read + Send>, magic: [u8; 4]) -> Result<Self> {
        let info = DumpInfo::default();
        let sizes = Sizes { data: 0, log: 0, realtime: 0 };
        let mut reader = DumpReader { input, info, sizes, superblock: Vec::new(), first: Vec::new(), ended: false };
        match u32::from_be_bytes(magic) {
            MD_MAGIC_V1 => reader.open_v1()?,
            MD_MAGIC_V2 => reader.open_v2()?,
            _ => return Err(Error::Usage("this is no metadata dump".to_owned())),
        }
        Ok(reader)
    }

    /// What the head says.
    pub fn info(&self) -> DumpInfo {
        self.info
    }

    /// The format.
    pub fn format(&self) -> Format {
        if self.info.is_v2 { Format::V2 } else { Format::V1 }
    }

    /// How large the devices are.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn open_v1(&mut self) -> Result<()> {
        let mut index = [0; SECTOR];
        fill(&mut *self.input, &mut index)?;
        let flags = RawMetablock::prefix(&index).map_or(0, |(head, _)| head.info);
        let is_set = |bit: u8| flags & bit != 0;
        self.info = DumpInfo {
            has_flags: is_set(INFO_FLAGS),
            obscured: is_set(INFO_OBFUSCATED),
            dirty_log: is_set(INFO_DIRTYLOG),
            full_blocks: is_set(INFO_FULLBLOCKS),
            ..DumpInfo::default()
        };
        let (pieces, last) = read_index_block(&mut *self.input, &index)?;
        let first = pieces.first().filter(|piece| piece.daddr == 0);
        let first = first.ok_or_else(|| bad("it does not begin with the primary superblock"))?;
        self.superblock.clone_from(&first.bytes);
        (self.first, self.ended) = (pieces, last);
        self.look_at_superblock()
    }

    fn open_v2(&mut self) -> Result<()> {
        let mut head = [0; RawMetadumpHeader::SIZE];
        fill(&mut *self.input, &mut head)?;
        let (head, _) = RawMetadumpHeader::prefix(&head).ok_or_else(|| bad("its head"))?;
        if head.version.get() != 2 {
            return Err(Error::Unsupported(format!("version {} of the format", head.version)));
        }
        if head.incompat_flags.get() & !INCOMPAT_RTDEVICE != 0 || head.reserved.get() != 0 {
            return Err(Error::Unsupported(format!(
                "the dump uses something unknown: flags {:#x}, {:#x}",
                head.incompat_flags, head.reserved
            )));
        }
        let is_set = |bit: u32| head.compat_flags.get() & bit != 0;
        self.info = DumpInfo {
            is_v2: true,
            has_flags: true,
            obscured: is_set(COMPAT_OBFUSCATED),
            dirty_log: is_set(COMPAT_DIRTYLOG),
            full_blocks: is_set(COMPAT_FULLBLOCKS),
            external_log: is_set(COMPAT_EXTERNALLOG),
            realtime: head.incompat_flags.get() & INCOMPAT_RTDEVICE != 0,
        };
        let extent = read_extent_head(&mut *self.input)?.ok_or_else(|| bad("there is nothing in it"))?;
        // nothing is known yet of the sizes: a superblock has a sector
        let len = extent.len.get() as usize;
        if extent.addr.get() != 0 || len == 0 || len > PIECE / SECTOR {
            return Err(bad("it does not begin with the primary superblock"));
        }
        let mut bytes = vec![0; len * SECTOR];
        fill(&mut *self.input, &mut bytes)?;
        self.superblock.clone_from(&bytes);
        let consumed = (RawMetadumpHeader::SIZE + RawMetaExtent::SIZE + bytes.len()) as u64;
        self.first = vec![Piece { device: MetaDevice::Data, daddr: 0, bytes, consumed }];
        self.look_at_superblock()
    }

    fn look_at_superblock(&mut self) -> Result<()> {
        let (sb, _) = RawSuperblock::prefix(&self.superblock).ok_or_else(|| bad("the superblock is cut short"))?;
        if sb.magicnum.get() != RawSuperblock::MAGIC {
            return Err(bad("the first block is no superblock"));
        }
        let (block, sector) = (sb.blocksize.get(), usize::from(sb.sectsize.get()));
        let sizes_fit = block.is_power_of_two() && (512..=65_536).contains(&block);
        if !sizes_fit || !sector.is_power_of_two() || !(512..=32_768).contains(&sector) {
            return Err(bad(format!("blocks of {block} and sectors of {sector} bytes")));
        }
        if self.superblock.len() < sector {
            return Err(bad("the superblock is cut short"));
        }
        let bytes = |blocks: u64| blocks.checked_mul(u64::from(block)).filter(|&bytes| i64::try_from(bytes).is_ok());
        let features = crate::geometry::Features::from_superblock(sb);
        let start = if features.has_zoned() { sb.rtstart.get() } else { 0 };
        let inside = start > 0;
        let all = if inside { start.checked_add(sb.rblocks.get()) } else { Some(sb.dblocks.get()) };
        let realtime = if inside { 0 } else { sb.rblocks.get() };
        let log = if sb.logstart.get() == 0 { u64::from(sb.logblocks.get()) } else { 0 };
        let sizes = all.and_then(bytes).zip(bytes(log)).zip(bytes(realtime));
        let ((data, log), realtime) = sizes.ok_or_else(|| bad("devices larger than any can be"))?;
        if data == 0 {
            return Err(bad("a data device without blocks"));
        }
        self.sizes = Sizes { data, log, realtime };
        self.superblock.truncate(sector);
        Ok(())
    }

    /// Writes everything to `targets`, each of which has the size that [`DumpReader::sizes`] says or more.
    ///
    /// # Errors
    /// `Usage` when the dump is damaged, or a device is missing for what is in it; `Io` when a device cannot be written.
    pub fn restore(mut self, targets: &Targets<'_>, observer: &dyn Observer) -> Result<()> {
        let (data, _) = targets.data.ok_or_else(|| Error::Usage("there is no data device".to_owned()))?;
        let superblock = std::mem::take(&mut self.superblock);
        let mut marked = superblock.clone();
        if let Some((sb, _)) = RawSuperblock::prefix_mut(&mut marked) {
            sb.inprogress = 1;
        }
        let marked_len = marked.len();
        let first = std::mem::take(&mut self.first);
        let sizes = self.sizes;
        let (sender, receiver) = sync_channel(PIECES);
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || self.read_all(&sender));
            let written = (|| {
                data.write_at(0, &marked)?;
                for mut piece in first {
                    // the superblock itself comes last
                    if piece.daddr == 0 {
                        piece.bytes.drain(..marked_len.min(piece.bytes.len()));
                        piece.daddr = (marked_len / SECTOR) as u64;
                    }
                    write_piece(targets, sizes, &piece, observer)?;
                }
                write_all(targets, sizes, &receiver, marked_len, observer)
            })();
            drop(receiver);
            let read = reader.join().unwrap_or_else(|_| Err(Error::Internal("the reader has failed".to_owned())));
            // what could not be written ends the reading too: that is the error to tell
            written.and(read)
        })?;
        data.flush()?;
        data.write_at(0, &finished(superblock))?;
        data.flush()
    }

    fn read_all(mut self, sender: &SyncSender<Piece>) -> Result<()> {
        if self.info.is_v2 {
            while let Some(extent) = read_extent_head(&mut *self.input)? {
                if !self.send_extent(&extent, sender)? {
                    break;
                }
            }
            return Ok(());
        }
        while !self.ended {
            let mut index = [0; SECTOR];
            fill(&mut *self.input, &mut index)?;
            let (pieces, last) = read_index_block(&mut *self.input, &index)?;
            self.ended = last;
            for piece in pieces {
                if sender.send(piece).is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads the contents of an extent in pieces; `false` when nobody wants them any more.
    fn send_extent(&mut self, extent: &RawMetaExtent, sender: &SyncSender<Piece>) -> Result<bool> {
        let device = extent.device().ok_or_else(|| bad("an extent of an unknown device"))?;
        let (mut daddr, sectors) = (extent.daddr(), u64::from(extent.len.get()));
        check_range(self.sizes, device, daddr, sectors)?;
        let mut left = usize::try_from(sectors).map_err(|_| bad("an extent is too long"))? * SECTOR;
        let mut consumed = RawMetaExtent::SIZE as u64;
        while left > 0 {
            let len = left.min(PIECE);
            let mut bytes = vec![0; len];
            fill(&mut *self.input, &mut bytes)?;
            consumed += len as u64;
            if sender.send(Piece { device, daddr, bytes, consumed }).is_err() {
                return Ok(false);
            }
            (daddr, left, consumed) = (daddr + (len / SECTOR) as u64, left - len, 0);
        }
        Ok(true)
    }
}

/// The head of the next extent; `None` at the end of the dump.
fn read_extent_head(input: &mut dyn Read) -> Result<Option<RawMetaExtent>> {
    let mut bytes = [0; RawMetaExtent::SIZE];
    loop {
        match input.read(&mut bytes[..1]) {
            Ok(0) => return Ok(None),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(of_input(&error)),
        }
    }
    fill(input, &mut bytes[1..])?;
    let (extent, _) = RawMetaExtent::prefix(&bytes).ok_or_else(|| bad("an extent"))?;
    if extent.len.get() == 0 {
        return Err(bad("an extent without contents"));
    }
    Ok(Some(*extent))
}

/// What follows an index block of version 1, contiguous units in one piece, and whether it is the last.
fn read_index_block(input: &mut dyn Read, index: &[u8]) -> Result<(Vec<Piece>, bool)> {
    let (head, addresses) = index_addresses(index).ok_or_else(|| bad("an index block"))?;
    if head.magic.get() != MD_MAGIC_V1 || 1_usize.checked_shl(u32::from(head.blocklog)) != Some(SECTOR) {
        return Err(bad("an index block that is none"));
    }
    let count = usize::from(head.count.get());
    if count > INDICES {
        return Err(bad(format!("an index block with {count} addresses, and it has room for {INDICES}")));
    }
    let mut bytes = vec![0; count * SECTOR];
    fill(input, &mut bytes)?;
    let mut pieces: Vec<Piece> = Vec::new();
    for (address, contents) in addresses.iter().zip(bytes.chunks_exact(SECTOR)) {
        let daddr = address.get();
        match pieces.last_mut() {
            Some(last) if last.end() == Some(daddr) => {
                last.bytes.extend_from_slice(contents);
                last.consumed += contents.len() as u64;
            }
            _ => {
                let consumed = contents.len() as u64;
                pieces.push(Piece { device: MetaDevice::Data, daddr, bytes: contents.to_vec(), consumed });
            }
        }
    }
    if let Some(first) = pieces.first_mut() {
        first.consumed += SECTOR as u64;
    }
    Ok((pieces, count < INDICES))
}

fn check_range(sizes: Sizes, device: MetaDevice, daddr: u64, sectors: u64) -> Result<()> {
    let (size, name) = match device {
        MetaDevice::Data => (sizes.data, "data"),
        MetaDevice::Log => (sizes.log, "log"),
        MetaDevice::Realtime => (sizes.realtime, "realtime"),
    };
    let end = daddr.checked_add(sectors).and_then(|end| end.checked_mul(u64::from(BASIC_BLOCK)));
    if end.is_none_or(|end| end > size) {
        let what = format!("{sectors} units of 512 bytes at {daddr}, and the {name} device has {size} bytes");
        return Err(bad(what));
    }
    Ok(())
}

fn write_piece(targets: &Targets<'_>, sizes: Sizes, piece: &Piece, observer: &dyn Observer) -> Result<()> {
    observer.advance(piece.consumed);
    check_range(sizes, piece.device, piece.daddr, (piece.bytes.len() / SECTOR) as u64)?;
    let (target, name) = match piece.device {
        MetaDevice::Data => (targets.data, "data"),
        MetaDevice::Log => (targets.log, "log"),
        MetaDevice::Realtime => (targets.realtime, "realtime"),
    };
    let (device, is_empty) = target.ok_or_else(|| Error::Usage(format!("the dump needs a {name} device")))?;
    let offset = piece.daddr * u64::from(BASIC_BLOCK);
    if !is_empty {
        return device.write_at(offset, &piece.bytes);
    }
    // only what is not zero, in runs as long as possible
    let mut start = None;
    let mut at = 0;
    for part in piece.bytes.chunks(HOLE) {
        match (is_zero(part), start) {
            (true, Some(from)) => {
                device.write_at(offset + from as u64, &piece.bytes[from..at])?;
                start = None;
            }
            (false, None) => start = Some(at),
            _ => {}
        }
        at += part.len();
    }
    match start {
        Some(from) => device.write_at(offset + from as u64, &piece.bytes[from..]),
        None => Ok(()),
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.as_bytes().iter().fold(0, |sum, byte| sum | byte) == 0
}

/// Writes pieces as they come, those that touch each other at once.
fn write_all(
    targets: &Targets<'_>,
    sizes: Sizes,
    receiver: &Receiver<Piece>,
    superblock: usize,
    observer: &dyn Observer,
) -> Result<()> {
    let mut held: Option<Piece> = None;
    while let Ok(mut piece) = receiver.recv() {
        // a second primary superblock would end the mark of the first
        if piece.device == MetaDevice::Data && piece.daddr < (superblock / SECTOR) as u64 {
            let overlap = superblock - usize::try_from(piece.daddr).unwrap_or(0) * SECTOR;
            piece.bytes.drain(..overlap.min(piece.bytes.len()));
            piece.daddr = (superblock / SECTOR) as u64;
        }
        if let Some(before) = &mut held
            && before.device == piece.device
            && before.end() == Some(piece.daddr)
            && before.bytes.len() + piece.bytes.len() <= PIECE
        {
            before.bytes.extend_from_slice(&piece.bytes);
            before.consumed += piece.consumed;
            continue;
        }
        if let Some(before) = held.replace(piece) {
            write_piece(targets, sizes, &before, observer)?;
        }
    }
    held.map_or(Ok(()), |last| write_piece(targets, sizes, &last, observer))
}
