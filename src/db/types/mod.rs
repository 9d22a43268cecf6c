//! The types of blocks that one can look at: those of xfs_db's `type`, and the table of fields of each.
//!
//! Filesystems of version 4, of version 5 and with sparse inode chunks have different tables, as in xfs_db; see [`Family`].

mod checks;
mod type_id;

pub use checks::{checked_kind, crc_state};
pub use type_id::{Family, TypeId};

use super::field::Format;

/// What can be shown of a block.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// Fields.
    Fields(&'static Format),
    /// A string that ends with a zero byte.
    Text,
    /// Bytes in hexadecimal form and as characters.
    Dump,
    /// Bytes in hexadecimal form.
    Block,
    /// Nothing.
    Opaque,
}

/// What a block of this type is in such a filesystem; `None` when there is no such type in it.
pub fn body(ty: TypeId, family: Family) -> Option<Body> {
    ty.name(family)?;
    Some(match ty {
        TypeId::Data => Body::Block,
        TypeId::Text | TypeId::Rtbitmap | TypeId::Rtsummary => Body::Dump,
        _ => Body::Opaque,
    })
}
