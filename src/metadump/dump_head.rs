//! What a dump begins with: the head that says what it is, and the primary superblock, which says how large devices are.

use zerocopy::FromBytes;

use super::container::{Format, INDICES, SECTOR};
use super::stream::{bad, too_short};
use crate::error::{Error, Result};
use crate::geometry::Features;
use crate::ondisk::metadump::{
    COMPAT_DIRTYLOG, COMPAT_EXTERNALLOG, COMPAT_FULLBLOCKS, COMPAT_OBFUSCATED, INCOMPAT_RTDEVICE, INFO_DIRTYLOG,
    INFO_FLAGS, INFO_FULLBLOCKS, INFO_OBFUSCATED, MD_MAGIC_V1, MD_MAGIC_V2, RawMetaExtent, RawMetablock,
    RawMetadumpHeader, index_addresses,
};
use crate::ondisk::{Be32, Be64, OnDisk, RawSuperblock};

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

impl DumpInfo {
    /// The format.
    pub fn format(&self) -> Format {
        if self.is_v2 { Format::V2 } else { Format::V1 }
    }
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

/// What a dump begins with. It has been looked at.
#[derive(Clone, Debug)]
pub(super) struct DumpHead {
    pub(super) info: DumpInfo,
    pub(super) sizes: Sizes,
    /// The sector of the primary superblock.
    pub(super) superblock: Vec<u8>,
}

impl DumpHead {
    /// The head of the dump that `bytes` begin: all of them, or more than a head and a superblock take.
    ///
    /// # Errors
    /// `Usage` when this is no dump, `Unsupported` when it is none that can be restored.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let (magic, _) = Be32::read_from_prefix(bytes).map_err(|_| too_short())?;
        let (info, superblock) = match magic.get() {
            MD_MAGIC_V1 => parse_v1(bytes)?,
            MD_MAGIC_V2 => parse_v2(bytes)?,
            _ => return Err(Error::Usage("this is no metadata dump".to_owned())),
        };
        let (sizes, sector) = look_at_superblock(superblock)?;
        let superblock = superblock.get(..sector).ok_or_else(|| bad("the superblock is cut short"))?.to_vec();
        Ok(DumpHead { info, sizes, superblock })
    }
}

/// What the head of version 1 says, and the contents that begin at address 0.
fn parse_v1(bytes: &[u8]) -> Result<(DumpInfo, &[u8])> {
    let (index, contents) = bytes.split_at_checked(SECTOR).ok_or_else(too_short)?;
    let (head, addresses) = index_block(index)?;
    let is_set = |bit: u8| head.info & bit != 0;
    let info = DumpInfo {
        has_flags: is_set(INFO_FLAGS),
        obscured: is_set(INFO_OBFUSCATED),
        dirty_log: is_set(INFO_DIRTYLOG),
        full_blocks: is_set(INFO_FULLBLOCKS),
        ..DumpInfo::default()
    };
    let at_start = addresses.iter().zip(0..).take_while(|(address, at)| address.get() == *at).count();
    if at_start == 0 {
        return Err(bad("it does not begin with the primary superblock"));
    }
    Ok((info, contents.get(..at_start * SECTOR).ok_or_else(too_short)?))
}

/// What the head of version 2 says, and the contents of the first extent.
fn parse_v2(bytes: &[u8]) -> Result<(DumpInfo, &[u8])> {
    let (head, rest) = RawMetadumpHeader::prefix(bytes).ok_or_else(too_short)?;
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
    let info = DumpInfo {
        is_v2: true,
        has_flags: true,
        obscured: is_set(COMPAT_OBFUSCATED),
        dirty_log: is_set(COMPAT_DIRTYLOG),
        full_blocks: is_set(COMPAT_FULLBLOCKS),
        external_log: is_set(COMPAT_EXTERNALLOG),
        realtime: head.incompat_flags.get() & INCOMPAT_RTDEVICE != 0,
    };
    if rest.is_empty() {
        return Err(bad("there is nothing in it"));
    }
    let (extent, contents) = RawMetaExtent::prefix(rest).ok_or_else(too_short)?;
    if extent.addr.get() != 0 || extent.len.get() == 0 {
        return Err(bad("it does not begin with the primary superblock"));
    }
    // the extent may be longer than what has been read of it
    let len = usize::try_from(extent.len.get()).unwrap_or(usize::MAX).saturating_mul(SECTOR).min(contents.len());
    Ok((info, &contents[..len]))
}

/// The head and the addresses of an index block of version 1.
pub(super) fn index_block(index: &[u8]) -> Result<(&RawMetablock, &[Be64])> {
    let (head, addresses) = index_addresses(index).ok_or_else(|| bad("an index block"))?;
    if head.magic.get() != MD_MAGIC_V1 || 1_usize.checked_shl(u32::from(head.blocklog)) != Some(SECTOR) {
        return Err(bad("an index block that is none"));
    }
    let count = usize::from(head.count.get());
    if count > INDICES {
        return Err(bad(format!("an index block with {count} addresses, and it has room for {INDICES}")));
    }
    Ok((head, addresses))
}

/// How large the devices are, and a sector.
fn look_at_superblock(bytes: &[u8]) -> Result<(Sizes, usize)> {
    let (sb, _) = RawSuperblock::prefix(bytes).ok_or_else(|| bad("the superblock is cut short"))?;
    if sb.magicnum.get() != RawSuperblock::MAGIC {
        return Err(bad("the first block is no superblock"));
    }
    let (block, sector) = (sb.blocksize.get(), usize::from(sb.sectsize.get()));
    let sizes_fit = block.is_power_of_two() && (512..=65_536).contains(&block);
    if !sizes_fit || !sector.is_power_of_two() || !(512..=32_768).contains(&sector) {
        return Err(bad(format!("blocks of {block} and sectors of {sector} bytes")));
    }
    let bytes = |blocks: u64| blocks.checked_mul(u64::from(block)).filter(|&bytes| i64::try_from(bytes).is_ok());
    let features = Features::from_superblock(sb);
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
    Ok((Sizes { data, log, realtime }, sector))
}
