//! The types of blocks that one can look at: those of xfs_db's `type`, and the table of fields of each.
//!
//! Filesystems of version 4, of version 5 and with sparse inode chunks have different tables, as in xfs_db; see [`Family`].

mod attribute;
mod attribute_short;
mod btree_block;
mod checks;
mod da_header;
mod directory;
mod directory_entry;
mod directory_short;
mod group_btrees;
mod headers;
mod inode;
mod inode_btrees;
mod quota;
mod realtime;
mod symlink;
#[cfg(test)]
mod tests;
mod type_id;

pub use attribute_short::ATTR_SHORT;
pub use directory_short::{DIR2_SHORT, DIR3_SHORT};
pub use inode_btrees::{ATTR_EXTENT, ATTR_EXTENT_KEY, DATA_EXTENT, DATA_EXTENT_KEY};
pub use inode_btrees::{RT_REFCOUNT, RT_REFCOUNT_KEY, RT_RMAP, RT_RMAP_KEY};

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
    let by_version = |v4, v5| Body::Fields(if family.has_crc() { v5 } else { v4 });
    Some(match ty {
        TypeId::Attr => by_version(&attribute::ATTR, &attribute::ATTR3),
        TypeId::Bmapbta => by_version(&inode_btrees::BMAPBTA, &inode_btrees::BMAPBTA_V5),
        TypeId::Bmapbtd => by_version(&inode_btrees::BMAPBTD, &inode_btrees::BMAPBTD_V5),
        TypeId::Bnobt => by_version(&group_btrees::BNOBT, &group_btrees::BNOBT_V5),
        TypeId::Cntbt => by_version(&group_btrees::CNTBT, &group_btrees::CNTBT_V5),
        TypeId::Rmapbt => Body::Fields(&group_btrees::RMAPBT),
        TypeId::Rtrmapbt => Body::Fields(&inode_btrees::RTRMAPBT),
        TypeId::Refcntbt => Body::Fields(&group_btrees::REFCNTBT),
        TypeId::Rtrefcntbt => Body::Fields(&inode_btrees::RTREFCNTBT),
        TypeId::Dir2 => by_version(&directory::DIR2, &directory::DIR3),
        TypeId::Dqblk => Body::Fields(&quota::DQBLK),
        TypeId::Inode => by_version(&inode::INODE, &inode::INODE_V3),
        TypeId::Inobt if family == Family::Sparse => Body::Fields(&group_btrees::INOBT_SPARSE),
        TypeId::Inobt => by_version(&group_btrees::INOBT, &group_btrees::INOBT_V5),
        TypeId::Rtsb => Body::Fields(&realtime::RTSB),
        TypeId::Symlink if family.has_crc() => Body::Fields(&symlink::SYMLINK),
        TypeId::Symlink => Body::Text,
        TypeId::Finobt if family == Family::Sparse => Body::Fields(&group_btrees::FINOBT_SPARSE),
        TypeId::Finobt => by_version(&group_btrees::FINOBT, &group_btrees::FINOBT_V5),
        TypeId::Rgbitmap => Body::Fields(&realtime::RGBITMAP),
        TypeId::Rgsummary => Body::Fields(&realtime::RGSUMMARY),
        TypeId::Agf => Body::Fields(&headers::AGF),
        TypeId::Agfl => by_version(&headers::AGFL_PLAIN, &headers::AGFL),
        TypeId::Agi => Body::Fields(&headers::AGI),
        TypeId::Sb => Body::Fields(&headers::SB),
        TypeId::Data => Body::Block,
        TypeId::Text | TypeId::Rtbitmap | TypeId::Rtsummary => Body::Dump,
        _ => Body::Opaque,
    })
}
