//! Leaves that have become empty or small, and what that makes of the nodes above (`xfs_da3_join`).

use super::file::DaFile;
use super::node::{Node, block, is_node, links, set_links, store_entries};
use super::path::Path;
use super::swap;
use crate::error::{Check, Error, Result, Rule};
use crate::geometry::FileBlock;
use crate::transaction::Logged;

/// What the tree must know of its leaves.
pub(in crate::volume) trait Leaves {
    /// Whether a leaf has nothing in it.
    fn is_empty(&self, leaf: &[u8]) -> Result<bool>;
    /// Whether a leaf is not more than half full.
    fn is_sparse(&self, leaf: &[u8]) -> Result<bool>;
    /// Whether one block holds what is in two, and has a quarter of its room to spare.
    fn fit_in_one(&self, a: &[u8], b: &[u8]) -> Result<bool>;
    /// What is in two leaves that follow each other, stored in the block `into`.
    fn merge(&self, first: &[u8], second: &[u8], into: &mut Vec<u8>) -> Result<()>;
    /// The greatest hash of a leaf.
    fn last_hash(&self, leaf: &[u8]) -> Result<u32>;
}

/// Nodes, looked at in the same way as leaves.
struct Nodes {
    crc: bool,
    most: usize,
}

impl Nodes {
    fn node(&self, bytes: &[u8]) -> Result<Node> {
        Node::decode(bytes, self.crc).map_err(|check| Error::corrupt(check, Default::default()))
    }
}

impl Leaves for Nodes {
    fn is_empty(&self, _: &[u8]) -> Result<bool> {
        // one without entries is dropped as soon as it has lost the last
        Ok(false)
    }

    fn is_sparse(&self, leaf: &[u8]) -> Result<bool> {
        Ok(self.node(leaf)?.entries.len() <= self.most / 2)
    }

    fn fit_in_one(&self, a: &[u8], b: &[u8]) -> Result<bool> {
        Ok(self.node(a)?.entries.len() + self.node(b)?.entries.len() <= self.most - self.most / 4)
    }

    fn merge(&self, first: &[u8], second: &[u8], into: &mut Vec<u8>) -> Result<()> {
        let mut entries = self.node(first)?.entries;
        entries.extend(self.node(second)?.entries);
        store_entries(into, self.crc, &entries)
    }

    fn last_hash(&self, leaf: &[u8]) -> Result<u32> {
        Ok(self.node(leaf)?.last_hash())
    }
}

/// What becomes of a block that has lost entries.
enum Fate {
    /// It stays.
    Stays,
    /// The block at the end of this path is to be dropped.
    Dropped(Path),
}

/// The leaf that `path` leads to has lost an entry: it is dropped if it is empty, or merged with a neighbour if both are
/// small; and so the nodes above.
pub(in crate::volume) fn join(file: &mut DaFile<'_, '_>, path: Path, leaves: &dyn Leaves) -> Result<()> {
    let nodes = Nodes { crc: file.crc(), most: file.node_entries() };
    let kind = file.hash_kind();
    let mut path = path;
    let mut depth = path.steps.len();
    while depth > 0 {
        let level: &dyn Leaves = if depth == path.steps.len() { leaves } else { &nodes };
        path = match fate(file, &path, depth, level)? {
            Fate::Stays => return Ok(()),
            Fate::Dropped(path) => path,
        };
        loop {
            let dropped = path.at(depth);
            file.unlink(kind, dropped)?;
            swap::take_out(file, dropped, &mut path)?;
            depth -= 1;
            let step = path.steps[depth];
            let mut node = file.node(step.at)?;
            node.entries.remove(step.index);
            if node.entries.is_empty() {
                if depth == 0 {
                    return Err(file.corrupt(Check::new("da_node", "count", Rule::Range)));
                }
                continue;
            }
            file.store_node(step.at, &node.entries)?;
            path.fix_hash(file, depth, node.last_hash())?;
            break;
        }
    }
    join_root(file)
}

fn fate(file: &mut DaFile<'_, '_>, path: &Path, depth: usize, level: &dyn Leaves) -> Result<Fate> {
    let kind = file.hash_kind();
    let at = path.at(depth);
    let bytes = file.read(kind, at)?;
    if !level.is_sparse(&bytes)? {
        return Ok(Fate::Stays);
    }
    let siblings = links(&bytes);
    if level.is_empty(&bytes)? {
        let alone = siblings.forw == 0 && siblings.back == 0;
        return Ok(if alone { Fate::Stays } else { Fate::Dropped(path.clone()) });
    }
    // the one with the smaller number first
    let mut forward = siblings.forw < siblings.back;
    for _ in 0..2 {
        let neighbour = if forward { siblings.forw } else { siblings.back };
        if neighbour != 0 {
            let theirs = file.read(kind, block(neighbour))?;
            if level.fit_in_one(&bytes, &theirs)? {
                return merge(file, path, depth, level, forward);
            }
        }
        forward = !forward;
    }
    Ok(Fate::Stays)
}

/// Merges a block with its neighbour into the one that has the smaller number.
fn merge(file: &mut DaFile<'_, '_>, path: &Path, depth: usize, level: &dyn Leaves, forward: bool) -> Result<Fate> {
    let kind = file.hash_kind();
    let mut other = path.clone();
    if !other.shift(file, depth, forward)? {
        return Err(file.corrupt(Check::new("da_blkinfo", "forw", Rule::Mismatch)));
    }
    let (here, there) = (path.at(depth), other_end(&other, depth));
    let (first, second) = if forward { (here, there) } else { (there, here) };
    let (first, second) = (file.read(kind, first)?, file.read(kind, second)?);
    let (kept, dropped, kept_at) =
        if there.0 < here.0 { (other, path.clone(), there) } else { (path.clone(), other, here) };
    let mut bytes = file.read(kind, kept_at)?.to_vec();
    level.merge(&first, &second, &mut bytes)?;
    let hash = level.last_hash(&bytes)?;
    file.write(kind, kept_at, bytes)?;
    kept.fix_hash(file, depth, hash)?;
    Ok(Fate::Dropped(dropped))
}

/// A path that was shifted ends at its depth.
fn other_end(path: &Path, depth: usize) -> FileBlock {
    path.at(depth)
}

/// A root with one child gives way to it (`xfs_da3_root_join`).
fn join_root(file: &mut DaFile<'_, '_>) -> Result<()> {
    let (kind, root) = (file.hash_kind(), file.root());
    let node = file.node(root)?;
    let [only] = node.entries[..] else { return Ok(()) };
    let at = block(only.before.get());
    let mut child = file.read(kind, at)?.to_vec();
    let fits = is_node(&child) == (node.level > 1);
    let siblings = links(&child);
    if !fits || siblings.forw != 0 || siblings.back != 0 {
        return Err(file.corrupt(Check::new("da_node", "level", Rule::Mismatch)));
    }
    set_links(&mut child, siblings);
    file.write_new(kind, root, child, &Logged::All)?;
    let mut path = Path { steps: Vec::new(), leaf: root };
    swap::take_out(file, at, &mut path)
}
