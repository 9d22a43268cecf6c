//! The attribute fork of an inode that is about to be freed (Linux `fs/xfs/xfs_attr_inactive.c`).

use std::collections::HashSet;

use super::fork;
use super::tree::{self, Form, ROOT};
use crate::error::{Check, Result, Rule};
use crate::forms::ForkKind;
use crate::forms::encode::{AttrLeafBuilder, Siblings};
use crate::geometry::{FileBlock, Ino};
use crate::ondisk::da_block::DaNode;
use crate::transaction::{Logged, Store};
use crate::volume::da_btree::{DaFile, is_node};
use crate::volume::{finish, mapping};

/// Frees all blocks of the attribute fork of an inode that is about to be freed, in transactions of their own, and the fork
/// (`xfs_attr_inactive`).
///
/// # Errors
/// `Corrupt` when the attributes are damaged; `Io`.
pub fn release(store: &mut Store, ino: Ino) -> Result<()> {
    let inode = store.inode(ino)?;
    let reservation = store.reservations().attrinval;
    let form = tree::form(&inode)?;
    let mut tx = store.begin(reservation, 0)?;
    if matches!(form, Form::Leaf | Form::Node) {
        // at once, so that a replay never meets a tree of which a part is gone
        let mut file = DaFile::attributes(&mut tx, ino);
        let blocks = blocks_below_root(&mut file)?;
        let kind = file.hash_kind();
        for at in blocks {
            if let Some(request) = file.find(kind, at)? {
                file.tx.invalidate(&request);
            }
        }
        let empty = AttrLeafBuilder::new(file.geometry()).into_leaf(&file.owner(), Siblings::default());
        file.write_new(kind, ROOT, empty, &Logged::All)?;
        tx.roll()?;
        let mut file = DaFile::attributes(&mut tx, ino);
        if let Some(root) = file.find(kind, ROOT)? {
            file.tx.invalidate(&root);
        }
        mapping::truncate(&mut tx, ino, ForkKind::Attr, ROOT)?;
    }
    if form != Form::None {
        fork::remove_fork(&mut tx, ino)?;
    }
    finish::finish(tx)
}

/// Nodes and leaves but the root.
fn blocks_below_root(file: &mut DaFile<'_, '_>) -> Result<Vec<FileBlock>> {
    let kind = file.hash_kind();
    let mut seen = HashSet::from([ROOT]);
    let (mut found, mut next) = (Vec::new(), vec![ROOT]);
    while let Some(at) = next.pop() {
        let bytes = file.read(kind, at)?;
        if at != ROOT {
            found.push(at);
        }
        if !is_node(&bytes) {
            continue;
        }
        let node = DaNode::decode(&bytes, file.crc()).map_err(|check| file.corrupt(check))?;
        for entry in node.entries {
            let child = FileBlock(u64::from(entry.before.get()));
            if !seen.insert(child) {
                return Err(file.corrupt(Check::new("da_node", "before", Rule::Cycle)));
            }
            // the leaves themselves need not be read
            if node.level > 1 { next.push(child) } else { found.push(child) }
        }
    }
    Ok(found)
}
