//! Changes of the files of an image, each as transactions of its journal.
//!
//! | file | what it holds |
//! |---|---|
//! | `change` | what can be done, as data |
//! | `path` | from a path to an inode, or to a directory and a new name |
//! | `editor` | changes carried out one after the other |
//! | `put` | files of this machine copied into the image |
//! | `mode` | access modes in the words of chmod |

mod change;
mod editor;
mod mode;
mod path;
mod put;

pub use change::{Change, Failure, TimeChange};
pub use editor::Editor;
pub use mode::ModeChange;
