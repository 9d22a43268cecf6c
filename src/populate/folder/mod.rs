//! A folder as source: everything below it, as it is.
//!
//! | file | what it holds |
//! |---|---|
//! | `walk` | folder after folder |
//! | `place` | the folder in which the walk is |
//! | `file` | the contents of a regular file |
//! | `xattrs` | extended attributes of files that are open, and of those that cannot be opened |

mod file;
mod place;
#[cfg(test)]
mod tests;
mod walk;
mod xattrs;

pub(super) use file::Opened;
pub use place::FileIdentity;
pub(super) use walk::{Options, read};
pub(super) use xattrs::XattrReader;
