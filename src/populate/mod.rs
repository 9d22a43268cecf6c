//! Files for a new image.
//!
//! Sources (a folder, a prototype file, archives) are read into a [`Content`]: a tree in memory of everything but the bytes
//! of regular files, which go to a [`DataSink`] while the source is read, since what comes from a pipe comes once.
//!
//! | file | what it holds |
//! |---|---|
//! | `archive` | archives as source, and layers |
//! | `attribute` | extended attributes by the names that Linux gives them |
//! | `build` | the image: data first, then the tree |
//! | `content` | the tree: files, folders, and the names of both |
//! | `filling` | what all sources work on |
//! | `exclude` | which files are left out |
//! | `folder` | a folder as source |
//! | `prototype` | a prototype file as source |
//! | `map` | changes to what sources say |
//! | `source` | all sources together |
//! | `data` | where the bytes of a regular file are, and who takes them |
//! | `spool` | a temporary file that takes them until the size of the image is known |
//! | `minimize` | the smallest image that holds a tree |

mod archive;
mod attribute;
mod build;
mod content;
mod data;
mod exclude;
mod filling;
mod folder;
mod map;
#[cfg(test)]
mod memory_sink;
mod minimize;
mod prototype;
mod source;
mod spool;

pub use build::{BuildOptions, Builder, Summary};
pub use content::{
    Attributes, Content, FLAGS, Kind, MAX_NAME, MAX_SYMLINK, MAX_XATTR_VALUE, Node, NodeId, Xattr, check_name,
};
pub use data::{Bytes, Data, DataSink, Piece, Range, Stored};
pub use exclude::Exclude;
pub use folder::FileIdentity;
pub use map::Map;
pub use minimize::{Candidate, Candidates, Headroom, Regime, smallest};
pub use source::{Archive, Prototype, Sources};
pub use spool::Spool;
