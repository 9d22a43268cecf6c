//! Blocks allocated for a range of a file.

use crate::error::{Error, Result};
use crate::forms::ForkKind;
use crate::geometry::{FileBlock, Ino};
use crate::ondisk::Extent;
use crate::transaction::Transaction;

/// What blocks are allocated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Contents of a file: one new extent a call, as long as there is room for, by the rules for extent size hints and
    /// stripes. Also the values of attributes.
    Contents {
        /// The blocks read as zeroes until they are converted.
        unwritten: bool,
    },
    /// Blocks of directories, attribute trees and symlinks: all of them, in one piece if there is one.
    Metadata,
}

/// Allocates what is not mapped yet of `count` blocks of a fork from `at` on. Returns the extents that now cover the range,
/// cut to it, as far as it has come: with [`Growth::Contents`], the range may not be covered to its end.
///
/// # Errors
/// `NoSpace` when there is no room; `Unsupported` for realtime files; `Corrupt` when the fork or the group is damaged.
pub fn grow(
    _tx: &mut Transaction<'_>,
    _ino: Ino,
    _fork: ForkKind,
    _at: FileBlock,
    _count: u32,
    _growth: Growth,
) -> Result<Vec<Extent>> {
    Err(Error::Unsupported("growing files".to_owned()))
}
