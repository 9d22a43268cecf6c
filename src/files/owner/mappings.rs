//! Owners as the reverse mapping btree has them.

use super::{BlockAddress, BlockOwner, FileBlock};
use crate::btree::{ForkContents, SortKey, Tree, overlapping};
use crate::buffer::BlockKind;
use crate::error::{Check, Error, Place, Result, Rule};
use crate::forms::{ForkForm, ForkKind, RtGroupFile, rtgroup_file};
use crate::geometry::{AgBlock, AgNumber, BtreeKind, Ino, RgNumber};
use crate::ondisk::rmap_record::owner;
use crate::ondisk::{OnDisk, RawAgf, RawRmapRecord, Rmap};
use crate::tree::Reader;

/// The owners of `block` that the reverse mapping btree names, without those in `known`; `None` when there is no such tree,
/// or it cannot be read.
pub(super) fn owners(reader: &Reader<'_>, block: BlockAddress, known: &[BlockOwner]) -> Option<Vec<BlockOwner>> {
    if !reader.geometry().features.has_rmapbt() {
        return None;
    }
    let records = match block {
        BlockAddress::Data(agno, agbno) => of_group(reader, agno, agbno),
        BlockAddress::Realtime(rtb) => {
            let (rgno, rgbno) = reader.geometry().rtb_parts(rtb)?;
            of_realtime_group(reader, rgno, rgbno.0)
        }
    };
    match records {
        Ok(records) => Some(records.iter().filter_map(|rmap| owner_of(rmap, known)).collect()),
        Err(error) => {
            reader.report(&error);
            None
        }
    }
}

fn of_group(reader: &Reader<'_>, agno: AgNumber, agbno: AgBlock) -> Result<Vec<Rmap>> {
    let header = reader.image().cache().read_header(BlockKind::Agf, agno)?.sound()?;
    let agf = header.structure::<RawAgf>()?;
    let tree = Tree::of_group(BtreeKind::Rmapbt, agno, AgBlock(agf.rmap_root.get()), agf.rmap_level.get());
    in_tree(reader, tree, agbno.0)
}

fn of_realtime_group(reader: &Reader<'_>, rgno: RgNumber, rgbno: u32) -> Result<Vec<Rmap>> {
    let missing = || Error::corrupt(Check::new("rtrmapbt", "inode", Rule::Mismatch), Place::default());
    let inode = rtgroup_file(reader.source(), rgno, RtGroupFile::Rmap)?.ok_or_else(missing)?;
    let fork = inode.fork(ForkKind::Data)?.ok_or_else(missing)?;
    let ForkForm::MetaBtree(bytes) = fork.form else { return Err(missing()) };
    in_tree(reader, Tree::of_fork(BtreeKind::Rtrmapbt, inode.ino, ForkContents::Data, bytes), rgbno)
}

/// The records that cover the block.
fn in_tree(reader: &Reader<'_>, tree: Tree<'_>, block: u32) -> Result<Vec<Rmap>> {
    let block = u64::from(block);
    let (low, high) = (SortKey([block, 0, 0]), SortKey([block, u64::MAX, u64::MAX]));
    let mut found = Vec::new();
    overlapping(&(reader.image().cache(), tree), low, high, &mut |record| {
        let rmap = RawRmapRecord::prefix(record).and_then(|(raw, _)| raw.decode());
        let covers = |rmap: &Rmap| {
            block.checked_sub(u64::from(rmap.startblock)).is_some_and(|behind| behind < u64::from(rmap.blockcount))
        };
        let Some(rmap) = rmap else {
            return Err(Error::corrupt(Check::new("rmap_rec", "offset", Rule::Flags), tree.place()));
        };
        if covers(&rmap) {
            // the block itself is what is asked for, not the extent
            let behind = block - u64::from(rmap.startblock);
            let offset = if rmap.bmbt_block { rmap.offset } else { rmap.offset + behind };
            found.push(Rmap { offset, ..rmap });
        }
        Ok(())
    })?;
    Ok(found)
}

/// What a record says; what it says of the group's own structures adds nothing to what these say themselves.
fn owner_of(rmap: &Rmap, known: &[BlockOwner]) -> Option<BlockOwner> {
    if !owner::is_special(rmap.owner) {
        return Some(BlockOwner::File(FileBlock {
            ino: Ino(rmap.owner),
            is_attribute: rmap.attr_fork,
            is_btree: rmap.bmbt_block,
            offset: rmap.offset,
            unwritten: rmap.unwritten,
        }));
    }
    let agrees = known.iter().any(|known| match rmap.owner {
        owner::FS => matches!(known, BlockOwner::Headers | BlockOwner::RealtimeSuperblock),
        owner::LOG => *known == BlockOwner::Journal,
        owner::AG => matches!(
            known,
            BlockOwner::FreeList | BlockOwner::Btree(BtreeKind::Bnobt | BtreeKind::Cntbt | BtreeKind::Rmapbt)
        ),
        owner::INOBT => matches!(known, BlockOwner::Btree(BtreeKind::Inobt | BtreeKind::Finobt)),
        owner::INODES => matches!(known, BlockOwner::Inodes(_)),
        owner::REFC => *known == BlockOwner::Btree(BtreeKind::Refcountbt),
        owner::COW => *known == BlockOwner::CopyOnWrite,
        _ => false,
    });
    (!agrees).then_some(BlockOwner::Other(rmap.owner))
}
