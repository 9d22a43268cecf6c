//! A block of the tree taken out of a full filesystem (`xfs_da3_swap_lastblock`).
//!
//! Taking a block out of the middle of an extent may need a block for the mapping that is split. The last block of the tree
//! can always go, so that its contents move to the place of the one that is to go.

use super::file::DaFile;
use super::node::{Node, block, is_node, links, number};
use super::path::Path;
use crate::error::{Check, Error, Result, Rule};
use crate::geometry::FileBlock;
use crate::ondisk::dir_leaf::DirLeaf;
use crate::transaction::Logged;

/// Takes a block out of the tree, which nothing leads to any more. `path` still leads where it did if another block has to
/// move.
pub(super) fn take_out(file: &mut DaFile<'_, '_>, at: FileBlock, path: &mut Path) -> Result<()> {
    let kind = file.hash_kind();
    match file.take_out(kind, at) {
        Err(Error::NoSpace(message)) => {
            let Some(last) = file.last_of_tree()?.filter(|&last| last != at) else {
                return Err(Error::NoSpace(message));
            };
            move_block(file, last, at)?;
            path.steps.iter_mut().filter(|step| step.at == last).for_each(|step| step.at = at);
            if path.leaf == last {
                path.leaf = at;
            }
            file.take_out(kind, last)
        }
        other => other,
    }
}

/// Moves a block of the tree, with all that leads to it.
fn move_block(file: &mut DaFile<'_, '_>, from: FileBlock, to: FileBlock) -> Result<()> {
    let kind = file.hash_kind();
    let bytes = file.read(kind, from)?;
    let crc = file.crc();
    let (level, hash) = if is_node(&bytes) {
        let node = Node::decode(&bytes, crc).map_err(|check| file.corrupt(check))?;
        (node.level, node.last_hash())
    } else {
        let leaf = DirLeaf::decode(&bytes, crc).map_err(|check| file.corrupt(check))?;
        (0, leaf.entries.last().map_or(0, |entry| entry.hashval.get()))
    };
    let (old, new) = (number(from)?, number(to)?);
    let siblings = links(&bytes);
    file.write_new(kind, to, bytes.to_vec(), &Logged::All)?;
    file.relink(siblings.back, |links| links.forw = new)?;
    file.relink(siblings.forw, |links| links.back = new)?;
    let mut at = file.root();
    loop {
        let node = file.node(at)?;
        if node.level <= level {
            return Err(file.corrupt(Check::new("da_node", "level", Rule::Mismatch)));
        }
        let first = node.entries.partition_point(|entry| entry.hashval.get() < hash);
        if node.level > level + 1 {
            let entry = node.entries.get(first.min(node.entries.len() - 1));
            at = entry.map_or(at, |entry| block(entry.before.get()));
            continue;
        }
        return rename_child(file, at, old, new);
    }
}

/// The child `old` of a node, or of one of those that follow it, is called `new` from now on.
fn rename_child(file: &mut DaFile<'_, '_>, at: FileBlock, old: u32, new: u32) -> Result<()> {
    let mut at = at;
    let mut budget = file.geometry().dblocks;
    loop {
        let mut node = file.node(at)?;
        if let Some(entry) = node.entries.iter_mut().find(|entry| entry.before.get() == old) {
            entry.before.set(new);
            return file.store_node(at, &node.entries);
        }
        let forw = links(&file.read(file.hash_kind(), at)?).forw;
        budget = budget.saturating_sub(1);
        if forw == 0 || budget == 0 {
            return Err(file.corrupt(Check::new("da_node", "before", Rule::Mismatch)));
        }
        at = block(forw);
    }
}
