//! The metadata directory tree, and the files in it (Linux `fs/xfs/libxfs/xfs_metadir.c`, `xfs_rtgroup.c`).

use super::directory::Directory;
use super::inode::Inode;
use super::quota::QuotaKind;
use super::source::{BlockSource, corrupt};
use crate::error::{Check, Error, Place, Result, Rule};
use crate::geometry::{Ino, RgNumber};

/// A file of a realtime group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RtGroupFile {
    /// Free extents.
    Bitmap,
    /// Free extents by size.
    Summary,
    /// Reverse mapping btree.
    Rmap,
    /// Reference count btree.
    Refcount,
}

impl RtGroupFile {
    /// The second part of its name.
    pub fn name(self) -> &'static str {
        match self {
            RtGroupFile::Bitmap => "bitmap",
            RtGroupFile::Summary => "summary",
            RtGroupFile::Rmap => "rmap",
            RtGroupFile::Refcount => "refcount",
        }
    }
}

/// The inode at `path`, a list of names below the root of the metadata directory tree; `None` when one does not exist.
///
/// # Errors
/// `Usage` when the filesystem has no such tree; `Io`; `Corrupt` when a directory on the way is damaged, or what is
/// found is no metadata inode.
pub fn metadir_lookup(source: &dyn BlockSource, path: &[&str]) -> Result<Option<Inode>> {
    let root = source.geometry().metadirino;
    let root = root.ok_or_else(|| Error::Usage("the filesystem has no metadata directory".into()))?;
    let mut inode = metadata_inode(source, root)?;
    for name in path {
        let found = Directory::open(source, &inode)?.lookup(name.as_bytes())?;
        let Some(found) = found else { return Ok(None) };
        inode = metadata_inode(source, found.ino)?;
    }
    Ok(Some(inode))
}

fn metadata_inode(source: &dyn BlockSource, ino: Ino) -> Result<Inode> {
    let inode = Inode::read(source, ino)?;
    if inode.raw().is_metadata() {
        return Ok(inode);
    }
    let place = Place { inode: Some(ino.0), ..inode.place };
    Err(corrupt(Check::new("dinode", "flags2", Rule::Mismatch), &place, "not a metadata file"))
}

/// A file of realtime group `rgno`; `None` when it does not exist.
///
/// # Errors
/// As of [`metadir_lookup`].
pub fn rtgroup_file(source: &dyn BlockSource, rgno: RgNumber, file: RtGroupFile) -> Result<Option<Inode>> {
    metadir_lookup(source, &["rtgroups", &format!("{rgno}.{}", file.name())])
}

/// The quota file of a kind: in the metadata directory tree, or named by the superblock; `None` when there is none.
///
/// # Errors
/// As of [`metadir_lookup`].
pub fn quota_file(source: &dyn BlockSource, kind: QuotaKind) -> Result<Option<Inode>> {
    let geometry = source.geometry();
    if geometry.features.has_metadir() {
        return metadir_lookup(source, &["quota", kind.name()]);
    }
    let ino = match kind {
        QuotaKind::User => geometry.quota.user,
        QuotaKind::Group => geometry.quota.group,
        QuotaKind::Project => geometry.quota.project,
    };
    ino.map(|ino| Inode::read(source, ino)).transpose()
}
