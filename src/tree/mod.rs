//! The files of an image as a tree: read, walked, copied out.
//!
//! A [`Reader`] reads inodes and folders and tells an observer what is damaged, so that everything else goes on with the
//! rest.
//!
//! | file | what it holds |
//! |---|---|
//! | `reader` | inodes and folders of an image, with what is damaged reported |
//! | `folder` | the entries of a directory |
//! | `stat` | what an inode says of a file |
//! | `walk` | every file below a folder |
//! | `xattrs` | extended attributes as Linux shows them |
//! | `contents` | the bytes of regular files |
//! | [`extract`] | a tree into a folder |

mod contents;
pub mod extract;
mod folder;
mod reader;
mod stat;
mod walk;
mod xattrs;

pub use contents::zeroes;
pub use folder::{Entry, Folder, Order};
pub use reader::Reader;
pub use stat::{Stat, Xflags};
pub use walk::{Event, Next, Visited, walk};
pub use xattrs::{ACCESS_XATTR, DEFAULT_XATTR, Xattr, Xattrs};
