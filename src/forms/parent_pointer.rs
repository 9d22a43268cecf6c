//! Parent pointers: which directories have an entry for an inode (Linux `fs/xfs/libxfs/xfs_parent.c`).

use super::attribute::{AttrValue, Attribute, Attributes};
use super::inode::Inode;
use super::source::{BlockSource, corrupt};
use crate::error::{Check, Place, Result, Rule};
use crate::geometry::Ino;
use crate::ondisk::OnDisk;
use crate::ondisk::attr_short::AttrNamespace;
use crate::ondisk::parent::RawParentRec;
use std::ops::ControlFlow;

/// A parent pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParentPointer<'a> {
    /// The directory.
    pub parent: Ino,
    /// Its generation.
    pub generation: u32,
    /// The name in it.
    pub name: &'a [u8],
}

/// Calls `visit` for each parent pointer of `inode`, and for each damage among its attributes.
///
/// # Errors
/// `Corrupt` when the attribute fork cannot be decoded.
pub fn for_each_parent(
    source: &dyn BlockSource,
    inode: &Inode,
    visit: &mut dyn FnMut(Result<ParentPointer<'_>>) -> ControlFlow<()>,
) -> Result<()> {
    let Some(attributes) = Attributes::open(source, inode)? else { return Ok(()) };
    attributes.for_each(&mut |attribute| match attribute {
        Ok(attribute) if attribute.namespace == Some(AttrNamespace::Parent) => {
            visit(decode(source, &attribute, &inode.place))
        }
        Ok(_) => ControlFlow::Continue(()),
        Err(error) => visit(Err(error)),
    });
    Ok(())
}

fn decode<'a>(source: &dyn BlockSource, attribute: &Attribute<'a>, place: &Place) -> Result<ParentPointer<'a>> {
    let failed = |field, rule| {
        let detail = format!("{:?}", String::from_utf8_lossy(attribute.name));
        corrupt(Check::new("parent_rec", field, rule), place, detail)
    };
    if attribute.is_incomplete() {
        return Err(failed("flags", Rule::Flags));
    }
    if attribute.name.iter().any(|byte| matches!(byte, 0 | b'/')) {
        return Err(failed("name", Rule::Range));
    }
    let AttrValue::Local(value) = attribute.value else { return Err(failed("value", Rule::Mismatch)) };
    let record = RawParentRec::prefix(value).filter(|(_, rest)| rest.is_empty());
    let (record, _) = record.ok_or_else(|| failed("value", Rule::Truncated))?;
    let parent = Ino(record.ino.get());
    let geometry = source.geometry();
    if !geometry.is_valid_ino(parent) || geometry.is_internal_ino(parent) {
        return Err(failed("ino", Rule::Range));
    }
    Ok(ParentPointer { parent, generation: record.generation.get(), name: attribute.name })
}
