//! Archives as source: tar in the formats of V7, ustar, GNU and pax, plain or compressed, one on top of the other as the
//! layers of a container image (POSIX.1-2017 `pax`; GNU tar manual, "Basic Tar Format" and "Storing Sparse Files"; OCI image
//! specification, "Image Layer Filesystem Changeset").
//!
//! | file | what it holds |
//! |---|---|
//! | `stream` | the bytes of the archive, decompressed |
//! | `number` | numbers and times in all their forms |
//! | `header` | a header block |
//! | `records` | extended header records |
//! | `sparse` | where a sparse file holds data, in all four forms |
//! | `member` | members: headers, and what extends them |
//! | `acl_text` | access control lists as text |
//! | `xattr` | extended attributes of records |
//! | `path` | paths of members |
//! | `layer` | a layer on top of what is there |
//! | `whiteout` | what a layer takes away |

mod acl_text;
mod header;
mod layer;
mod member;
mod number;
mod path;
mod records;
mod sparse;
mod stream;
#[cfg(test)]
mod tests;
mod whiteout;
mod xattr;

pub(super) use layer::{Accounts, read};
