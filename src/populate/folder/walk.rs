//! Folder after folder, in the order of names, so that the same files give the same image. The files of a folder come before
//! the folders in it: what lies together is read together.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, OFlags, Stat, fstat, major, minor, readlinkat, statat};

use super::file::Opened;
use super::place::{FileIdentity, Place, open_quietly};
use super::xattrs::XattrReader;
use crate::error::{Error, Result};
use crate::ondisk::Timestamp;
use crate::ondisk::attr_short::AttrNamespace;
use crate::populate::content::{Attributes, Kind, Node, NodeId};
use crate::populate::filling::{Filling, device, symlink};
use crate::report::name::escape;

/// What is asked of the source.
#[derive(Clone, Copy)]
pub(in super::super) struct Options<'a> {
    /// Whether times of access are those of the source.
    pub atime: bool,
    /// Files that must not be read: the image itself.
    pub forbidden: &'a HashSet<FileIdentity>,
}

/// A folder that is being read.
struct Level {
    node: NodeId,
    /// Folders in it that are still to be read, the last first.
    folders: Vec<Box<[u8]>>,
    /// Length of its path.
    path_len: usize,
    /// When its names were changed last.
    mtime: (i64, u64),
}

struct Walk<'w, 'f> {
    filling: &'w mut Filling<'f>,
    options: Options<'w>,
    top: &'w Path,
    place: Place,
    /// Path of the folder below the top; empty, or with a slash at its end.
    path: Vec<u8>,
    /// Files with several names.
    seen: HashMap<FileIdentity, NodeId>,
    xattrs: XattrReader,
}

/// Adds what is in the folder at `top` to an empty tree, whose root becomes as the folder.
///
/// # Errors
/// `Source`, when something cannot be read, changes meanwhile, or cannot be in an image. Those of the sink.
pub(in super::super) fn read(top: &Path, options: Options<'_>, filling: &mut Filling<'_>) -> Result<()> {
    let place = Place::new(top).map_err(|error| Error::source(escape(top.as_os_str().as_bytes()), error))?;
    let mut walk =
        Walk { filling, options, top, place, path: Vec::new(), seen: HashMap::new(), xattrs: XattrReader::default() };
    let mut levels = vec![walk.folder(NodeId::ROOT)?];
    while let Some(level) = levels.last_mut() {
        if let Some(name) = level.folders.pop() {
            let node = level.node;
            levels.extend(walk.enter(node, &name)?);
        } else {
            walk.check_unchanged(level)?;
            levels.pop();
            if let Some(above) = levels.last() {
                walk.place.leave().map_err(|error| walk.error(b"", error))?;
                walk.path.truncate(above.path_len);
            }
        }
    }
    Ok(())
}

impl Walk<'_, '_> {
    /// The path of `name` in the folder where the walk is, as it is shown.
    fn shown(&self, name: &[u8]) -> String {
        shown_in(self.top, &self.path, name)
    }

    fn error(&self, name: &[u8], error: impl std::fmt::Display) -> Error {
        Error::source(self.shown(name), error)
    }

    /// Enters a folder in the folder `node`; `None` when it is left out.
    fn enter(&mut self, node: NodeId, name: &[u8]) -> Result<Option<Level>> {
        self.path.extend(name);
        let excluded = self.filling.exclude.matches(&self.path, true);
        self.path.truncate(self.path.len() - name.len());
        if excluded {
            return Ok(None);
        }
        self.place.enter(name).map_err(|error| self.error(name, error))?;
        let empty = Node { kind: Kind::Directory(BTreeMap::new()), attributes: Attributes::default() };
        let id = self.filling.put(node, name, empty, &|| shown_in(self.top, &self.path, name))?;
        self.path.extend(name);
        self.path.push(b'/');
        self.folder(id).map(Some)
    }

    /// Reads what the walk's folder is, and what is in it but other folders.
    fn folder(&mut self, node: NodeId) -> Result<Level> {
        let stat = fstat(self.place.here()).map_err(|error| self.error(b"", error))?;
        let names = self.place.names().map_err(|error| self.error(b"", error))?;
        let mut attributes = self.attributes(&stat);
        let kind = Kind::Directory(BTreeMap::new());
        let (shown, filling) = (|| shown_in(self.top, &self.path, b""), &*self.filling);
        self.xattrs.of_open(self.place.here(), &shown, &mut |name, value| {
            filling.set_xattr(&mut attributes, &kind, (name, value), &shown)
        })?;
        if node == NodeId::ROOT {
            // these are about the filesystem that the folder was the root of
            attributes
                .xattrs
                .retain(|xattr| !(xattr.namespace == AttrNamespace::Root && xattr.name.starts_with(b"xfs:")));
        }
        self.filling.content.node_mut(node).attributes = attributes;
        let mut folders = Vec::new();
        for name in names {
            if self.entry(node, &name)? {
                folders.push(name);
            }
        }
        folders.reverse();
        Ok(Level { node, folders, path_len: self.path.len(), mtime: mtime(&stat) })
    }

    fn check_unchanged(&self, level: &Level) -> Result<()> {
        let now = fstat(self.place.here()).map_err(|error| self.error(b"", error))?;
        if mtime(&now) != level.mtime {
            return Err(self.error(b"", "names were added to it or removed from it while it was read"));
        }
        Ok(())
    }

    /// Adds a file; `true` when it is a folder, which is not added yet.
    fn entry(&mut self, folder: NodeId, name: &[u8]) -> Result<bool> {
        let stat =
            statat(self.place.here(), name, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| self.error(name, error))?;
        let file_type = FileType::from_raw_mode(stat.st_mode);
        if file_type == FileType::Directory {
            return Ok(true);
        }
        if !self.filling.exclude.is_empty() {
            let path = [&self.path[..], name].concat();
            if self.filling.exclude.matches(&path, false) {
                return Ok(false);
            }
        }
        let identity = FileIdentity::of(&stat);
        if let Some(&id) = self.seen.get(&identity) {
            self.filling.name(folder, name, id, &|| shown_in(self.top, &self.path, name))?;
            return Ok(false);
        }
        if self.options.forbidden.contains(&identity) {
            return Err(self.error(name, "is the image that is to be made; --exclude leaves it out"));
        }
        let node = match file_type {
            FileType::RegularFile => self.regular(name, &stat)?,
            _ => self.special(name, &stat, file_type)?,
        };
        let id = self.filling.put(folder, name, node, &|| shown_in(self.top, &self.path, name))?;
        if stat.st_nlink > 1 {
            self.seen.insert(identity, id);
        }
        Ok(false)
    }

    fn regular(&mut self, name: &[u8], stat: &Stat) -> Result<Node> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = open_quietly(self.place.here(), name, flags).map_err(|error| self.error(name, error))?;
        let mut attributes = self.attributes(stat);
        let (top, path) = (self.top, &self.path);
        let shown = || shown_in(top, path, name);
        let opened = Opened::new(&file, &shown)?;
        if !opened.is_as(stat) {
            return Err(Error::source(shown(), "another file took its place while it was read"));
        }
        let kind = Kind::Regular(opened.store(self.filling.sink)?);
        let filling = &*self.filling;
        self.xattrs.of_open(file.as_fd(), &shown, &mut |name, value| {
            filling.set_xattr(&mut attributes, &kind, (name, value), &shown)
        })?;
        Ok(Node { kind, attributes })
    }

    /// What is neither a folder nor a regular file.
    fn special(&mut self, name: &[u8], stat: &Stat, file_type: FileType) -> Result<Node> {
        let number = || device(u64::from(major(stat.st_rdev)), u64::from(minor(stat.st_rdev)));
        let kind = match file_type {
            FileType::Symlink => {
                let target =
                    readlinkat(self.place.here(), name, Vec::new()).map_err(|error| self.error(name, error))?;
                symlink(target.to_bytes()).map_err(|problem| self.error(name, problem))?
            }
            FileType::CharacterDevice => Kind::CharDevice(number().map_err(|problem| self.error(name, problem))?),
            FileType::BlockDevice => Kind::BlockDevice(number().map_err(|problem| self.error(name, problem))?),
            FileType::Fifo => Kind::Fifo,
            FileType::Socket => Kind::Socket,
            _ => return Err(self.error(name, "is of a kind that is not known")),
        };
        let mut attributes = self.attributes(stat);
        let (shown, filling) = (|| shown_in(self.top, &self.path, name), &*self.filling);
        self.xattrs.of_name(self.place.here(), name, &shown, &mut |name, value| {
            filling.set_xattr(&mut attributes, &kind, (name, value), &shown)
        })?;
        Ok(Node { kind, attributes })
    }

    fn attributes(&self, stat: &Stat) -> Attributes {
        let time = |seconds: i64, nanoseconds: u64| {
            Some(Timestamp { seconds, nanoseconds: u32::try_from(nanoseconds).unwrap_or(0) })
        };
        Attributes {
            permissions: u16::try_from(stat.st_mode & 0o7777).unwrap_or(0),
            uid: stat.st_uid,
            gid: stat.st_gid,
            atime: if self.options.atime { time(stat.st_atime, stat.st_atime_nsec) } else { None },
            mtime: time(stat.st_mtime, stat.st_mtime_nsec),
            ..Attributes::default()
        }
    }
}

fn shown_in(top: &Path, path: &[u8], name: &[u8]) -> String {
    let whole = [top.as_os_str().as_bytes(), b"/", path, name].concat();
    escape(whole.strip_suffix(b"/").filter(|path| !path.is_empty()).unwrap_or(&whole))
}

fn mtime(stat: &Stat) -> (i64, u64) {
    (stat.st_mtime, stat.st_mtime_nsec)
}
