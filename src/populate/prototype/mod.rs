//! Prototype files, as mkfs.xfs reads them (mkfs.xfs(8), `-p`; details from what mkfs.xfs 7.2 does).
//!
//! | file | what it holds |
//! |---|---|
//! | `token` | words and comments |
//! | `parse` | from words to files |

mod parse;
mod token;

pub(super) use parse::{Options, read};
