//! What a layer takes away of those below it: `.wh.NAME` a file, `.wh..wh..opq` all that is in a folder. What the layer
//! itself adds stays, before and after.

use std::collections::HashSet;

use crate::error::Result;
use crate::populate::content::NodeId;
use crate::populate::filling::Filling;

const PREFIX: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Files of the program that these names come from, which say nothing about the layer.
const INTERNAL: &[u8] = b".wh..wh.";

/// What the name of a member says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Marker<'n> {
    /// A file of lower layers is not there.
    File(&'n [u8]),
    /// Nothing of lower layers is in the folder.
    Folder,
    /// Nothing.
    Internal,
}

impl<'n> Marker<'n> {
    /// The marker of this name, if it is one.
    pub fn of(name: &'n [u8]) -> Option<Self> {
        match name.strip_prefix(PREFIX) {
            None => None,
            Some(_) if name == OPAQUE => Some(Marker::Folder),
            Some(_) if name.starts_with(INTERNAL) => Some(Marker::Internal),
            Some(name) => Some(Marker::File(name)),
        }
    }

    /// Whether a path leads to or through the files of that program.
    pub fn is_internal(names: &[&[u8]]) -> bool {
        names.iter().any(|name| Marker::of(name) == Some(Marker::Internal))
    }
}

/// The names that a layer has added or gone over.
#[derive(Default)]
pub(super) struct Touched {
    names: HashSet<(NodeId, Box<[u8]>)>,
    /// Folders that nothing of lower layers is left in.
    cleared: HashSet<NodeId>,
}

impl Touched {
    /// Notes a name of the layer.
    pub fn insert(&mut self, folder: NodeId, name: &[u8]) {
        self.names.insert((folder, name.into()));
    }

    fn contains(&self, folder: NodeId, name: &[u8]) -> bool {
        self.names.contains(&(folder, Box::from(name)))
    }

    /// Takes out of a folder what lower layers have put there.
    pub fn clear(&mut self, filling: &mut Filling<'_>, folder: NodeId) -> Result<()> {
        if !self.cleared.insert(folder) {
            return Ok(());
        }
        // parents come before what is in them
        let mut found: Vec<(NodeId, Box<[u8]>, NodeId)> = Vec::new();
        let mut folders = vec![folder];
        while let Some(folder) = folders.pop() {
            for (name, child) in filling.content.entries(folder) {
                found.push((folder, name.into(), child));
                folders.push(child);
            }
        }
        let mut kept: HashSet<NodeId> = HashSet::new();
        for (folder, name, child) in found.into_iter().rev() {
            if self.contains(folder, &name) || kept.contains(&child) {
                kept.insert(folder);
            } else {
                filling.content.remove(folder, &name, filling.sink)?;
            }
        }
        Ok(())
    }

    /// Takes a file of lower layers out of a folder.
    pub fn remove(&mut self, filling: &mut Filling<'_>, folder: NodeId, name: &[u8]) -> Result<()> {
        let Some(child) = filling.content.lookup(folder, name) else { return Ok(()) };
        self.clear(filling, child)?;
        if !self.contains(folder, name) && filling.content.entries(child).next().is_none() {
            filling.content.remove(folder, name, filling.sink)?;
        }
        Ok(())
    }
}
