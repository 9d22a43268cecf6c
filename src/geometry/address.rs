//! One type for every kind of address, so that they never mix. Conversions need a geometry.

use std::fmt;

macro_rules! address {
    ($( $(#[$meta:meta])* $name:ident($int:ty); )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$int> for $name {
            fn from(value: $int) -> Self {
                $name(value)
            }
        }
    )* };
}

address! {
    /// Number of an allocation group.
    AgNumber(u32);
    /// Block within an allocation group, in filesystem blocks.
    AgBlock(u32);
    /// Block of the data device as XFS encodes it: group number shifted left by agblklog, or'ed with the block in the group.
    FsBlock(u64);
    /// Disk address in units of 512 bytes.
    Daddr(u64);
    /// Inode number.
    Ino(u64);
    /// Inode number within an allocation group.
    AgIno(u32);
    /// Block of the realtime section; with realtime groups, encoded like [`FsBlock`].
    RtBlock(u64);
    /// Realtime extent, counted from the start of the section or group.
    RtExtent(u64);
    /// Number of a realtime group.
    RgNumber(u32);
    /// Block within a realtime group, in filesystem blocks.
    RgBlock(u32);
    /// Block of a file, in filesystem blocks from its start.
    FileBlock(u64);
    /// Log sequence number: cycle in the upper, block in the lower 32 bits.
    Lsn(u64);
}

impl Lsn {
    /// The number of a cycle and a block of the log (512-byte units).
    pub fn new(cycle: u32, block: u32) -> Self {
        Lsn(u64::from(cycle) << 32 | u64::from(block))
    }

    /// The cycle.
    pub fn cycle(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The block, in 512-byte units from the start of the log.
    #[allow(clippy::cast_possible_truncation)] // the lower half is what is asked for
    pub fn block(self) -> u32 {
        self.0 as u32
    }
}
