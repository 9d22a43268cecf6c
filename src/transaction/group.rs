//! What is known of an allocation group in memory alone (Linux `xfs_ag.h`, `xfs_extent_busy.c`).

use std::collections::BTreeMap;

use crate::geometry::AgBlock;

/// Blocks freed by a checkpoint that is not in the log yet: after a crash they belong to whom they belonged before, so that
/// nothing but the journal's own metadata may be written there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusyExtents {
    /// Lengths by first block; they neither touch nor overlap.
    extents: BTreeMap<u32, u32>,
}

impl BusyExtents {
    /// Adds `len` blocks from `start` on.
    pub fn add(&mut self, start: AgBlock, len: u32) {
        let (mut low, mut high) = (start.0, start.0.saturating_add(len));
        if let Some((&before, &count)) = self.extents.range(..=low).next_back()
            && before + count >= low
        {
            low = before;
            high = high.max(before + count);
            self.extents.remove(&before);
        }
        while let Some((&next, &count)) = self.extents.range(low..=high).next() {
            high = high.max(next + count);
            self.extents.remove(&next);
        }
        self.extents.insert(low, high - low);
    }

    /// The busy extent that overlaps the range and lies lowest: first block and length.
    pub fn overlapping(&self, start: AgBlock, len: u32) -> Option<(AgBlock, u32)> {
        let end = start.0.saturating_add(len);
        let before = self.extents.range(..=start.0).next_back().filter(|&(&first, &count)| first + count > start.0);
        let found = before.or_else(|| self.extents.range(start.0..end).next());
        found.map(|(&first, &count)| (AgBlock(first), count))
    }

    /// Blocks in all of them.
    pub fn blocks(&self) -> u64 {
        self.extents.values().map(|len| u64::from(*len)).sum()
    }

    /// Forgets all: the log holds the checkpoint that freed them.
    pub fn clear(&mut self) {
        self.extents.clear();
    }
}

/// Blocks that a group keeps free for the growth of some of its btrees (Linux `struct xfs_ag_resv`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// Blocks that the btrees may come to need, with those that they have.
    pub asked: u32,
    /// Those that they do not have yet.
    pub left: u32,
}

/// What a group keeps back from files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// For the reference count and the free inode btree.
    pub metadata: Hold,
    /// For the reverse mapping btree. Its blocks count as free ones, used or not.
    pub rmapbt: Hold,
    /// Blocks of the free space btrees without their roots, which count as free ones, too (Linux `m_allocbt_blks`).
    pub free_space_btrees: u32,
}

impl Holdings {
    /// Blocks that the superblock counts as free and no transaction can reserve.
    pub fn hidden(&self) -> u64 {
        u64::from(self.metadata.left) + u64::from(self.rmapbt.asked) + u64::from(self.free_space_btrees)
    }
}

/// What is known of an allocation group in memory alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Blocks freed by the checkpoint that is being collected.
    pub busy: BusyExtents,
    /// What it keeps back (`xfs_ag_resv.c`).
    pub holdings: Holdings,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_are_a_set_of_blocks(ranges in prop::collection::vec((0_u32..200, 1_u32..20), 0..40), probe in (0_u32..220, 1_u32..8)) {
            let mut busy = BusyExtents::default();
            let mut model = std::collections::BTreeSet::new();
            for &(start, len) in &ranges {
                busy.add(AgBlock(start), len);
                model.extend(start..start + len);
            }
            prop_assert_eq!(busy.blocks(), model.len() as u64);
            let found = busy.overlapping(AgBlock(probe.0), probe.1);
            let wanted = (probe.0..probe.0 + probe.1).find(|block| model.contains(block));
            prop_assert_eq!(found.is_some(), wanted.is_some());
            if let (Some((start, len)), Some(block)) = (found, wanted) {
                prop_assert!(start.0 <= block && block < start.0 + len);
            }
        }
    }
}
