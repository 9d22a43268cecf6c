//! Which inode each file gets: folders and what they name side by side, where their data lie.

use super::inodes::InodeCount;
use super::space::Space;
use super::stored::StoredPieces;
use crate::error::Result;
use crate::geometry::{Geometry, Ino};
use crate::populate::content::{Content, Kind, NodeId};
use crate::populate::data::Piece;

/// A file with its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    /// Which file.
    pub node: NodeId,
    /// Its inode.
    pub ino: Ino,
    /// How many names it has; of a folder, how many folders it names, and 2.
    pub links: u32,
    /// The folder that names it; itself for the root.
    pub parent: NodeId,
}

/// A name of a file: the folder that has it, and the name.
pub(super) type Name<'c> = (NodeId, &'c [u8]);

/// The places of all files of the tree.
pub(super) struct Numbering<'c> {
    /// In the order in which they were found.
    pub placed: Vec<Placed>,
    /// For each node, its place in `placed`.
    index: Vec<Option<u32>>,
    /// For each of `placed`, its names, where they are wanted.
    pub names: Option<Vec<Vec<Name<'c>>>>,
}

impl<'c> Numbering<'c> {
    /// Gives each file of `content` its inode; the root has one.
    ///
    /// # Errors
    /// `Usage` when there is no room.
    pub fn new(
        content: &'c Content,
        root: Ino,
        geometry: &Geometry,
        space: &mut Space,
        count: &mut InodeCount,
        stored: &StoredPieces,
    ) -> Result<Self> {
        let mut numbering = Numbering {
            placed: Vec::new(),
            index: vec![None; content.len()],
            names: geometry.features.has_parent().then(Vec::new),
        };
        let home = |ino: Ino| geometry.ino_parts(ino).and_then(|parts| usize::try_from(parts.agno.0).ok()).unwrap_or(0);
        numbering.add(NodeId::ROOT, root, NodeId::ROOT, 2);
        let mut folders = vec![(NodeId::ROOT, home(root))];
        while let Some((folder, group)) = folders.pop() {
            let first_new = folders.len();
            for (name, child) in content.entries(folder) {
                let is_folder = matches!(content.node(child).kind, Kind::Directory(_));
                let at = match numbering.index[child.index()] {
                    Some(at) => at,
                    None => {
                        let group = if is_folder {
                            group_of_data(content, child, geometry, stored).unwrap_or(group)
                        } else {
                            group
                        };
                        let ino = space.take_inode(geometry, count, group)?;
                        if is_folder {
                            folders.push((child, home(ino)));
                        }
                        numbering.add(child, ino, folder, if is_folder { 2 } else { 0 })
                    }
                };
                numbering.name(at, is_folder, folder, name);
            }
            folders[first_new..].reverse();
        }
        Ok(numbering)
    }

    fn add(&mut self, node: NodeId, ino: Ino, parent: NodeId, links: u32) -> u32 {
        let at = u32::try_from(self.placed.len()).expect("invariant: nodes are counted in 32 bits");
        self.placed.push(Placed { node, ino, links, parent });
        self.index[node.index()] = Some(at);
        if let Some(names) = &mut self.names {
            names.push(Vec::new());
        }
        at
    }

    fn name(&mut self, at: u32, is_folder: bool, folder: NodeId, name: &'c [u8]) {
        let counted = if is_folder { self.index[folder.index()].unwrap_or(0) } else { at };
        self.placed[counted as usize].links += 1;
        if let Some(names) = &mut self.names {
            names[at as usize].push((folder, name));
        }
    }

    /// The place of a node in `placed`; `None` if no name leads to it.
    pub fn position(&self, node: NodeId) -> Option<usize> {
        self.index[node.index()].map(|at| at as usize)
    }

    /// The inode of a node that a name leads to.
    pub fn ino(&self, node: NodeId) -> Option<Ino> {
        self.position(node).map(|at| self.placed[at].ino)
    }
}

/// The group that has most of the data of the files in a folder.
fn group_of_data(content: &Content, folder: NodeId, geometry: &Geometry, stored: &StoredPieces) -> Option<usize> {
    let mut shares: Vec<(u64, u64)> = Vec::new();
    for (_, child) in content.entries(folder) {
        let Kind::Regular(data) = &content.node(child).kind else { continue };
        for range in &data.ranges {
            let Piece::Stored(piece) = range.piece else { continue };
            let Some(first) = stored.get(piece).and_then(|pieces| pieces.first()) else { continue };
            let group = first.start.0 >> geometry.agblklog;
            match shares.iter_mut().find(|share| share.0 == group) {
                Some(share) => share.1 += piece.blocks,
                None => shares.push((group, piece.blocks)),
            }
        }
    }
    let most = shares.into_iter().min_by_key(|&(group, blocks)| (std::cmp::Reverse(blocks), group))?;
    usize::try_from(most.0).ok()
}
