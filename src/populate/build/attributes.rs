//! The attributes of a file in their final form, built at once (Linux `fs/xfs/libxfs/xfs_attr_leaf.c`,
//! `xfs_attr_remote.c`).

use std::borrow::Cow;

use zerocopy::IntoBytes;

use super::file_blocks::FileMetadata;
use super::hash_tree::HashTree;
use crate::error::{Error, Result};
use crate::forms::encode::{AttrLeafBuilder, BlockOwner, Header, encode_attr_value, encode_da_node};
use crate::geometry::{Geometry, Ino};
use crate::ondisk::OnDisk;
use crate::ondisk::attr_leaf::{AttrLeafName, AttrLeafValue, RawAttrLeafEntry, local_len, remote_len};
use crate::ondisk::attr_short::{self, AttrNamespace, AttrSfEntry, RawAttrSfEntry, RawAttrSfHdr};
use crate::ondisk::name_hash::{NameHash, hash_name};
use crate::ondisk::parent::{RawParentRec, hash_parent};

/// An attribute.
#[derive(Clone, Debug)]
pub(super) struct Attribute<'c> {
    hash: u32,
    namespace: AttrNamespace,
    name: &'c [u8],
    value: Cow<'c, [u8]>,
}

impl<'c> Attribute<'c> {
    /// One that users see.
    pub fn new(namespace: AttrNamespace, name: &'c [u8], value: &'c [u8]) -> Self {
        Attribute { hash: hash_name(name), namespace, name, value: Cow::Borrowed(value) }
    }

    /// The link back to a folder that names the file `name`.
    pub fn parent(geometry: &Geometry, folder: Ino, generation: u32, name: &'c [u8]) -> Self {
        let hash = if geometry.features.has_asciici() { NameHash::AsciiCi } else { NameHash::Bytes };
        let record = RawParentRec { ino: folder.0.into(), generation: generation.into() };
        Attribute {
            hash: hash_parent(hash, name, folder.0),
            namespace: AttrNamespace::Parent,
            name,
            value: Cow::Owned(record.as_bytes().to_vec()),
        }
    }

    /// Bytes that it takes in a leaf, and whether its value is there too.
    fn leaf_len(&self, geometry: &Geometry) -> (usize, bool) {
        let local = local_len(self.name.len(), self.value.len());
        let limit = usize::try_from(geometry.attributes.local_limit).unwrap_or(usize::MAX);
        if local < limit { (local, true) } else { (remote_len(self.name.len()), false) }
    }
}

/// Puts attributes into the order in which they are stored.
pub(super) fn sort(attributes: &mut [Attribute<'_>]) {
    attributes
        .sort_by(|one, other| (one.hash, one.namespace, one.name).cmp(&(other.hash, other.namespace, other.name)));
}

/// Bytes of the attributes in the inode; `None` when they cannot have that form, even in an inode of any size.
pub(super) fn short_len(attributes: &[Attribute<'_>]) -> Option<usize> {
    let mut len = RawAttrSfHdr::SIZE;
    u8::try_from(attributes.len()).ok()?;
    for attribute in attributes {
        u8::try_from(attribute.value.len()).ok()?;
        len += RawAttrSfEntry::SIZE + attribute.name.len() + attribute.value.len();
    }
    u16::try_from(len).is_ok().then_some(len)
}

/// The bytes of the attributes in the inode.
pub(super) fn short(attributes: &[Attribute<'_>]) -> Result<Vec<u8>> {
    let entry = |attribute| {
        let Attribute { namespace, name, value, .. }: &Attribute<'_> = attribute;
        AttrSfEntry { flags: namespace.flags(), name, value }
    };
    let list: Vec<_> = attributes.iter().map(entry).collect();
    attr_short::encode(&list).ok_or_else(misfit)
}

/// The blocks of the attributes, which are sorted, in the order of the fork.
///
/// # Errors
/// `Usage` when there are too many.
pub(super) fn blocks(
    geometry: &Geometry,
    owner: &BlockOwner,
    attributes: &[Attribute<'_>],
) -> Result<Vec<FileMetadata>> {
    let leaves = into_leaves(geometry, attributes);
    let hashes: Vec<u32> = leaves.iter().map(|leaf| leaf.last().map_or(0, |last| last.hash)).collect();
    let tree = HashTree::new(&hashes, 0, 1, geometry.attributes.node_entries)?;
    let mut blocks = Vec::new();
    let mut values = Vec::new();
    let mut next = tree.blocks;
    for (leaf, (at, siblings)) in leaves.iter().zip(&tree.leaves) {
        let mut builder = AttrLeafBuilder::new(geometry);
        for attribute in *leaf {
            let value = if attribute.leaf_len(geometry).1 {
                AttrLeafValue::Local(&attribute.value)
            } else {
                let valuelen = u32::try_from(attribute.value.len()).map_err(|_| misfit())?;
                let valueblk = next;
                for bytes in encode_attr_value(geometry, owner, &attribute.value) {
                    let header = owner.crc.then_some(Header::AttrRemote);
                    values.push(FileMetadata { at: u64::from(next), header, bytes });
                    next += 1;
                }
                AttrLeafValue::Remote { valueblk, valuelen }
            };
            let name = AttrLeafName { name: attribute.name, value };
            if !builder.push(attribute.hash, attribute.namespace.flags(), &name) {
                return Err(misfit());
            }
        }
        let bytes = builder.into_leaf(owner, *siblings);
        blocks.push(FileMetadata { at: u64::from(*at), header: Some(Header::DaBlock), bytes });
    }
    for node in &tree.nodes {
        let bytes = encode_da_node(geometry.blocksize, owner, node.siblings, node.level, &node.entries);
        let bytes = bytes.ok_or_else(misfit)?;
        blocks.push(FileMetadata { at: u64::from(node.at), header: Some(Header::DaBlock), bytes });
    }
    blocks.sort_by_key(|block| block.at);
    blocks.append(&mut values);
    Ok(blocks)
}

/// Cuts the attributes into what a leaf holds each.
fn into_leaves<'a, 'c>(geometry: &Geometry, attributes: &'a [Attribute<'c>]) -> Vec<&'a [Attribute<'c>]> {
    let room = usize::try_from(geometry.blocksize - geometry.attributes.leaf_header_size).unwrap_or(0);
    let mut leaves = Vec::new();
    let (mut begin, mut used) = (0, 0);
    for (at, attribute) in attributes.iter().enumerate() {
        let len = RawAttrLeafEntry::SIZE + attribute.leaf_len(geometry).0;
        if used + len > room {
            leaves.push(&attributes[begin..at]);
            (begin, used) = (at, 0);
        }
        used += len;
    }
    leaves.push(&attributes[begin..]);
    leaves
}

fn misfit() -> Error {
    Error::Internal("what was counted for an attribute leaf does not fit into it".into())
}
