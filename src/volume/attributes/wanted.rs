//! Which attribute is meant.

use crate::error::{Error, Result};
use crate::geometry::Geometry;
use crate::ondisk::OnDisk;
use crate::ondisk::attr_leaf::{AttrLeaf, AttrLeafValue};
use crate::ondisk::attr_short::{ATTR_INCOMPLETE, ATTR_NSP_ONDISK_MASK, ATTR_PARENT, AttrSfEntry};
use crate::ondisk::name_hash::{NameHash, hash_name};
use crate::ondisk::parent::{RawParentRec, hash_parent};

/// The attribute that is meant: parent pointers are told apart by their values, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted<'a> {
    pub(super) namespace: u8,
    pub(super) name: &'a [u8],
    /// The value, of a parent pointer.
    value: Option<&'a [u8]>,
    pub(super) hash: u32,
}

impl<'a> Wanted<'a> {
    /// The attribute of this namespace and name, and, if it is a parent pointer, this value.
    ///
    /// # Errors
    /// `Usage` when a parent pointer's value is none.
    pub(super) fn new(geometry: &Geometry, namespace: u8, name: &'a [u8], value: &'a [u8]) -> Result<Self> {
        if namespace != ATTR_PARENT {
            return Ok(Wanted { namespace, name, value: None, hash: hash_name(name) });
        }
        let short = || Error::Usage("a parent pointer names a directory".to_owned());
        let (record, _) = RawParentRec::prefix(value).ok_or_else(short)?;
        let how = if geometry.features.has_asciici() { NameHash::AsciiCi } else { NameHash::Bytes };
        Ok(Wanted { namespace, name, value: Some(value), hash: hash_parent(how, name, record.ino.get()) })
    }

    /// Whether an attribute is the one, among those that readers see or among the others.
    fn is(&self, flags: u8, name: &[u8], value: Option<&[u8]>, incomplete: bool) -> bool {
        const MASK: u8 = ATTR_NSP_ONDISK_MASK | ATTR_INCOMPLETE;
        let flags_wanted = self.namespace | if incomplete { ATTR_INCOMPLETE } else { 0 };
        flags & MASK == flags_wanted && name == self.name && self.value.is_none_or(|wanted| value == Some(wanted))
    }

    /// Its place among attributes in short form.
    pub(super) fn position_in_short(&self, entries: &[AttrSfEntry<'_>]) -> Option<usize> {
        entries.iter().position(|entry| self.is(entry.flags, entry.name, Some(entry.value), false))
    }

    /// Its place in a leaf.
    pub(super) fn position_in_leaf(&self, leaf: &AttrLeaf<'_>, incomplete: bool) -> Option<usize> {
        let start = leaf.entries.partition_point(|entry| entry.hashval.get() < self.hash);
        let same = leaf.entries[start..].iter().take_while(|entry| entry.hashval.get() == self.hash);
        let mut same = same.map(|entry| (entry.flags, leaf.name(entry)));
        same.position(|(flags, name)| {
            name.is_ok_and(|name| {
                let value = if let AttrLeafValue::Local(value) = name.value { Some(value) } else { None };
                self.is(flags, name.name, value, incomplete)
            })
        })
        .map(|found| start + found)
    }
}
