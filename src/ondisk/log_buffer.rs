//! Log items of buffers: which 128-byte chunks of a buffer changed (Linux `fs/xfs/libxfs/xfs_log_format.h`,
//! `fs/xfs/xfs_buf_item.c`).

use crate::error::{Check, Rule};
use crate::ondisk::OnDisk;
use crate::ondisk::log_item::LogItemType;
use zerocopy::IntoBytes;
use zerocopy::byteorder::{ByteOrder, U16, U32, U64};

/// What one bit of the map stands for, in bytes.
pub const CHUNK: usize = 128;
/// Words that the map has at most: a bit for each chunk of 64 KiB, and one word of padding.
pub const MAX_MAP_WORDS: usize = 17;

/// Flags of buffer items; the upper five bits are the [`BufType`].
pub mod flag {
    /// Inodes: only their links of the unlinked list are replayed.
    pub const INODE_BUF: u16 = 1 << 0;
    /// The blocks are being freed: earlier changes are not replayed.
    pub const CANCEL: u16 = 1 << 1;
    /// User dquots.
    pub const UDQUOT_BUF: u16 = 1 << 2;
    /// Project dquots.
    pub const PDQUOT_BUF: u16 = 1 << 3;
    /// Group dquots.
    pub const GDQUOT_BUF: u16 = 1 << 4;
    /// How far the type is shifted.
    pub const TYPE_SHIFT: u32 = 11;
}

/// What a buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum BufType {
    /// Not said.
    Unknown = 0,
    /// User dquots.
    Udquot,
    /// Project dquots.
    Pdquot,
    /// Group dquots.
    Gdquot,
    /// A btree block.
    Btree,
    /// An AGF.
    Agf,
    /// An AGFL.
    Agfl,
    /// An AGI.
    Agi,
    /// Inodes.
    Dino,
    /// A symbolic link's target.
    Symlink,
    /// A single-block directory.
    DirBlock,
    /// A data block of a directory.
    DirData,
    /// A free index block of a directory.
    DirFree,
    /// The only leaf of a directory.
    DirLeaf1,
    /// One leaf of a directory.
    DirLeafN,
    /// An inner node of a directory or of attributes.
    DaNode,
    /// An attribute leaf.
    AttrLeaf,
    /// A remote attribute value.
    AttrRmt,
    /// A superblock.
    Sb,
    /// Realtime bitmap.
    RtBitmap,
    /// Realtime summary.
    RtSummary,
}

impl BufType {
    /// All of them, by number.
    pub const ALL: [BufType; 21] = {
        use BufType::{
            Agf, Agfl, Agi, AttrLeaf, AttrRmt, Btree, DaNode, Dino, DirBlock, DirData, DirFree, DirLeaf1, DirLeafN,
            Gdquot, Pdquot, RtBitmap, RtSummary, Sb, Symlink, Udquot, Unknown,
        };
        [
            Unknown, Udquot, Pdquot, Gdquot, Btree, Agf, Agfl, Agi, Dino, Symlink, DirBlock, DirData, DirFree,
            DirLeaf1, DirLeafN, DaNode, AttrLeaf, AttrRmt, Sb, RtBitmap, RtSummary,
        ]
    };

    /// The type that the flags of an item name; `None` when the number has no meaning.
    pub fn from_flags(flags: u16) -> Option<Self> {
        Self::ALL.get(usize::from(flags >> flag::TYPE_SHIFT)).copied()
    }

    /// The type as flags.
    pub fn flags(self) -> u16 {
        (self as u16) << flag::TYPE_SHIFT
    }
}

ondisk! {
    /// Start of a buffer item; the words of the map follow (`xfs_buf_log_format`).
    pub struct RawBufLogFormat<O>("buf_log_format"): 20 {
        /// [`LogItemType::Buf`].
        0 => type_: U16<O>,
        /// Regions: this one and one for each run of chunks.
        2 => size: U16<O>,
        /// Flags and type.
        4 => flags: U16<O>,
        /// Length of the buffer, in 512-byte units.
        6 => len: U16<O>,
        /// Disk address of the buffer, in 512-byte units.
        8 => blkno: U64<O>,
        /// Words of the map.
        16 => map_size: U32<O>,
    }
}

/// A buffer item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufLogFormat {
    /// Regions: this one and one for each run of chunks.
    pub size: u16,
    /// Flags, without the type.
    pub flags: u16,
    /// What the buffer holds; `None` for a number without a meaning.
    pub kind: Option<BufType>,
    /// Length of the buffer, in 512-byte units.
    pub len: u16,
    /// Disk address of the buffer, in 512-byte units.
    pub blkno: u64,
    /// The map: bit n of word w is chunk 32 w + n.
    pub map: Vec<u32>,
}

impl BufLogFormat {
    /// Decodes the first region of a buffer item.
    ///
    /// # Errors
    /// The check that it fails: type, a map too long, or a region too short for it.
    pub fn decode<O: ByteOrder>(region: &[u8]) -> Result<Self, Check> {
        let failed = |field, rule| Check::new("buf_log_format", field, rule);
        let (head, rest) = RawBufLogFormat::<O>::prefix(region).ok_or(failed("map_size", Rule::Truncated))?;
        if head.type_.get() != LogItemType::Buf.number() {
            return Err(failed("type", Rule::Magic));
        }
        let words = usize::try_from(head.map_size.get())
            .ok()
            .filter(|&words| words <= MAX_MAP_WORDS)
            .ok_or(failed("map_size", Rule::Count))?;
        let (words, _): (&[U32<O>], _) = zerocopy::FromBytes::ref_from_prefix_with_elems(rest, words)
            .map_err(|_| failed("data_map", Rule::Truncated))?;
        let flags = head.flags.get();
        Ok(BufLogFormat {
            size: head.size.get(),
            flags: flags & ((1 << flag::TYPE_SHIFT) - 1),
            kind: BufType::from_flags(flags),
            len: head.len.get(),
            blkno: head.blkno.get(),
            map: words.iter().map(|word| word.get()).collect(),
        })
    }

    /// The bytes of the first region.
    ///
    /// Returns `None` when the map is too long.
    pub fn encode<O: ByteOrder>(&self) -> Option<Vec<u8>> {
        let map_size = u32::try_from(self.map.len()).ok().filter(|_| self.map.len() <= MAX_MAP_WORDS)?;
        let head = RawBufLogFormat::<O> {
            type_: U16::new(LogItemType::Buf.number()),
            size: U16::new(self.size),
            flags: U16::new(self.flags | self.kind?.flags()),
            len: U16::new(self.len),
            blkno: U64::new(self.blkno),
            map_size: U32::new(map_size),
        };
        let mut bytes = head.as_bytes().to_vec();
        for word in &self.map {
            bytes.extend_from_slice(U32::<O>::new(*word).as_bytes());
        }
        Some(bytes)
    }

    /// The runs of changed chunks in order: first chunk and number of chunks.
    pub fn runs(&self) -> Vec<(usize, usize)> {
        let bit = |at: usize| self.map.get(at / 32).is_some_and(|word| word >> (at % 32) & 1 != 0);
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for at in (0..self.map.len() * 32).filter(|&at| bit(at)) {
            match runs.last_mut() {
                Some((start, count)) if *start + *count == at => *count += 1,
                _ => runs.push((at, 1)),
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::{BigEndian, LittleEndian};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decode_inverts_encode(
            size: u16, flags in 0u16..0x800, kind in 0usize..21, len: u16, blkno: u64,
            map in proptest::collection::vec(any::<u32>(), 0..=MAX_MAP_WORDS),
        ) {
            let item = BufLogFormat { size, flags, kind: Some(BufType::ALL[kind]), len, blkno, map };
            let little = item.encode::<LittleEndian>().expect("encodable");
            let big = item.encode::<BigEndian>().expect("encodable");
            prop_assert_eq!(BufLogFormat::decode::<LittleEndian>(&little), Ok(item.clone()));
            prop_assert_eq!(BufLogFormat::decode::<BigEndian>(&big), Ok(item.clone()));
            prop_assert!(BufLogFormat::decode::<LittleEndian>(&little[..little.len() - 1]).is_err());
            let chunks: usize = item.runs().iter().map(|run| run.1).sum();
            let bits: u32 = item.map.iter().map(|word| word.count_ones()).sum();
            prop_assert_eq!(u32::try_from(chunks), Ok(bits));
        }

        #[test]
        fn random_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            if let Some(head) = bytes.first_chunk_mut() {
                *head = [0x3c, 0x12];
            }
            let _ = BufLogFormat::decode::<LittleEndian>(&bytes).map(|item| item.runs());
        }
    }

    #[test]
    fn runs_join_over_words() {
        let item =
            BufLogFormat { size: 3, flags: 0, kind: None, len: 8, blkno: 0, map: vec![0x8000_0001, 0x0000_0003, 0x10] };
        assert_eq!(item.runs(), [(0, 1), (31, 3), (68, 1)]);
        assert!(item.encode::<LittleEndian>().is_none(), "an unknown type has no number");
    }
}
