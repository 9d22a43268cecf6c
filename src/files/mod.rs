//! Files of an image that nothing mounts: the engine of xfskit-files.
//!
//! Files are read, walked and copied out by [`mod@crate::tree`]. Names are bytes; [`name`] has the form in which they are
//! shown and taken.
//!
//! | file | what it holds |
//! |---|---|
//! | `lookup` | from a path to its inode |
//! | `time` | points in time as text |
//! | [`edit`] | changes of the files of an image |
//! | `find`, `glob` | which files are looked for |
//! | `usage` | how much space files take |
//! | `map` | where the blocks of a file lie |
//! | `owner` | who owns a block |
//! | [`mod@tar`] | a tree as an archive |

pub mod edit;
mod find;
mod glob;
mod lookup;
mod map;
pub mod owner;
pub mod tar;
pub mod time;
mod usage;

pub use crate::report::name;
pub use crate::tree::{Entry, Event, Folder, Next, Order, Reader, Stat, Visited, Xattr, Xattrs, Xflags, extract, walk};
pub use find::{Comparison, Filter};
pub use glob::Glob;
pub use lookup::{Found, Last, Start};
pub use map::{Address, Map, Mapped, Mapping};
pub use usage::{Counted, Usage};
