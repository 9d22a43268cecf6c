//! Blocks of a file's metadata before they have a place.

use crate::forms::encode::Header;

/// A block of a directory, of attributes or of a target.
#[derive(Clone, Debug)]
pub(super) struct FileMetadata {
    /// Its first block in the file, in filesystem blocks.
    pub at: u64,
    /// Its header, if it has one: address and CRC are still missing.
    pub header: Option<Header>,
    /// Its bytes, whole filesystem blocks.
    pub bytes: Vec<u8>,
}
