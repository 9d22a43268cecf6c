//! Directories in short form: all entries in the inode's data fork (Linux `fs/xfs/libxfs/xfs_da_format.h`,
//! `xfs_dir2_sf.c`).
//!
//! Inode numbers take 4 bytes each, or 8 bytes each as soon as one of them needs more than 32 bits. The file type
//! byte is there only with the ftype feature. Entries for `.` and `..` do not exist; the header has the parent.

use crate::error::{Check, Rule};
use crate::ondisk::{Be16, Be32, Be64, OnDisk};
use zerocopy::IntoBytes;

ondisk! {
    /// What both widths of the header start with.
    pub struct RawDirSfCounts("dir2_sf.hdr"): 2 {
        /// Number of entries.
        0 => count: u8,
        /// How many inode numbers, the parent's among them, need 8 bytes; 0 means that all have 4.
        1 => i8count: u8,
    }
}

ondisk! {
    /// Header with a 4-byte parent (`xfs_dir2_sf_hdr`).
    pub struct RawDirSfHdr4("dir2_sf.hdr"): 6 {
        /// Counts; `i8count` is 0.
        0 => counts: RawDirSfCounts,
        /// Inode number of the parent directory.
        2 => parent: Be32,
    }
}

ondisk! {
    /// Header with an 8-byte parent (`xfs_dir2_sf_hdr`).
    pub struct RawDirSfHdr8("dir2_sf.hdr"): 10 {
        /// Counts; `i8count` is not 0.
        0 => counts: RawDirSfCounts,
        /// Inode number of the parent directory.
        2 => parent: Be64,
    }
}

ondisk! {
    /// Start of an entry; the name, the file type byte and the inode number follow (`xfs_dir2_sf_entry`).
    pub struct RawDirSfEntry("dir2_sf.entry"): 3 {
        /// Bytes of the name.
        0 => namelen: u8,
        /// Where the entry would stand in a data block: the order of readdir, and its cookie.
        1 => offset: Be16,
    }
}

/// The bits of an 8-byte inode number that readers look at.
pub const WIDE_INUMBER_MASK: u64 = (1 << 56) - 1;

/// One entry of a short-form directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirSfEntry<'a> {
    /// Where the entry would stand in a data block, in bytes.
    pub offset: u16,
    /// The name.
    pub name: &'a [u8],
    /// The file type byte, with the ftype feature.
    pub ftype: Option<u8>,
    /// Inode number.
    pub inumber: u64,
}

/// A short-form directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirShort<'a> {
    /// Number of entries that the header promises.
    pub count: u8,
    /// How many inode numbers need 8 bytes.
    pub i8count: u8,
    /// Inode number of the parent directory.
    pub parent: u64,
    entries: &'a [u8],
    ftype: bool,
}

impl<'a> DirShort<'a> {
    /// Decodes the header of the directory in `fork`.
    ///
    /// # Errors
    /// When `fork` is too short for the header.
    pub fn decode(fork: &'a [u8], ftype: bool) -> Result<Self, Check> {
        let truncated = Check::new("dir2_sf.hdr", "parent", Rule::Truncated);
        let (counts, _) = RawDirSfCounts::prefix(fork).ok_or(truncated)?;
        let (parent, entries) = if counts.i8count == 0 {
            let (hdr, rest) = RawDirSfHdr4::prefix(fork).ok_or(truncated)?;
            (u64::from(hdr.parent.get()), rest)
        } else {
            let (hdr, rest) = RawDirSfHdr8::prefix(fork).ok_or(truncated)?;
            (hdr.parent.get(), rest)
        };
        Ok(DirShort { count: counts.count, i8count: counts.i8count, parent, entries, ftype })
    }

    /// The entries in order. An entry that cannot be decoded ends them with its check.
    pub fn entries(&self) -> DirSfEntries<'a> {
        DirSfEntries { rest: self.entries, left: self.count, wide: self.i8count != 0, ftype: self.ftype }
    }
}

/// Iterator of [`DirShort::entries`].
#[derive(Clone, Debug)]
pub struct DirSfEntries<'a> {
    rest: &'a [u8],
    left: u8,
    wide: bool,
    ftype: bool,
}

impl<'a> DirSfEntries<'a> {
    /// What has not been consumed yet; after the last entry, the bytes behind the directory.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self) -> Result<DirSfEntry<'a>, Check> {
        let truncated = Check::new("dir2_sf.entry", "name", Rule::Truncated);
        let (head, rest) = RawDirSfEntry::prefix(self.rest).ok_or(truncated)?;
        if head.namelen == 0 {
            return Err(Check::new("dir2_sf.entry", "namelen", Rule::Range));
        }
        let (name, rest) = rest.split_at_checked(usize::from(head.namelen)).ok_or(truncated)?;
        let (ftype, rest) = if self.ftype {
            let (&byte, rest) = rest.split_first().ok_or(truncated)?;
            (Some(byte), rest)
        } else {
            (None, rest)
        };
        let (inumber, rest) = if self.wide {
            let (bytes, rest) = rest.split_first_chunk().ok_or(truncated)?;
            (u64::from_be_bytes(*bytes), rest)
        } else {
            let (bytes, rest) = rest.split_first_chunk().ok_or(truncated)?;
            (u64::from(u32::from_be_bytes(*bytes)), rest)
        };
        self.rest = rest;
        Ok(DirSfEntry { offset: head.offset.get(), name, ftype, inumber })
    }
}

impl<'a> Iterator for DirSfEntries<'a> {
    type Item = Result<DirSfEntry<'a>, Check>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let entry = self.take();
        if entry.is_err() {
            self.left = 0;
        }
        Some(entry)
    }
}

/// The bytes of a short-form directory. The width of the inode numbers follows from their values.
///
/// Returns `None` when it cannot be written: more than 255 entries, or a name that is empty or longer than 255 bytes.
pub fn encode(parent: u64, entries: &[DirSfEntry<'_>]) -> Option<Vec<u8>> {
    let wide = |ino: u64| ino > u64::from(u32::MAX);
    let count = u8::try_from(entries.len()).ok()?;
    // with 255 wide entries and a wide parent the count would wrap; XFS cannot hold so many in an inode
    let i8count = u8::try_from(entries.iter().filter(|e| wide(e.inumber)).count() + usize::from(wide(parent))).ok()?;
    let counts = RawDirSfCounts { count, i8count };
    let put = |bytes: &mut Vec<u8>, ino: u64| match u32::try_from(ino) {
        Ok(short) if i8count == 0 => bytes.extend_from_slice(&short.to_be_bytes()),
        _ => bytes.extend_from_slice(&ino.to_be_bytes()),
    };
    let mut bytes = counts.as_bytes().to_vec();
    put(&mut bytes, parent);
    for entry in entries {
        let namelen = u8::try_from(entry.name.len()).ok().filter(|&len| len > 0)?;
        bytes.extend_from_slice(RawDirSfEntry { namelen, offset: entry.offset.into() }.as_bytes());
        bytes.extend_from_slice(entry.name);
        bytes.extend(entry.ftype);
        put(&mut bytes, entry.inumber);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decode_inverts_encode(
            parent: u64,
            narrow: bool,
            ftype in proptest::option::of(any::<u8>()),
            names in proptest::collection::vec((any::<u64>(), any::<u16>(), proptest::collection::vec(any::<u8>(), 1..256)), 0..40),
        ) {
            let width = |ino: u64| if narrow { ino & 0xffff_ffff } else { ino };
            let entries: Vec<_> = names
                .iter()
                .map(|(ino, offset, name)| DirSfEntry { offset: *offset, name, ftype, inumber: width(*ino) })
                .collect();
            let bytes = encode(width(parent), &entries).expect("encodable");
            let dir = DirShort::decode(&bytes, ftype.is_some()).expect("decodable");
            prop_assert_eq!(dir.parent, width(parent));
            let mut walk = dir.entries();
            let decoded: Result<Vec<_>, _> = walk.by_ref().collect();
            prop_assert_eq!(decoded.expect("sound entries"), entries.clone());
            prop_assert!(walk.rest().is_empty());
            let cut: Result<Vec<_>, _> = match DirShort::decode(&bytes[..bytes.len() - 1], ftype.is_some()) {
                Ok(dir) => dir.entries().collect(),
                Err(check) => Err(check),
            };
            prop_assert!(cut.is_err());
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), ftype: bool) {
            if let Ok(dir) = DirShort::decode(&bytes, ftype) {
                prop_assert!(dir.entries().count() <= 255);
            }
        }
    }
}
