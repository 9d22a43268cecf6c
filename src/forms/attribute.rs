//! Extended attributes of every form (Linux `fs/xfs/xfs_attr_list.c`, `fs/xfs/libxfs/xfs_attr.c`,
//! `xfs_attr_remote.c`).

use super::da_btree::{HashIndex, IndexBlock};
use super::file_blocks::map_file_block;
use super::fork::{Fork, ForkForm, ForkKind};
use super::inode::Inode;
use super::source::{BlockSource, Piece, corrupt, damage_of, demand_sound, place_of, read_pieces};
use crate::buffer::{Block, BlockKind};
use crate::error::{Check, Place, Result, Rule};
use crate::geometry::{FileBlock, FsBlock};
use crate::ondisk::OnDisk;
use crate::ondisk::attr_leaf::{AttrLeaf, AttrLeafValue};
use crate::ondisk::attr_short::{ATTR_INCOMPLETE, ATTR_ONDISK_MASK, AttrNamespace, AttrShort};
use crate::ondisk::remote::{ATTR_MAX_VALUELEN, RawAttr3RmtHdr};
use std::borrow::Cow;
use std::ops::ControlFlow;

/// The forms of an attribute fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttrForm {
    /// In the inode.
    Short,
    /// One leaf.
    Leaf,
    /// Leaves below nodes.
    Node,
}

/// Where an attribute's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttrValue<'a> {
    /// Beside the name.
    Local(&'a [u8]),
    /// In blocks of its own: read it with [`Attributes::value`].
    Remote {
        /// First block, in filesystem blocks of the attribute fork.
        block: FileBlock,
        /// Bytes of the value, as the leaf has it.
        len: u32,
    },
}

/// An attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Namespace; where the flags choose more than one, see the damage that was reported before.
    pub namespace: Option<AttrNamespace>,
    /// Flags, the namespace's among them.
    pub flags: u8,
    /// The name, without its namespace.
    pub name: &'a [u8],
    /// The value, or where it is.
    pub value: AttrValue<'a>,
}

impl Attribute<'_> {
    /// Whether it is being made or removed: readers must not see it.
    pub fn is_incomplete(&self) -> bool {
        self.flags & ATTR_INCOMPLETE != 0
    }
}

/// What a walk over attributes calls for each of them and each damage.
pub type VisitAttribute<'v> = &'v mut dyn FnMut(Result<Attribute<'_>>) -> ControlFlow<()>;

/// The attributes of an inode.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    source: &'a dyn BlockSource,
    inode: &'a Inode,
    fork: Fork<'a>,
}

impl<'a> Attributes<'a> {
    /// The attributes of `inode`; `None` when it has no attribute fork, or one without any block.
    ///
    /// # Errors
    /// `Corrupt` when the attribute fork cannot be decoded.
    pub fn open(source: &'a dyn BlockSource, inode: &'a Inode) -> Result<Option<Self>> {
        Ok(match inode.fork(ForkKind::Attr)? {
            Some(Fork { form: ForkForm::Extents([]), .. }) | None => None,
            Some(fork) => Some(Attributes { source, inode, fork }),
        })
    }

    /// The form of the fork.
    ///
    /// # Errors
    /// `Io`; `Corrupt` when the root block cannot be read.
    pub fn form(&self) -> Result<AttrForm> {
        if matches!(self.fork.form, ForkForm::Local(_)) {
            return Ok(AttrForm::Short);
        }
        let nodes = HashIndex::attributes(self.source, self.fork).has_nodes()?;
        Ok(if nodes { AttrForm::Node } else { AttrForm::Leaf })
    }

    /// Calls `visit` for each attribute, incomplete ones and parent pointers among them, and for each damage. A
    /// damaged block costs its own attributes and no others.
    pub fn for_each(&self, visit: VisitAttribute<'_>) {
        // whether the walk was broken off is known to who broke it off
        let _ = match self.fork.form {
            ForkForm::Local(bytes) => self.short(bytes, visit),
            ForkForm::Extents(_) | ForkForm::Btree(_) => self.leaves(visit),
            ForkForm::Device(_) | ForkForm::MetaBtree(_) => {
                visit(Err(corrupt(Check::new("dinode", "aformat", Rule::Range), &self.inode.place, "")))
            }
        };
    }

    fn short(&self, bytes: &[u8], visit: VisitAttribute<'_>) -> ControlFlow<()> {
        let failed = |check| Err(corrupt(check, &self.inode.place, ""));
        let fork = match AttrShort::decode(bytes) {
            Ok(fork) => fork,
            Err(check) => return visit(failed(check)),
        };
        let mut entries = fork.entries();
        for entry in entries.by_ref() {
            match entry {
                Ok(e) => self.show(e.flags, e.name, AttrValue::Local(e.value), &self.inode.place, visit)?,
                Err(check) => return visit(failed(check)),
            }
        }
        if entries.rest().is_empty() {
            return ControlFlow::Continue(());
        }
        visit(failed(Check::new("attr_sf.hdr", "totsize", Rule::Mismatch)))
    }

    fn leaves(&self, visit: VisitAttribute<'_>) -> ControlFlow<()> {
        let index = HashIndex::attributes(self.source, self.fork);
        for next in index.leaves() {
            match next {
                Ok((block, _)) => match index.decode(&block) {
                    Ok(IndexBlock::AttrLeaf(leaf)) => self.leaf(&block, &leaf, visit)?,
                    Ok(_) => visit(Err(corrupt(Check::new("attr_leaf", "magic", Rule::Magic), &self.inode.place, "")))?,
                    Err(error) => visit(Err(error))?,
                },
                Err(error) => visit(Err(error))?,
            }
        }
        ControlFlow::Continue(())
    }

    fn leaf(&self, block: &Block, leaf: &AttrLeaf<'_>, visit: VisitAttribute<'_>) -> ControlFlow<()> {
        for error in damage_of(block) {
            visit(Err(error))?;
        }
        let place = place_of(self.source, block);
        for entry in leaf.entries {
            match leaf.name(entry) {
                Ok(name) => {
                    let value = match name.value {
                        AttrLeafValue::Local(bytes) => AttrValue::Local(bytes),
                        AttrLeafValue::Remote { valueblk, valuelen } => {
                            AttrValue::Remote { block: FileBlock(u64::from(valueblk)), len: valuelen }
                        }
                    };
                    self.show(entry.flags, name.name, value, &place, visit)?;
                }
                Err(check) => visit(Err(corrupt(check, &place, format!("hash {:#x}", entry.hashval.get()))))?,
            }
        }
        ControlFlow::Continue(())
    }

    fn show(
        &self,
        flags: u8,
        name: &[u8],
        value: AttrValue<'_>,
        place: &Place,
        visit: VisitAttribute<'_>,
    ) -> ControlFlow<()> {
        let namespace = AttrNamespace::from_flags(flags);
        if namespace.is_none() || flags & !ATTR_ONDISK_MASK != 0 {
            let check = Check::new("attr", "flags", Rule::Flags);
            visit(Err(corrupt(check, place, format!("{flags:#x} of {:?}", String::from_utf8_lossy(name)))))?;
        }
        if name.contains(&0) && namespace != Some(AttrNamespace::Parent) {
            let check = Check::new("attr", "name", Rule::Range);
            visit(Err(corrupt(check, place, format!("{:?}", String::from_utf8_lossy(name)))))?;
        }
        visit(Ok(Attribute { namespace, flags, name, value }))
    }

    /// The value of an attribute, read where it lies in blocks of its own.
    ///
    /// # Errors
    /// `Io`; `Corrupt` when the value is longer than any can be, or its blocks fail a check.
    pub fn value<'v>(&self, value: &AttrValue<'v>) -> Result<Cow<'v, [u8]>> {
        match *value {
            AttrValue::Local(bytes) => Ok(Cow::Borrowed(bytes)),
            AttrValue::Remote { block, len } => self.remote_value(block, len).map(Cow::Owned),
        }
    }

    fn remote_value(&self, start: FileBlock, len: u32) -> Result<Vec<u8>> {
        let failed = |field, rule, detail| corrupt(Check::new("attr_rmt", field, rule), &self.inode.place, detail);
        if len > ATTR_MAX_VALUELEN {
            return Err(failed("valuelen", Rule::Range, len.to_string()));
        }
        let geometry = self.source.geometry();
        let crc = geometry.features.has_crc();
        let header = if crc { RawAttr3RmtHdr::SIZE } else { 0 };
        let blocksize = usize::try_from(geometry.blocksize).unwrap_or(0);
        let space = blocksize.saturating_sub(header).max(1);
        let total = usize::try_from(len).unwrap_or(0);
        let count = u32::try_from(total.div_ceil(space)).unwrap_or(0);
        let pieces = map_file_block(self.source, &self.fork, start, count)?;
        let pieces = pieces.ok_or_else(|| failed("valueblk", Rule::Range, start.to_string()))?;
        let mut value = Vec::with_capacity(total);
        for start in pieces.iter().flat_map(|piece| (0..piece.count).map(|at| FsBlock(piece.start.0 + u64::from(at)))) {
            let block = read_pieces(self.source, BlockKind::AttrRemote, self.inode.ino, &[Piece { start, count: 1 }])?;
            let wanted = space.min(total - value.len());
            if crc {
                demand_sound(&block)?;
                check_remote(&block, &place_of(self.source, &block), value.len(), wanted)?;
            }
            let bytes = block.bytes().get(header..header + wanted);
            value.extend_from_slice(bytes.ok_or_else(|| failed("bytes", Rule::Truncated, start.to_string()))?);
        }
        Ok(value)
    }
}

/// A block of a remote value must say that it holds `wanted` bytes from `offset` of the value.
fn check_remote(block: &Block, place: &Place, offset: usize, wanted: usize) -> Result<()> {
    let failed = |field| corrupt(Check::new("attr3_rmt", field, Rule::Mismatch), place, "");
    let (header, _) = RawAttr3RmtHdr::prefix(block.bytes()).ok_or_else(|| failed("magic"))?;
    if usize::try_from(header.offset.get()).ok() != Some(offset) {
        return Err(failed("offset"));
    }
    if usize::try_from(header.bytes.get()).ok() != Some(wanted) {
        return Err(failed("bytes"));
    }
    Ok(())
}
