//! Blocks and inodes in the form in which the journal holds them.

use super::buffer::Buffer;
use super::inode_item::InodeItem;
use super::store::{Newer, Store};
use crate::error::Result;
use crate::geometry::Geometry;
use crate::journal::{FormatItem, ItemKey, ItemSize, Regions};

/// Formats what is newer in memory.
pub(super) struct Formatter<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) newer: &'a Newer,
}

impl FormatItem for Formatter<'_> {
    fn format(&self, _key: &ItemKey, _regions: &mut Regions) -> Result<()> {
        Ok(())
    }
}

impl Newer {
    pub(super) fn size_of(&self, _geometry: &Geometry, _key: &ItemKey) -> Result<ItemSize> {
        Ok(ItemSize::default())
    }
}
