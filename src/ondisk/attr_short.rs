//! Attributes in short form: all of them in the inode's attribute fork (Linux `fs/xfs/libxfs/xfs_da_format.h`,
//! `xfs_attr_leaf.c`). Also the flags and namespaces that every form shares.

use crate::error::{Check, Rule};
use crate::ondisk::{Be16, OnDisk};
use zerocopy::IntoBytes;

/// The value stands in the leaf itself.
pub const ATTR_LOCAL: u8 = 1 << 0;
/// The name is in the `trusted` namespace.
pub const ATTR_ROOT: u8 = 1 << 1;
/// The name is in the `security` namespace.
pub const ATTR_SECURE: u8 = 1 << 2;
/// The attribute is a parent pointer.
pub const ATTR_PARENT: u8 = 1 << 3;
/// The attribute is being made or removed, and not there for readers.
pub const ATTR_INCOMPLETE: u8 = 1 << 7;
/// The bits that choose the namespace; at most one of them is set.
pub const ATTR_NSP_ONDISK_MASK: u8 = ATTR_ROOT | ATTR_SECURE | ATTR_PARENT;
/// The bits that have a meaning.
pub const ATTR_ONDISK_MASK: u8 = ATTR_NSP_ONDISK_MASK | ATTR_LOCAL | ATTR_INCOMPLETE;

/// The namespace of an attribute's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttrNamespace {
    /// `user.`
    User,
    /// `trusted.`
    Root,
    /// `security.`
    Secure,
    /// Parent pointers, which Linux does not show as attributes.
    Parent,
}

impl AttrNamespace {
    /// The namespace that `flags` choose; `None` when they choose more than one.
    pub fn from_flags(flags: u8) -> Option<Self> {
        match flags & ATTR_NSP_ONDISK_MASK {
            0 => Some(AttrNamespace::User),
            ATTR_ROOT => Some(AttrNamespace::Root),
            ATTR_SECURE => Some(AttrNamespace::Secure),
            ATTR_PARENT => Some(AttrNamespace::Parent),
            _ => None,
        }
    }

    /// The flag of the namespace.
    pub fn flags(self) -> u8 {
        match self {
            AttrNamespace::User => 0,
            AttrNamespace::Root => ATTR_ROOT,
            AttrNamespace::Secure => ATTR_SECURE,
            AttrNamespace::Parent => ATTR_PARENT,
        }
    }

    /// What Linux puts before the name; parent pointers have nothing.
    pub fn prefix(self) -> &'static str {
        match self {
            AttrNamespace::User => "user.",
            AttrNamespace::Root => "trusted.",
            AttrNamespace::Secure => "security.",
            AttrNamespace::Parent => "",
        }
    }
}

ondisk! {
    /// Header of the short form (`xfs_attr_sf_hdr`).
    pub struct RawAttrSfHdr("attr_sf.hdr"): 4 {
        /// Bytes of the header and all entries.
        0 => totsize: Be16,
        /// Number of entries.
        2 => count: u8,
        /// Unused.
        3 => padding: u8,
    }
}

ondisk! {
    /// Start of an entry; name and value follow (`xfs_attr_sf_entry`).
    pub struct RawAttrSfEntry("attr_sf.entry"): 3 {
        /// Bytes of the name.
        0 => namelen: u8,
        /// Bytes of the value.
        1 => valuelen: u8,
        /// Namespace.
        2 => flags: u8,
    }
}

/// One attribute of the short form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttrSfEntry<'a> {
    /// Flags, of which only the namespace may be set.
    pub flags: u8,
    /// The name, without its namespace.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

/// An attribute fork in short form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttrShort<'a> {
    /// Number of attributes that the header promises.
    pub count: u8,
    entries: &'a [u8],
}

impl<'a> AttrShort<'a> {
    /// Decodes the header of the attributes in `fork`; what lies behind `totsize` is not looked at.
    ///
    /// # Errors
    /// When `fork` is too short for the header or for `totsize`.
    pub fn decode(fork: &'a [u8]) -> Result<Self, Check> {
        let (hdr, _) = RawAttrSfHdr::prefix(fork).ok_or(Check::new("attr_sf.hdr", "totsize", Rule::Truncated))?;
        let entries = fork
            .get(..usize::from(hdr.totsize.get()))
            .ok_or(Check::new("attr_sf.hdr", "totsize", Rule::Truncated))?
            .get(RawAttrSfHdr::SIZE..)
            .ok_or(Check::new("attr_sf.hdr", "totsize", Rule::Range))?;
        Ok(AttrShort { count: hdr.count, entries })
    }

    /// The attributes in order. One that cannot be decoded ends them with its check.
    pub fn entries(&self) -> AttrSfEntries<'a> {
        AttrSfEntries { rest: self.entries, left: self.count }
    }
}

/// Iterator of [`AttrShort::entries`].
#[derive(Clone, Debug)]
pub struct AttrSfEntries<'a> {
    rest: &'a [u8],
    left: u8,
}

impl<'a> AttrSfEntries<'a> {
    /// What has not been consumed yet; nothing after the last entry of a sound fork.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self) -> Result<AttrSfEntry<'a>, Check> {
        let truncated = Check::new("attr_sf.entry", "nameval", Rule::Truncated);
        let (head, rest) = RawAttrSfEntry::prefix(self.rest).ok_or(truncated)?;
        if head.namelen == 0 {
            return Err(Check::new("attr_sf.entry", "namelen", Rule::Range));
        }
        let (name, rest) = rest.split_at_checked(usize::from(head.namelen)).ok_or(truncated)?;
        let (value, rest) = rest.split_at_checked(usize::from(head.valuelen)).ok_or(truncated)?;
        self.rest = rest;
        Ok(AttrSfEntry { flags: head.flags, name, value })
    }
}

impl<'a> Iterator for AttrSfEntries<'a> {
    type Item = Result<AttrSfEntry<'a>, Check>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let entry = self.take();
        if entry.is_err() {
            self.left = 0;
        }
        Some(entry)
    }
}

/// The bytes of an attribute fork in short form.
///
/// Returns `None` when they cannot be written: too many, or a name or value of the wrong length.
pub fn encode(entries: &[AttrSfEntry<'_>]) -> Option<Vec<u8>> {
    let count = u8::try_from(entries.len()).ok()?;
    let mut bytes = RawAttrSfHdr { totsize: 0.into(), count, padding: 0 }.as_bytes().to_vec();
    for entry in entries {
        let namelen = u8::try_from(entry.name.len()).ok().filter(|&len| len > 0)?;
        let valuelen = u8::try_from(entry.value.len()).ok()?;
        bytes.extend_from_slice(RawAttrSfEntry { namelen, valuelen, flags: entry.flags }.as_bytes());
        bytes.extend_from_slice(entry.name);
        bytes.extend_from_slice(entry.value);
    }
    let totsize = u16::try_from(bytes.len()).ok()?;
    RawAttrSfHdr::prefix_mut(&mut bytes)?.0.totsize = totsize.into();
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decode_inverts_encode(list in proptest::collection::vec(
            (any::<u8>(), proptest::collection::vec(any::<u8>(), 1..256), proptest::collection::vec(any::<u8>(), 0..256)), 0..30,
        )) {
            let entries: Vec<_> =
                list.iter().map(|(flags, name, value)| AttrSfEntry { flags: *flags, name, value }).collect();
            let bytes = encode(&entries).expect("encodable");
            let mut walk = AttrShort::decode(&bytes).expect("decodable").entries();
            let decoded: Result<Vec<_>, _> = walk.by_ref().collect();
            prop_assert_eq!(decoded.expect("sound entries"), entries);
            prop_assert!(walk.rest().is_empty());
            prop_assert!(AttrShort::decode(&bytes[..bytes.len() - 1]).is_err());
        }

        #[test]
        fn random_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Some(byte) = bytes.first_mut() {
                *byte = 0;
            }
            if let Ok(fork) = AttrShort::decode(&bytes) {
                prop_assert!(fork.entries().count() <= 255);
            }
        }
    }

    #[test]
    fn namespaces_and_flags_are_inverse() {
        use AttrNamespace::{Parent, Root, Secure, User};
        for namespace in [User, Root, Secure, Parent] {
            assert_eq!(AttrNamespace::from_flags(namespace.flags() | ATTR_LOCAL), Some(namespace));
        }
        assert_eq!(AttrNamespace::from_flags(ATTR_ROOT | ATTR_SECURE), None);
    }
}
