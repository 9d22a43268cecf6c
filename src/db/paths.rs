//! From a path to its inode.

use super::session::Session;
use super::types::TypeId;
use crate::error::{Error, Result};
use crate::forms::{Directory, FileType, Inode};
use crate::geometry::Ino;
use crate::report::name::escape;

impl Session {
    /// The root of the metadata directory tree (`metadata`), or of the directories that users see.
    ///
    /// # Errors
    /// `Unsupported` when there is no metadata directory tree.
    pub fn root_directory(&self, metadata: bool) -> Result<Ino> {
        let geometry = self.geometry();
        if !metadata {
            return Ok(geometry.rootino);
        }
        geometry.metadirino.ok_or_else(|| Error::Unsupported("there is no metadata directory tree".to_owned()))
    }

    /// The inode that one looks at.
    ///
    /// # Errors
    /// `Usage` when it is none; else those of reading.
    pub fn inode_here(&self) -> Result<Inode> {
        self.require_type(TypeId::Inode)?;
        self.open_inode()
    }

    /// The inode that `path` leads to: from `root` where it begins with a slash, else from the directory that one
    /// looks at.
    ///
    /// # Errors
    /// `Usage` when there is no such name, or one on the way is no directory; else those of reading.
    pub fn resolve(&self, root: Ino, path: &[u8]) -> Result<Inode> {
        let source = self.image.cache();
        let mut inode = if path.starts_with(b"/") { Inode::read(source, root)? } else { self.inode_here()? };
        if !path.starts_with(b"/") && inode.file_type() != Some(FileType::Directory) {
            return Err(Error::Usage("the path does not begin with /, and one looks at no directory".to_owned()));
        }
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            let found = Directory::open(source, &inode)?.lookup(name)?;
            let found = found.ok_or_else(|| {
                Error::Usage(format!("{}: directory {} has no entry {}", escape(path), inode.ino, escape(name)))
            })?;
            inode = Inode::read(source, found.ino)?;
        }
        Ok(inode)
    }
}
