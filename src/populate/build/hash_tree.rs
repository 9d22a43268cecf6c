//! The tree over the leaves of a directory or of attributes: where its blocks lie in the file, and what its nodes say.

use crate::error::{Error, Result};
use crate::forms::encode::Siblings;
use crate::ondisk::da_block::RawDaNodeEntry;

/// A node over leaves or nodes.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Its block of the file.
    pub at: u32,
    /// Level above the leaves.
    pub level: u16,
    /// Its neighbours.
    pub siblings: Siblings,
    /// Its children.
    pub entries: Vec<RawDaNodeEntry>,
}

/// The tree: the root lies in its first block, whatever it is.
#[derive(Clone, Debug, Default)]
pub(super) struct HashTree {
    /// Block and neighbours of each leaf.
    pub leaves: Vec<(u32, Siblings)>,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Blocks of leaves and nodes.
    pub blocks: u32,
}

impl HashTree {
    /// The tree over leaves with these greatest hashes; its blocks lie `step` apart from `first` on, and a node holds `most`
    /// entries.
    pub fn new(hashes: &[u32], first: u32, step: u32, most: u32) -> Result<Self> {
        let most = usize::try_from(most).map_err(|_| large())?.max(2);
        if hashes.len() <= 1 {
            return Ok(HashTree { leaves: vec![(first, Siblings::default())], nodes: Vec::new(), blocks: 1 });
        }
        let mut next = 1;
        let mut take = |count: usize| -> Result<Vec<u32>> {
            let begin = next;
            next += u32::try_from(count).map_err(|_| large())?;
            let at = |index: u32| step.checked_mul(index).and_then(|away| first.checked_add(away)).ok_or_else(large);
            (begin..next).map(at).collect()
        };
        let at = take(hashes.len())?;
        let leaves = with_siblings(&at);
        let mut children: Vec<(u32, u32)> = hashes.iter().copied().zip(at).collect();
        let mut nodes = Vec::new();
        for level in 1.. {
            let count = children.len().div_ceil(most);
            let at = if count == 1 { vec![first] } else { take(count)? };
            let mut above = Vec::new();
            let mut rest = &children[..];
            for (index, (at, siblings)) in with_siblings(&at).into_iter().enumerate() {
                // the first nodes take what is left over of an even share
                let share = children.len() / count + usize::from(index < children.len() % count);
                let (own, behind) = rest.split_at(share);
                let entry =
                    |&(hash, before): &(u32, u32)| RawDaNodeEntry { hashval: hash.into(), before: before.into() };
                nodes.push(Node { at, level, siblings, entries: own.iter().map(entry).collect() });
                above.push((own.last().map_or(0, |last| last.0), at));
                rest = behind;
            }
            if count == 1 {
                break;
            }
            children = above;
        }
        Ok(HashTree { leaves, nodes, blocks: next })
    }
}

fn with_siblings(at: &[u32]) -> Vec<(u32, Siblings)> {
    let other = |index: Option<usize>| index.and_then(|index| at.get(index)).copied().unwrap_or(0);
    let siblings = |index: usize| Siblings { forw: other(index.checked_add(1)), back: other(index.checked_sub(1)) };
    at.iter().enumerate().map(|(index, &at)| (at, siblings(index))).collect()
}

fn large() -> Error {
    Error::Usage("a folder has more names, or a file more attributes, than can be indexed".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_leaf_is_below_the_root() {
        for count in [1_u32, 2, 5, 6, 25, 26, 124] {
            let hashes: Vec<u32> = (0..count).map(|index| index * 10).collect();
            let tree = HashTree::new(&hashes, 100, 4, 5).expect("small");
            assert_eq!(tree.leaves.len(), hashes.len());
            let root = tree.nodes.iter().find(|node| node.at == 100);
            assert_eq!(root.is_some(), count > 1);
            assert_eq!(tree.leaves[0].0 == 100, count == 1);
            let children: usize = tree.nodes.iter().map(|node| node.entries.len()).sum();
            // all but the root are somebody's child
            assert_eq!(children, tree.leaves.len() + tree.nodes.len() - 1);
            assert!(tree.nodes.iter().all(|node| node.entries.len() <= 5));
            assert_eq!(usize::try_from(tree.blocks).expect("small"), tree.leaves.len() + tree.nodes.len());
            let mut at: Vec<u32> =
                tree.leaves.iter().map(|leaf| leaf.0).chain(tree.nodes.iter().map(|n| n.at)).collect();
            at.sort_unstable();
            assert_eq!(at, (0..tree.blocks).map(|index| 100 + 4 * index).collect::<Vec<_>>());
        }
    }
}
