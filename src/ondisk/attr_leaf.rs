//! Attribute leaves (Linux `fs/xfs/libxfs/xfs_da_format.h`, `xfs_attr_leaf.c`).
//!
//! Entries grow from the header upwards, names and values from the end of the block downwards.

use crate::error::{Check, Rule};
use crate::ondisk::attr_short::ATTR_LOCAL;
use crate::ondisk::da_block::{RawDa3Blkinfo, RawDaBlkinfo};
use crate::ondisk::{Be16, Be32, OnDisk};
use zerocopy::IntoBytes;

/// Magic number of an attribute leaf, v4.
pub const ATTR_LEAF_MAGIC: u16 = 0xfbee;
/// Magic number of an attribute leaf, v5.
pub const ATTR3_LEAF_MAGIC: u16 = 0x3bee;
/// Names start at multiples of this many bytes.
pub const LEAF_NAME_ALIGN: usize = 4;

ondisk! {
    /// A free range of an attribute leaf (`xfs_attr_leaf_map`).
    pub struct RawAttrLeafMap("attr_leaf_map"): 4 {
        /// Where it starts, in bytes.
        0 => base: Be16,
        /// Its length in bytes.
        2 => size: Be16,
    }
}

ondisk! {
    /// Header of an attribute leaf, v4 (`xfs_attr_leaf_hdr`).
    pub struct RawAttrLeafHdr("attr_leaf_hdr"): 32 {
        /// Links and magic number.
        0 => info: RawDaBlkinfo,
        /// Number of entries.
        12 => count: Be16,
        /// Bytes that names and values take.
        14 => usedbytes: Be16,
        /// First byte of the names; 0 stands for 65536.
        16 => firstused: Be16,
        /// Not 0 when there are free ranges that `freemap` does not list.
        18 => holes: u8,
        /// Unused.
        19 => pad1: u8,
        /// The largest free ranges.
        20 => freemap: [RawAttrLeafMap; 3],
    }
}

ondisk! {
    /// Header of an attribute leaf, v5 (`xfs_attr3_leaf_hdr`).
    pub struct RawAttr3LeafHdr("attr3_leaf_hdr"): 80 {
        /// Links, magic number, identity.
        0 => info: RawDa3Blkinfo,
        /// Number of entries.
        56 => count: Be16,
        /// Bytes that names and values take.
        58 => usedbytes: Be16,
        /// First byte of the names; 0 stands for 65536.
        60 => firstused: Be16,
        /// Not 0 when there are free ranges that `freemap` does not list.
        62 => holes: u8,
        /// Unused.
        63 => pad1: u8,
        /// The largest free ranges.
        64 => freemap: [RawAttrLeafMap; 3],
        /// Unused.
        76 => pad2: Be32,
    }
}

ondisk! {
    /// Entry of an attribute leaf (`xfs_attr_leaf_entry`).
    pub struct RawAttrLeafEntry("attr_leaf_entry"): 8 {
        /// Hash of the name.
        0 => hashval: Be32,
        /// Where the name stands in the block, in bytes.
        4 => nameidx: Be16,
        /// Namespace, local, incomplete.
        6 => flags: u8,
        /// Unused.
        7 => pad2: u8,
    }
}

ondisk! {
    /// Start of a name with its value; name and value follow (`xfs_attr_leaf_name_local`).
    pub struct RawAttrLeafNameLocal("attr_leaf_name_local"): 3 {
        /// Bytes of the value.
        0 => valuelen: Be16,
        /// Bytes of the name.
        2 => namelen: u8,
    }
}

ondisk! {
    /// Start of a name whose value has blocks of its own; the name follows (`xfs_attr_leaf_name_remote`).
    pub struct RawAttrLeafNameRemote("attr_leaf_name_remote"): 9 {
        /// First block of the value, in filesystem blocks of the attribute fork.
        0 => valueblk: Be32,
        /// Bytes of the value.
        4 => valuelen: Be32,
        /// Bytes of the name.
        8 => namelen: u8,
    }
}

/// Where the value of an attribute is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttrLeafValue<'a> {
    /// In the leaf.
    Local(&'a [u8]),
    /// In blocks of its own.
    Remote {
        /// First block, in filesystem blocks of the attribute fork; 0 while an attribute is being made.
        valueblk: u32,
        /// Bytes of the value.
        valuelen: u32,
    },
}

/// One attribute of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttrLeafName<'a> {
    /// The name, without its namespace.
    pub name: &'a [u8],
    /// Its value.
    pub value: AttrLeafValue<'a>,
}

/// An attribute leaf: its header in both versions, and its entries.
#[derive(Clone, Copy, Debug)]
pub struct AttrLeaf<'a> {
    /// The next leaf; 0 for none.
    pub forw: u32,
    /// The leaf before it; 0 for none.
    pub back: u32,
    /// Bytes that names and values take, as the header has it.
    pub usedbytes: u16,
    /// First byte of the names, as the header means it.
    pub firstused: u32,
    /// Whether there are free ranges that `freemap` does not list.
    pub holes: u8,
    /// The largest free ranges.
    pub freemap: &'a [RawAttrLeafMap; 3],
    /// The entries, sorted by hash.
    pub entries: &'a [RawAttrLeafEntry],
    block: &'a [u8],
    crc: bool,
}

/// Bytes of the header of an attribute leaf.
pub const fn header_len(crc: bool) -> usize {
    if crc { RawAttr3LeafHdr::SIZE } else { RawAttrLeafHdr::SIZE }
}

/// Bytes that a name and its value take when both are in the leaf.
pub const fn local_len(namelen: usize, valuelen: usize) -> usize {
    (RawAttrLeafNameLocal::SIZE + namelen + valuelen).next_multiple_of(LEAF_NAME_ALIGN)
}

/// Bytes that a name with a remote value takes. The two bytes more than its content go back to the padding of the
/// structure in early versions.
pub const fn remote_len(namelen: usize) -> usize {
    (RawAttrLeafNameRemote::SIZE + 2 + namelen).next_multiple_of(LEAF_NAME_ALIGN)
}

const fn failed(field: &'static str, rule: Rule) -> Check {
    Check::new("attr_leaf", field, rule)
}

impl<'a> AttrLeaf<'a> {
    /// Decodes the leaf in `block`, which has the v5 header when `crc` is set.
    ///
    /// # Errors
    /// The check that it fails: magic number, or a count that the block cannot hold.
    pub fn decode(block: &'a [u8], crc: bool) -> Result<Self, Check> {
        let truncated = failed("hdr", Rule::Truncated);
        let (info, count, usedbytes, firstused, holes, freemap, rest) = if crc {
            let (h, rest) = RawAttr3LeafHdr::prefix(block).ok_or(truncated)?;
            (&h.info.hdr, h.count, h.usedbytes, h.firstused, h.holes, &h.freemap, rest)
        } else {
            let (h, rest) = RawAttrLeafHdr::prefix(block).ok_or(truncated)?;
            (&h.info, h.count, h.usedbytes, h.firstused, h.holes, &h.freemap, rest)
        };
        if info.magic.get() != if crc { ATTR3_LEAF_MAGIC } else { ATTR_LEAF_MAGIC } {
            return Err(failed("magic", Rule::Magic));
        }
        let (entries, _) =
            RawAttrLeafEntry::prefix_slice(rest, usize::from(count.get())).ok_or(failed("count", Rule::Count))?;
        let firstused = match firstused.get() {
            0 => 1 << 16,
            at => u32::from(at),
        };
        Ok(AttrLeaf {
            forw: info.forw.get(),
            back: info.back.get(),
            usedbytes: usedbytes.get(),
            firstused,
            holes,
            freemap,
            entries,
            block,
            crc,
        })
    }

    /// The name and value that `entry` points to.
    ///
    /// # Errors
    /// When they do not lie between the entries and the end of the block.
    pub fn name(&self, entry: &RawAttrLeafEntry) -> Result<AttrLeafName<'a>, Check> {
        let at = usize::from(entry.nameidx.get());
        if at < header_len(self.crc) + size_of_val(self.entries) {
            return Err(failed("nameidx", Rule::Range));
        }
        let bytes = self.block.get(at..).ok_or(failed("nameidx", Rule::Range))?;
        if entry.flags & ATTR_LOCAL != 0 { local_name(bytes) } else { remote_name(bytes) }
    }

    /// The checks of Linux's verifier on the contents.
    pub fn verify(&self) -> Vec<Check> {
        let mut failures = Vec::new();
        if self.entries.windows(2).any(|pair| pair[0].hashval.get() > pair[1].hashval.get()) {
            failures.push(failed("hashval", Rule::Order));
        }
        let end = header_len(self.crc) + size_of_val(self.entries);
        let firstused = usize::try_from(self.firstused).unwrap_or(usize::MAX);
        if firstused < end || firstused > self.block.len() {
            failures.push(failed("firstused", Rule::Range));
        }
        if usize::from(self.usedbytes) > self.block.len() - end {
            failures.push(failed("usedbytes", Rule::Range));
        }
        for entry in self.entries {
            if usize::from(entry.nameidx.get()) < firstused {
                failures.push(failed("nameidx", Rule::Range));
            } else if let Err(check) = self.name(entry) {
                failures.push(check);
            }
        }
        for map in self.freemap {
            let (base, size) = (usize::from(map.base.get()), usize::from(map.size.get()));
            let aligned = base % LEAF_NAME_ALIGN == 0 && size % LEAF_NAME_ALIGN == 0;
            if !aligned || base + size > self.block.len() || size != 0 && base < end {
                failures.push(failed("freemap", Rule::Range));
            }
        }
        failures
    }
}

fn local_name(bytes: &[u8]) -> Result<AttrLeafName<'_>, Check> {
    let truncated = failed("name_local", Rule::Truncated);
    let (head, rest) = RawAttrLeafNameLocal::prefix(bytes).ok_or(truncated)?;
    if head.namelen == 0 {
        return Err(failed("name_local.namelen", Rule::Range));
    }
    let (name, rest) = rest.split_at_checked(usize::from(head.namelen)).ok_or(truncated)?;
    let value = rest.get(..usize::from(head.valuelen.get())).ok_or(truncated)?;
    Ok(AttrLeafName { name, value: AttrLeafValue::Local(value) })
}

fn remote_name(bytes: &[u8]) -> Result<AttrLeafName<'_>, Check> {
    let truncated = failed("name_remote", Rule::Truncated);
    let (head, rest) = RawAttrLeafNameRemote::prefix(bytes).ok_or(truncated)?;
    if head.namelen == 0 {
        return Err(failed("name_remote.namelen", Rule::Range));
    }
    let name = rest.get(..usize::from(head.namelen)).ok_or(truncated)?;
    let value = AttrLeafValue::Remote { valueblk: head.valueblk.get(), valuelen: head.valuelen.get() };
    Ok(AttrLeafName { name, value })
}

/// Writes a name and its value, if that is local, at `at` of `block`; the padding becomes zero. Returns the bytes
/// that they take.
///
/// Returns `None`, and writes nothing, when they do not fit or a length has no place in its field.
pub fn put_name(block: &mut [u8], at: usize, name: &AttrLeafName<'_>) -> Option<usize> {
    let namelen = u8::try_from(name.name.len()).ok().filter(|&len| len > 0)?;
    let mut bytes = Vec::new();
    let len = match name.value {
        AttrLeafValue::Local(value) => {
            let valuelen = Be16::new(u16::try_from(value.len()).ok()?);
            bytes.extend_from_slice(RawAttrLeafNameLocal { valuelen, namelen }.as_bytes());
            bytes.extend_from_slice(name.name);
            bytes.extend_from_slice(value);
            local_len(name.name.len(), value.len())
        }
        AttrLeafValue::Remote { valueblk, valuelen } => {
            let head = RawAttrLeafNameRemote { valueblk: valueblk.into(), valuelen: valuelen.into(), namelen };
            bytes.extend_from_slice(head.as_bytes());
            bytes.extend_from_slice(name.name);
            remote_len(name.name.len())
        }
    };
    bytes.resize(len, 0);
    block.get_mut(at..)?.get_mut(..len)?.copy_from_slice(&bytes);
    Some(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::attr_short::ATTR_ROOT;
    use proptest::prelude::*;

    type Attr = (Vec<u8>, Result<Vec<u8>, (u32, u32)>);

    fn attrs() -> impl Strategy<Value = Vec<Attr>> {
        let name = || proptest::collection::vec(any::<u8>(), 1..256);
        let local =
            (name(), proptest::collection::vec(any::<u8>(), 0..200)).prop_map(|(name, value)| (name, Ok(value)));
        let remote = (name(), any::<(u32, u32)>()).prop_map(|(name, place)| (name, Err(place)));
        proptest::collection::vec(prop_oneof![local, remote], 0..8)
    }

    proptest! {
        #[test]
        fn decode_inverts_encode(attrs in attrs(), crc: bool) {
            let mut block = vec![0u8; 8192];
            let mut at = block.len();
            let mut entries = Vec::new();
            for (hash, (name, value)) in (0u32..).zip(&attrs) {
                let value = match value {
                    Ok(bytes) => AttrLeafValue::Local(bytes),
                    Err((valueblk, valuelen)) => AttrLeafValue::Remote { valueblk: *valueblk, valuelen: *valuelen },
                };
                let (len, flags) = match value {
                    AttrLeafValue::Local(bytes) => (local_len(name.len(), bytes.len()), ATTR_LOCAL | ATTR_ROOT),
                    AttrLeafValue::Remote { .. } => (remote_len(name.len()), ATTR_ROOT),
                };
                at -= len;
                prop_assert_eq!(put_name(&mut block, at, &AttrLeafName { name, value }), Some(len));
                let nameidx = u16::try_from(at).expect("invariant: small block").into();
                entries.push(RawAttrLeafEntry { hashval: hash.into(), nameidx, flags, pad2: 0 });
            }
            let few = |n: usize| Be16::new(u16::try_from(n).expect("invariant: few bytes"));
            let used = few(block.len() - at);
            let freemap = [RawAttrLeafMap { base: 0.into(), size: 0.into() }; 3];
            let magic = if crc { ATTR3_LEAF_MAGIC } else { ATTR_LEAF_MAGIC };
            let hdr = RawDaBlkinfo { forw: 1.into(), back: 2.into(), magic: magic.into(), pad: 0.into() };
            let head = if crc {
                let info = RawDa3Blkinfo {
                    hdr, crc: 0.into(), blkno: 0.into(), lsn: 0.into(), uuid: [0; 16], owner: 0.into(),
                };
                RawAttr3LeafHdr {
                    info, count: few(entries.len()), usedbytes: used, firstused: few(at), holes: 0, pad1: 0, freemap,
                    pad2: 0.into(),
                }.as_bytes().to_vec()
            } else {
                RawAttrLeafHdr {
                    info: hdr, count: few(entries.len()), usedbytes: used, firstused: few(at), holes: 0, pad1: 0, freemap,
                }.as_bytes().to_vec()
            };
            block[..head.len()].copy_from_slice(&head);
            block[head.len()..][..size_of_val(&entries[..])].copy_from_slice(entries.as_bytes());
            let leaf = AttrLeaf::decode(&block, crc).expect("decodable");
            prop_assert_eq!(leaf.verify(), vec![]);
            prop_assert_eq!(leaf.entries, &entries[..]);
            for (entry, (name, value)) in entries.iter().zip(&attrs) {
                let read = leaf.name(entry).expect("sound name");
                prop_assert_eq!(read.name, &name[..]);
                match (read.value, value) {
                    (AttrLeafValue::Local(bytes), Ok(value)) => prop_assert_eq!(bytes, &value[..]),
                    (AttrLeafValue::Remote { valueblk, valuelen }, Err(place)) => {
                        prop_assert_eq!((valueblk, valuelen), *place);
                    }
                    _ => prop_assert!(false, "local and remote are mixed up"),
                }
            }
        }

        #[test]
        fn random_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), crc: bool) {
            let magic = if crc { ATTR3_LEAF_MAGIC } else { ATTR_LEAF_MAGIC };
            if let Some(field) = bytes.get_mut(8..10) {
                field.copy_from_slice(&magic.to_be_bytes());
            }
            if let Some(field) = bytes.get_mut(if crc { 56 } else { 12 }) {
                *field = 0;
            }
            let _ = AttrLeaf::decode(&bytes, crc).map(|leaf| leaf.verify());
        }
    }
}
