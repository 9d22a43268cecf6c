//! Attributes in the inode: the link back to the directory, and the property that says what checking may do. Sources:
//! `xfs_attr_shortform_bytesfit` and `xfs_default_attroffset` of Linux `fs/xfs/libxfs`, `set_autofsck` of xfsprogs
//! `mkfs/xfs_mkfs.c`.

use zerocopy::IntoBytes;

use crate::error::{Error, Result};
use crate::geometry::Ino;
use crate::mkfs::layout::Autofsck;
use crate::mkfs::write::inode::{Attributes, Data, Inode};
use crate::mkfs::write::maker::Maker;
use crate::mkfs::write::shape::Shape;
use crate::ondisk::attr_short::{self, ATTR_PARENT, ATTR_ROOT, AttrSfEntry};
use crate::ondisk::parent::RawParentRec;
use crate::ondisk::{OnDisk, RawBmbtKey, RawBmdrRoot, RawDinode, RawDinodeCore};

/// Name of the property that says what online checking may do, in the namespace of the root user.
const AUTOFSCK: &[u8] = b"xfs:autofsck";
/// Pointers that the root of an extent btree in an inode has room for in any case.
const SMALLEST_ROOT: usize = 2;
/// Pointers for which the attribute fork is given room when it is set up before anything is known of it.
const DEFAULT_ROOT: usize = 6 * SMALLEST_ROOT;
/// Bytes of the smallest inode, whose attribute fork gets less.
const SMALLEST_INODE: u32 = 256;

impl Maker<'_> {
    /// Sets the property of the root directory that says what online checking may do.
    pub fn set_autofsck(&mut self, root: &mut Inode, value: Autofsck) -> Result<()> {
        let entry = AttrSfEntry { flags: ATTR_ROOT, name: AUTOFSCK, value: value.word().as_bytes() };
        let bytes = encode(&entry)?;
        root.forkoff = match fork_offset(self.shape, root, bytes.len()) {
            0 => default_fork_offset(self.shape),
            units => units,
        };
        self.progress.attributes = true;
        self.commit(root)?;
        root.attributes = Attributes::Local(bytes);
        self.commit(root)
    }
}

/// Gives a file that will get attributes at once its attribute fork.
pub(super) fn reserve_fork(shape: &Shape, inode: &mut Inode) {
    inode.forkoff = default_fork_offset(shape);
}

/// Notes in `inode` that `parent`, of generation `generation`, names it `name`.
pub(super) fn set_parent(shape: &Shape, inode: &mut Inode, name: &[u8], parent: Ino, generation: u32) -> Result<()> {
    let mut record = RawParentRec { ino: parent.0.into(), generation: generation.into() };
    let value = record.as_mut_bytes();
    let bytes = encode(&AttrSfEntry { flags: ATTR_PARENT, name, value })?;
    let units = fork_offset(shape, inode, bytes.len());
    if units == 0 {
        return Err(Error::Internal("making a filesystem: the link to the parent does not fit".to_string()));
    }
    inode.forkoff = units;
    inode.attributes = Attributes::Local(bytes);
    Ok(())
}

fn encode(entry: &AttrSfEntry<'_>) -> Result<Vec<u8>> {
    attr_short::encode(std::slice::from_ref(entry))
        .ok_or_else(|| Error::Internal("making a filesystem: an attribute does not encode".to_string()))
}

/// Where the attribute fork goes, in units of 8 bytes, so that `bytes` fit into it; 0 if they do not.
fn fork_offset(shape: &Shape, inode: &Inode, bytes: usize) -> u8 {
    let area = literal_area(shape);
    let held = match inode.forkoff {
        0 => 0,
        units => area - (usize::from(units) << 3),
    };
    if bytes <= held {
        return inode.forkoff;
    }
    if bytes > area || !shape.layout.features.attr2 {
        return 0;
    }
    let offset = (area - bytes) >> 3;
    let data = match &inode.data {
        Data::Local(local) => local.len(),
        Data::Extents(extents) => extents.len() * crate::ondisk::RawExtent::SIZE,
        Data::Btree { .. } | Data::MetaBtree(_) => 0,
    };
    let least = data.max(root_bytes(SMALLEST_ROOT)).div_ceil(8);
    let most = (area - root_bytes(SMALLEST_ROOT)) >> 3;
    let units = match offset {
        offset if offset >= most => most,
        offset if offset >= least => offset,
        _ => 0,
    };
    u8::try_from(units).unwrap_or(0)
}

/// Where the attribute fork goes before anything is known of it, in units of 8 bytes.
fn default_fork_offset(shape: &Shape) -> u8 {
    let bytes = if shape.layout.inode.bytes() == SMALLEST_INODE {
        literal_area(shape) - root_bytes(SMALLEST_ROOT)
    } else {
        root_bytes(DEFAULT_ROOT)
    };
    u8::try_from(bytes >> 3).expect("invariant: an inode has 2 KiB at most")
}

/// Bytes of the inode behind its fields.
pub(super) fn literal_area(shape: &Shape) -> usize {
    let head = if shape.layout.features.crc { RawDinode::SIZE } else { RawDinodeCore::SIZE };
    usize::try_from(shape.layout.inode.bytes()).expect("invariant: 2 KiB at most") - head
}

/// Bytes of the data fork of an inode whose attribute fork begins at `forkoff`.
pub(super) fn data_room(shape: &Shape, forkoff: u8) -> usize {
    match forkoff {
        0 => literal_area(shape),
        units => usize::from(units) << 3,
    }
}

/// Bytes of the root of an extent btree with `pointers` pointers.
fn root_bytes(pointers: usize) -> usize {
    RawBmdrRoot::SIZE + pointers * (RawBmbtKey::SIZE + size_of::<u64>())
}
