//! Files of an image that nothing mounts: the engine of xfskit-files.
//!
//! A [`Reader`] reads inodes and folders and tells an observer what is damaged, so that everything else goes on with the
//! rest. Names are bytes; [`name`] has the form in which they are shown and taken.
//!
//! | file | what it holds |
//! |---|---|
//! | `reader` | inodes and folders of an image, with what is damaged reported |
//! | `folder` | the entries of a directory |
//! | `lookup` | from a path to its inode |
//! | `stat` | what an inode says of a file |
//! | `time` | points in time as text |
//! | `walk` | every file below a folder |
//! | `find`, `glob` | which files are looked for |
//! | `usage` | how much space files take |
//! | `map` | where the blocks of a file lie |
//! | `owner` | who owns a block |
//! | `xattrs` | extended attributes as Linux shows them |
//! | `contents` | the bytes of regular files |
//! | [`mod@tar`] | a tree as an archive |
//! | [`extract`] | a tree into a folder |

mod contents;
pub mod extract;
mod find;
mod folder;
mod glob;
mod lookup;
mod map;
pub mod owner;
mod reader;
mod stat;
pub mod tar;
pub mod time;
mod usage;
mod walk;
mod xattrs;

pub use crate::report::name;
pub use find::{Comparison, Filter};
pub use folder::{Entry, Folder, Order};
pub use glob::Glob;
pub use lookup::{Found, Last, Start};
pub use map::{Address, Map, Mapped, Mapping};
pub use reader::Reader;
pub use stat::{Stat, Xflags};
pub use usage::{Counted, Usage};
pub use walk::{Event, Next, Visited, walk};
pub use xattrs::{Xattr, Xattrs};
