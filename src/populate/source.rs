//! All sources together, and what is changed in what they say.

use std::collections::HashSet;
use std::io::Read;
use std::path::PathBuf;

use super::content::{Attributes, Content, NodeId};
use super::data::DataSink;
use super::exclude::Exclude;
use super::filling::Filling;
use super::folder::FileIdentity;
use super::map::Map;
use super::{archive, folder, prototype};
use crate::error::{Error, Result};
use crate::report::Observer;
use crate::report::name::escape;

/// Access bits of a root directory that no source describes; mkfs.xfs makes it so.
const ROOT_MODE: u16 = 0o755;

/// A folder or a prototype file (`-p`).
#[derive(Clone, Debug)]
pub struct Prototype {
    /// Where it is.
    pub path: PathBuf,
    /// Whether times of access are those of the files that are copied.
    pub atime: bool,
    /// Whether slashes in the names of a prototype file stand for blanks.
    pub slashes_are_spaces: bool,
}

/// An archive.
pub struct Archive<'a> {
    /// What it is called in errors.
    pub name: String,
    /// Its bytes, which may be compressed.
    pub reader: Box<dyn Read + 'a>,
}

/// What is to be in an image.
pub struct Sources<'a> {
    /// What comes first.
    pub prototype: Option<Prototype>,
    /// What goes on top of it, one after the other.
    pub archives: Vec<Archive<'a>>,
    /// What is left out.
    pub exclude: Exclude,
    /// User and group that own everything.
    pub owner: Option<(u32, u32)>,
    /// What is changed last.
    pub map: Option<Map>,
    /// Files that must not be read: the image itself.
    pub forbidden: HashSet<FileIdentity>,
    /// Reads a size in a prototype file, with the suffixes that mkfs.xfs knows, in bytes.
    pub size: &'a dyn Fn(&str) -> Option<u64>,
}

impl Sources<'_> {
    /// Reads everything.
    ///
    /// # Errors
    /// `Source`, with the name of what is wrong or cannot be read; those of the sink.
    pub fn read(self, sink: &mut dyn DataSink, observer: &dyn Observer) -> Result<Content> {
        let content = Content::new(Attributes { permissions: ROOT_MODE, ..Attributes::default() });
        let mut filling = Filling { content, sink, observer, exclude: &self.exclude };
        if let Some(prototype) = &self.prototype {
            let Prototype { path, atime, slashes_are_spaces } = prototype;
            let found = std::fs::metadata(path);
            let found = found.map_err(|error| Error::source(escape(path.as_os_str().as_encoded_bytes()), error))?;
            if found.is_dir() {
                let options = folder::Options { atime: *atime, forbidden: &self.forbidden };
                folder::read(path, options, &mut filling)?;
            } else {
                let options =
                    prototype::Options { slashes_are_spaces: *slashes_are_spaces, atime: *atime, size: self.size };
                prototype::read(path, options, &mut filling)?;
            }
        }
        let mut accounts = archive::Accounts::default();
        for archive in self.archives {
            archive::read(&archive.name, archive.reader, &mut accounts, &mut filling)?;
        }
        let Filling { mut content, sink, .. } = filling;
        if let Some(map) = &self.map {
            map.make(&mut content, sink)?;
        }
        if let Some(owner) = self.owner {
            own(&mut content, owner);
        }
        if let Some(map) = &self.map {
            map.apply(&mut content)?;
        }
        Ok(content)
    }
}

/// Gives every file that is in the tree to one user and group.
fn own(content: &mut Content, (uid, gid): (u32, u32)) {
    let mut left = vec![NodeId::ROOT];
    while let Some(id) = left.pop() {
        let attributes = &mut content.node_mut(id).attributes;
        (attributes.uid, attributes.gid) = (uid, gid);
        left.extend(content.entries(id).map(|(_, child)| child));
    }
}
