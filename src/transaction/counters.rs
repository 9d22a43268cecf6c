//! The superblock's counters, which are kept in memory while a filesystem is open (Linux `xfs_fsops.c`, `xfs_mount.c`).

use crate::geometry::Geometry;
use crate::ondisk::RawSuperblock;

/// The counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Inodes, free ones included.
    pub icount: u64,
    /// Free inodes.
    pub ifree: u64,
    /// Free blocks of the data device.
    pub fdblocks: u64,
    /// Free realtime extents.
    pub frextents: u64,
}

/// What a transaction changes of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterChange {
    /// Inodes.
    pub icount: i64,
    /// Free inodes.
    pub ifree: i64,
    /// Free blocks.
    pub fdblocks: i64,
    /// Free realtime extents.
    pub frextents: i64,
}

impl Counters {
    /// As a superblock has them.
    pub fn of(sb: &RawSuperblock) -> Self {
        Counters {
            icount: sb.icount.get(),
            ifree: sb.ifree.get(),
            fdblocks: sb.fdblocks.get(),
            frextents: sb.frextents.get(),
        }
    }

    /// Stores them.
    pub fn store(&self, sb: &mut RawSuperblock) {
        sb.icount.set(self.icount);
        sb.ifree.set(self.ifree);
        sb.fdblocks.set(self.fdblocks);
        sb.frextents.set(self.frextents);
    }

    /// The counters after a change; `None` if one would fall below zero.
    pub fn changed(&self, change: &CounterChange) -> Option<Self> {
        Some(Counters {
            icount: self.icount.checked_add_signed(change.icount)?,
            ifree: self.ifree.checked_add_signed(change.ifree)?,
            fdblocks: self.fdblocks.checked_add_signed(change.fdblocks)?,
            frextents: self.frextents.checked_add_signed(change.frextents)?,
        })
    }
}

impl CounterChange {
    /// Adds another change.
    pub fn add(&mut self, other: &CounterChange) {
        self.icount += other.icount;
        self.ifree += other.ifree;
        self.fdblocks += other.fdblocks;
        self.frextents += other.frextents;
    }
}

/// Blocks that free space btrees and free lists may need at any time, which nobody else gets (`xfs_alloc_set_aside`).
pub(super) fn set_aside(geometry: &Geometry) -> u64 {
    const PER_GROUP: u64 = 4 + 4;
    u64::from(geometry.agcount) * PER_GROUP
}
