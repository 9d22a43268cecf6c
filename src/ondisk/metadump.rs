//! Containers of metadata dumps, v1 and v2 (xfsprogs `include/xfs_metadump.h`).

use crate::ondisk::{Be16, Be32, Be64, OnDisk};

/// Magic number of a v1 dump, at the start of each of its index blocks: `XFSM`.
pub const MD_MAGIC_V1: u32 = 0x5846_534d;
/// Magic number of a v2 dump: `XMD2`.
pub const MD_MAGIC_V2: u32 = 0x584d_4432;

/// v1: the other bits of `info` mean something.
pub const INFO_FLAGS: u8 = 1 << 0;
/// v1: names are obscured.
pub const INFO_OBFUSCATED: u8 = 1 << 1;
/// v1: whole blocks were dumped.
pub const INFO_FULLBLOCKS: u8 = 1 << 2;
/// v1: the log was dirty.
pub const INFO_DIRTYLOG: u8 = 1 << 3;

/// v2: names are obscured and attribute values zeroed.
pub const COMPAT_OBFUSCATED: u32 = 1 << 0;
/// v2: whole blocks were dumped.
pub const COMPAT_FULLBLOCKS: u32 = 1 << 1;
/// v2: the log was dirty.
pub const COMPAT_DIRTYLOG: u32 = 1 << 2;
/// v2: an external log is in the dump.
pub const COMPAT_EXTERNALLOG: u32 = 1 << 3;
/// v2: a realtime device is in the dump.
pub const INCOMPAT_RTDEVICE: u32 = 1 << 0;

ondisk! {
    /// Start of an index block of a v1 dump; disk addresses of 8 bytes fill the rest of it (`xfs_metablock`).
    pub struct RawMetablock("metablock"): 8 {
        /// Magic number.
        0 => magic: Be32,
        /// How many blocks follow the index block.
        4 => count: Be16,
        /// Base-2 logarithm of the size of the blocks, the index block's too, in bytes; 9 in all dumps.
        6 => blocklog: u8,
        /// Flags.
        7 => info: u8,
    }
}

ondisk! {
    /// Header of a v2 dump (`xfs_metadump_header`).
    pub struct RawMetadumpHeader("metadump_header"): 24 {
        /// Magic number.
        0 => magic: Be32,
        /// 2.
        4 => version: Be32,
        /// Flags that a reader may ignore.
        8 => compat_flags: Be32,
        /// Flags that a reader must know.
        12 => incompat_flags: Be32,
        /// Zero.
        16 => reserved: Be64,
    }
}

ondisk! {
    /// Head of an extent in a v2 dump; its contents follow (`xfs_meta_extent`).
    pub struct RawMetaExtent("meta_extent"): 12 {
        /// Device and disk address, see [`RawMetaExtent::daddr`].
        0 => addr: Be64,
        /// Length in units of 512 bytes.
        8 => len: Be32,
    }
}

/// Where the device stands in [`RawMetaExtent::addr`].
const DEVICE_SHIFT: u32 = 54;

impl RawMetaExtent {
    /// An extent of `len` units of 512 bytes at `daddr` of a device; `None` when the address needs more than 54 bits.
    pub fn new(device: MetaDevice, daddr: u64, len: u32) -> Option<Self> {
        let code: u64 = match device {
            MetaDevice::Data => 0,
            MetaDevice::Log => 1,
            MetaDevice::Realtime => 2,
        };
        (daddr >> DEVICE_SHIFT == 0)
            .then(|| RawMetaExtent { addr: (code << DEVICE_SHIFT | daddr).into(), len: len.into() })
    }

    /// Disk address in units of 512 bytes.
    pub fn daddr(&self) -> u64 {
        self.addr.get() & ((1 << DEVICE_SHIFT) - 1)
    }

    /// The device, `None` for a number without a meaning.
    pub fn device(&self) -> Option<MetaDevice> {
        match self.addr.get() >> DEVICE_SHIFT {
            0 => Some(MetaDevice::Data),
            1 => Some(MetaDevice::Log),
            2 => Some(MetaDevice::Realtime),
            _ => None,
        }
    }
}

/// Device of an extent in a v2 dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaDevice {
    /// Data device.
    Data,
    /// External log.
    Log,
    /// Realtime device.
    Realtime,
}

/// The disk addresses in an index block of a v1 dump, at most as many as its header counts and the block holds.
pub fn index_addresses(block: &[u8]) -> Option<(&RawMetablock, &[Be64])> {
    let (head, rest) = RawMetablock::prefix(block)?;
    let most = rest.len() / size_of::<Be64>();
    let count = usize::from(head.count.get()).min(most);
    let (table, _) = zerocopy::FromBytes::ref_from_prefix_with_elems(rest, count).ok()?;
    Some((head, table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_keeps_its_device_and_address() {
        for device in [MetaDevice::Data, MetaDevice::Log, MetaDevice::Realtime] {
            let extent = RawMetaExtent::new(device, (1 << 54) - 1, 8).expect("54 bits");
            assert_eq!((extent.device(), extent.daddr()), (Some(device), (1 << 54) - 1));
        }
        assert_eq!(RawMetaExtent::new(MetaDevice::Data, 1 << 54, 8), None);
        assert_eq!(RawMetaExtent { addr: u64::MAX.into(), len: 0.into() }.device(), None);
    }

    #[test]
    fn an_index_block_is_bounded_by_its_own_size() {
        let mut block = vec![0u8; 512];
        block[..8].copy_from_slice(&[0x58, 0x46, 0x53, 0x4d, 0, 2, 9, 0]);
        block[15] = 8;
        let (_, table) = index_addresses(&block).expect("long enough");
        assert_eq!(table.iter().map(|daddr| daddr.get()).collect::<Vec<_>>(), [8, 0]);
        block[4] = 0xff;
        assert_eq!(index_addresses(&block).expect("long enough").1.len(), 63);
        assert!(index_addresses(&block[..7]).is_none());
    }
}
