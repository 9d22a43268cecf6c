//! The forks of an inode: what of them lies in the inode itself (Linux `fs/xfs/libxfs/xfs_inode_fork.c`).
//!
//! There are two on disk, for data and for attributes. A copy-on-write fork exists in memory only; its blocks show up
//! in the reference count btree.

use super::extents::Extents;
use super::inode::{FileType, Inode};
use super::source::{BlockSource, corrupt};
use crate::btree::Node;
use crate::error::{Check, Result, Rule};
use crate::ondisk::dinode::format;
use crate::ondisk::{OnDisk, RawExtent};

/// Which fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ForkKind {
    /// Contents.
    Data,
    /// Attributes.
    Attr,
}

/// What of a fork lies in the inode.
#[derive(Clone, Copy, Debug)]
pub enum ForkForm<'a> {
    /// A device number.
    Device(u32),
    /// The contents themselves. Of an attribute fork, all bytes of the fork.
    Local(&'a [u8]),
    /// A list of extents.
    Extents(&'a [RawExtent]),
    /// The root of an extent btree.
    Btree(Node<'a>),
    /// The root of a metadata btree, with the bytes of the fork.
    MetaBtree(&'a [u8]),
}

/// A fork.
#[derive(Clone, Copy, Debug)]
pub struct Fork<'a> {
    /// Its inode.
    pub inode: &'a Inode,
    /// Which one it is.
    pub kind: ForkKind,
    /// How many extents the inode says that it has.
    pub nextents: u64,
    /// What of it lies in the inode.
    pub form: ForkForm<'a>,
}

impl<'a> Fork<'a> {
    pub(super) fn of(inode: &'a Inode, kind: ForkKind) -> Result<Option<Self>> {
        let raw = inode.raw();
        let Some(bytes) = bytes_of(inode, kind)? else { return Ok(None) };
        let (format, nextents) = match kind {
            ForkKind::Data => (raw.core.format, raw.data_extents()),
            ForkKind::Attr => (raw.core.aformat.to_be_bytes()[0], u64::from(raw.attr_extents())),
        };
        let form = decode_form(inode, bytes, format, nextents).and_then(|form| trim_local(form, inode, kind));
        match form {
            Ok(form) => Ok(Some(Fork { inode, kind, nextents, form })),
            Err(check) => Err(corrupt(check, &inode.place, format!("format {format}, {nextents} extents"))),
        }
    }

    /// All of its bytes in the inode, whatever its form makes of them.
    pub fn bytes(&self) -> &'a [u8] {
        bytes_of(self.inode, self.kind).ok().flatten().unwrap_or_default()
    }

    /// The fork's extents in order, read through `source` where they form a btree. None for other forms.
    pub fn extents(&self, source: &'a dyn BlockSource) -> Extents<'a> {
        Extents::new(source, *self)
    }
}

/// The bytes of the literal area that belong to a fork; `None` when there is no attribute fork.
fn bytes_of(inode: &Inode, kind: ForkKind) -> Result<Option<&[u8]>> {
    let core = &inode.raw().core;
    let literal = inode.bytes().get(core.literal_offset()..).unwrap_or(&[]);
    let start = core.fork_offset();
    if start > literal.len() {
        let check = Check::new("dinode", "forkoff", Rule::Range);
        return Err(corrupt(check, &inode.place, core.forkoff.to_string()));
    }
    Ok(match kind {
        ForkKind::Data if start == 0 => Some(literal),
        ForkKind::Data => Some(&literal[..start]),
        ForkKind::Attr if start == 0 => None,
        ForkKind::Attr => Some(&literal[start..]),
    })
}

fn decode_form<'a>(
    inode: &Inode,
    bytes: &'a [u8],
    format: u8,
    nextents: u64,
) -> std::result::Result<ForkForm<'a>, Check> {
    Ok(match format {
        format::DEV => {
            let device = bytes.first_chunk().ok_or(Check::new("dinode", "format", Rule::Truncated))?;
            ForkForm::Device(u32::from_be_bytes(*device))
        }
        format::LOCAL => ForkForm::Local(bytes),
        format::EXTENTS => {
            let too_many = Check::new("dinode", "nextents", Rule::Count);
            let count = usize::try_from(nextents).map_err(|_| too_many)?;
            ForkForm::Extents(RawExtent::prefix_slice(bytes, count).ok_or(too_many)?.0)
        }
        format::BTREE => ForkForm::Btree(decode_root(inode, bytes)?),
        format::META_BTREE => ForkForm::MetaBtree(bytes),
        _ => return Err(Check::new("dinode", "format", Rule::Range)),
    })
}

/// A root is a node: the level above its children, and at least one of them.
fn decode_root<'a>(inode: &Inode, bytes: &'a [u8]) -> std::result::Result<Node<'a>, Check> {
    let root = Node::decode(inode.bmbt_layout().in_inode(bytes.len()), bytes)?;
    if root.is_leaf() {
        return Err(Check::new("bmdr", "level", Rule::Range));
    }
    if root.count == 0 { Err(Check::new("bmdr", "numrecs", Rule::Range)) } else { Ok(root) }
}

/// Local data end where the inode's size says; those of an attribute fork have a size of their own.
fn trim_local<'a>(form: ForkForm<'a>, inode: &Inode, kind: ForkKind) -> std::result::Result<ForkForm<'a>, Check> {
    let (ForkForm::Local(bytes), ForkKind::Data) = (form, kind) else { return Ok(form) };
    if inode.file_type() == Some(FileType::Regular) {
        return Err(Check::new("dinode", "format", Rule::Mismatch));
    }
    let size = usize::try_from(inode.size()).ok();
    let data = size.and_then(|size| bytes.get(..size)).ok_or(Check::new("dinode", "size", Rule::Range))?;
    Ok(ForkForm::Local(data))
}
