//! Files out of an image into a folder, with all that the user may give them.
//!
//! | file | what it holds |
//! |---|---|
//! | `kept` | what could not be kept |
//! | `place` | the folder in which files are made, entered and left without following symbolic links |
//! | `properties` | owner, attributes, access bits and times of a file that was made |
//! | `extraction` | a tree, file by file |

mod extraction;
mod kept;
mod place;
mod properties;

pub use extraction::{Extracted, Extraction};
pub use kept::{Lost, NotKept, Property};
