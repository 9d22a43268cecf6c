//! Where the attribute fork of an inode begins (Linux `fs/xfs/libxfs/xfs_attr_leaf.c`, `xfs_attr_shortform_bytesfit`).

use crate::geometry::Geometry;
use crate::ondisk::{OnDisk, RawBmbtKey, RawBmdrRoot, RawExtent};

/// Pointers that the root of a data fork's extent btree has room for in any case.
const LEAST_DATA_POINTERS: usize = 3;
/// The same of an attribute fork.
const LEAST_ATTR_POINTERS: usize = 2;
/// Where the attribute fork of a device begins, in units of 8 bytes: behind the number of the device.
const DEVICE: u8 = 1;

/// What is to be in a data fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataForkSize {
    /// The number of a device, or nothing: a pipe or a socket.
    Device,
    /// So many bytes.
    Local(usize),
    /// So many extents.
    Extents(usize),
}

/// Bytes of the root of an extent btree with room for `pointers` pointers.
pub const fn root_in_inode_len(pointers: usize) -> usize {
    RawBmdrRoot::SIZE + pointers * (RawBmbtKey::SIZE + size_of::<u64>())
}

/// Where an attribute fork of `attributes` bytes in short form begins, in units of 8 bytes of the literal area; `None` when the
/// attributes must take another form. What does not fit before it must: extents go to a btree.
pub fn short_attr_fork_offset(geometry: &Geometry, data: DataForkSize, attributes: usize) -> Option<u8> {
    let area = usize::try_from(geometry.inodes.literal_size).ok()?;
    let offset = area.checked_sub(attributes)? >> 3;
    let usual = usize::try_from(geometry.inodes.attr_fork_offset).ok()?;
    let bytes = match data {
        DataForkSize::Device => return (offset >= usize::from(DEVICE)).then_some(DEVICE),
        DataForkSize::Local(bytes) => bytes,
        DataForkSize::Extents(count) if count * RawExtent::SIZE > usual => 0,
        DataForkSize::Extents(count) => count * RawExtent::SIZE,
    };
    let least = bytes.max(root_in_inode_len(LEAST_DATA_POINTERS)).div_ceil(8);
    let most = most_data(area);
    if offset < least || least > most {
        return None;
    }
    u8::try_from(offset.min(most)).ok()
}

/// Where an attribute fork begins whose attributes lie in blocks, in units of 8 bytes; `None` when the data fork must take
/// another form first.
pub fn block_attr_fork_offset(geometry: &Geometry, data: DataForkSize) -> Option<u8> {
    let area = usize::try_from(geometry.inodes.literal_size).ok()?;
    let usual = usize::try_from(geometry.inodes.attr_fork_offset).ok()? >> 3;
    let units = match data {
        DataForkSize::Device => return Some(DEVICE),
        DataForkSize::Local(bytes) => usual.max(bytes.div_ceil(8)),
        DataForkSize::Extents(_) => usual,
    };
    (units <= most_data(area)).then(|| u8::try_from(units).ok())?
}

/// Most units of 8 bytes of a data fork that leaves an attribute fork.
fn most_data(area: usize) -> usize {
    (area - root_in_inode_len(LEAST_ATTR_POINTERS)) >> 3
}
