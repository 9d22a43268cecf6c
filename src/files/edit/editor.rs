//! Changes carried out one after the other.

use super::change::{Change, Failure, TimeChange};
use super::path::{End, destination, existing, find, is_directory};
use crate::error::{Error, FileError, Result};
use crate::forms::{Directory, FileType, PosixAcl};
use crate::geometry::Ino;
use crate::ondisk::acl::{ACCESS_NAME, DEFAULT_NAME};
use crate::ondisk::attr_short::AttrNamespace;
use crate::report::name::escape;
use crate::volume::attributes::AttributeName;
use crate::volume::operation::{NewFile, Properties, Volume};

/// Type bits of a directory's mode.
const DIRECTORY: u16 = 0o040_000;
/// Type bits of a regular file's mode.
const REGULAR: u16 = 0o100_000;
/// Mode of a symbolic link.
const SYMLINK: u16 = 0o120_777;

/// Names with what they lead to.
type Entries = Vec<(Vec<u8>, Ino)>;

/// Carries out changes on a volume.
pub struct Editor<'v> {
    pub(super) volume: &'v mut Volume,
}

impl<'v> Editor<'v> {
    /// An editor of this volume.
    pub fn new(volume: &'v mut Volume) -> Self {
        Editor { volume }
    }

    /// Carries out a change. What is done of it when it fails stays done.
    ///
    /// # Errors
    /// The path that it failed at, and why.
    pub fn apply(&mut self, change: &Change) -> std::result::Result<(), Failure> {
        match change {
            Change::Put { sources, target, recursive } => self.put(sources, target, *recursive),
            Change::Mkdir { paths, parents, permissions } => {
                each(paths, |path| self.mkdir(path, *parents, *permissions))
            }
            Change::Remove { paths, recursive, force } => each(paths, |path| self.remove(path, *recursive, *force)),
            Change::Move { sources, target } => {
                let into = sources.len() > 1;
                each(sources, |source| self.move_one(source, target, into))
            }
            Change::Link { source, target, symbolic } => {
                self.link(source, target, *symbolic).map_err(Failure::at(target))
            }
            Change::Chmod { mode, paths, recursive } => each(paths, |path| {
                self.for_all(path, *recursive, &mut |volume, ino| {
                    let inode = volume.store().inode(ino)?;
                    if inode.file_type() == Some(FileType::Symlink) {
                        return Ok(());
                    }
                    let directory = inode.file_type() == Some(FileType::Directory);
                    let permissions = mode.apply(inode.raw().core.mode.get() & 0o7777, directory);
                    volume.set_properties(ino, &Properties { permissions: Some(permissions), ..Properties::default() })
                })
            }),
            Change::Chown { uid, gid, paths, recursive } => each(paths, |path| {
                let properties = Properties { uid: *uid, gid: *gid, ..Properties::default() };
                self.for_all(path, *recursive, &mut |volume, ino| volume.set_properties(ino, &properties))
            }),
            Change::Touch { times, paths, no_create } => each(paths, |path| self.touch(path, *times, *no_create)),
            Change::SetAttribute { name, value, paths } => {
                each(paths, |path| self.set_attribute(path, name, value.as_deref()))
            }
            Change::Truncate { size, paths } => each(paths, |path| {
                let ino = self.file_to_write(path)?;
                self.volume.truncate(ino, *size)
            }),
            Change::Punch { offset, len, path } => {
                let ino = existing(self.volume, path, true).map_err(Failure::at(path))?;
                self.volume.punch(ino, *offset, *len).map_err(Failure::at(path))
            }
            Change::Reflink { source, target } => self.reflink(source, target).map_err(Failure::at(target)),
            Change::Label(label) => self.volume.set_label(label).map_err(Failure::at(label)),
        }
    }

    fn mkdir(&mut self, path: &[u8], parents: bool, permissions: u16) -> Result<()> {
        if parents {
            return self.mkdir_all(path, permissions);
        }
        let end = find(self.volume, path, false)?;
        self.create(&end, DIRECTORY | permissions).map(|_| ())
    }

    fn mkdir_all(&mut self, path: &[u8], permissions: u16) -> Result<()> {
        let mut way = Vec::new();
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            way.push(b'/');
            way.extend_from_slice(name);
            let end = find(self.volume, &way, true)?;
            match end.ino {
                Some(ino) if is_directory(self.volume, ino)? => {}
                Some(_) => return Err(Error::File(FileError::NotADirectory)),
                None => drop(self.create(&end, DIRECTORY | permissions)?),
            }
        }
        Ok(())
    }

    /// Creates a file where a path ended with a name that is not there.
    pub(super) fn create(&mut self, end: &End, mode: u16) -> Result<Ino> {
        if end.ino.is_some() {
            return Err(Error::File(FileError::Exists));
        }
        self.volume.create(end.parent, &end.name, &NewFile { mode, ..NewFile::default() })
    }

    /// A regular file whose contents are to be changed; it is made if it is not there.
    fn file_to_write(&mut self, path: &[u8]) -> Result<Ino> {
        let end = find(self.volume, path, true)?;
        match end.ino {
            Some(ino) => Ok(ino),
            None => self.create(&end, REGULAR | 0o644),
        }
    }

    fn remove(&mut self, path: &[u8], recursive: bool, force: bool) -> Result<()> {
        let end = match find(self.volume, path, false) {
            Err(Error::File(FileError::NotFound)) if force => return Ok(()),
            end => end?,
        };
        let Some(ino) = end.ino else {
            return if force { Ok(()) } else { Err(Error::File(FileError::NotFound)) };
        };
        if end.name.is_empty() {
            return Err(Error::File(FileError::NotPermitted));
        }
        if !is_directory(self.volume, ino)? {
            return self.volume.unlink(end.parent, &end.name);
        }
        if !recursive {
            return Err(Error::File(FileError::IsADirectory));
        }
        self.empty(ino)?;
        self.volume.rmdir(end.parent, &end.name)
    }

    /// Removes all that a directory holds, without going deeper than memory allows: the stack is on the heap.
    fn empty(&mut self, top: Ino) -> Result<()> {
        let mut stack = vec![(top, self.entries(top)?)];
        while let Some((dir, entries)) = stack.last_mut() {
            let dir = *dir;
            match entries.pop() {
                Some((name, ino)) if is_directory(self.volume, ino)? => {
                    let inside = self.entries(ino)?;
                    if inside.is_empty() {
                        self.volume.rmdir(dir, &name)?;
                    } else {
                        // it is come to again when it is empty
                        entries_of(&mut stack).push((name, ino));
                        stack.push((ino, inside));
                    }
                }
                Some((name, _)) => self.volume.unlink(dir, &name)?,
                None => drop(stack.pop()),
            }
        }
        Ok(())
    }

    /// The entries of a directory, without dots.
    fn entries(&self, dir: Ino) -> Result<Entries> {
        let inode = self.volume.store().inode(dir)?;
        let mut entries = Vec::new();
        let mut damage = None;
        Directory::open(self.volume.store(), &inode)?.for_each(&mut |entry| {
            match entry {
                Ok(entry) if entry.name == b"." || entry.name == b".." => {}
                Ok(entry) => entries.push((entry.name.to_vec(), entry.ino)),
                Err(error) => damage = Some(error),
            }
            std::ops::ControlFlow::Continue(())
        });
        damage.map_or(Ok(entries), Err)
    }

    fn move_one(&mut self, source: &[u8], target: &[u8], into: bool) -> Result<()> {
        let from = find(self.volume, source, false)?;
        if from.ino.is_none() {
            return Err(Error::File(FileError::NotFound));
        }
        if from.name.is_empty() {
            return Err(Error::File(FileError::NotPermitted));
        }
        let to = destination(self.volume, source, target, into)?;
        self.volume.rename(from.parent, &from.name, to.parent, &to.name)
    }

    fn link(&mut self, source: &[u8], target: &[u8], symbolic: bool) -> Result<()> {
        let to = destination(self.volume, source, target, false)?;
        if to.ino.is_some() {
            return Err(Error::File(FileError::Exists));
        }
        if symbolic {
            let new = NewFile { mode: SYMLINK, ..NewFile::default() };
            return self.volume.symlink(to.parent, &to.name, source, &new).map(|_| ());
        }
        let ino = existing(self.volume, source, false)?;
        self.volume.link(ino, to.parent, &to.name)
    }

    /// Calls `change` for a file, and for all below it.
    fn for_all(
        &mut self,
        path: &[u8],
        recursive: bool,
        change: &mut dyn FnMut(&mut Volume, Ino) -> Result<()>,
    ) -> Result<()> {
        let mut left = vec![existing(self.volume, path, !recursive)?];
        while let Some(ino) = left.pop() {
            change(self.volume, ino)?;
            if recursive && is_directory(self.volume, ino)? {
                left.extend(self.entries(ino)?.into_iter().map(|(_, ino)| ino));
            }
        }
        Ok(())
    }

    fn touch(&mut self, path: &[u8], times: TimeChange, no_create: bool) -> Result<()> {
        let end = find(self.volume, path, true)?;
        let ino = match end.ino {
            Some(ino) => ino,
            None if no_create => return Ok(()),
            None => self.create(&end, REGULAR | 0o644)?,
        };
        let time = times.time.unwrap_or_else(|| self.volume.store().now());
        let properties = Properties {
            atime: times.access.then_some(time),
            mtime: times.modification.then_some(time),
            ..Properties::default()
        };
        self.volume.set_properties(ino, &properties)
    }

    fn set_attribute(&mut self, path: &[u8], name: &[u8], value: Option<&[u8]>) -> Result<()> {
        let ino = existing(self.volume, path, true)?;
        self.set_xattr(ino, name, value)
    }

    /// Sets or removes an attribute by the name that Linux gives it.
    pub(super) fn set_xattr(&mut self, ino: Ino, name: &[u8], value: Option<&[u8]>) -> Result<()> {
        let lists: [(&[u8], &[u8]); 2] =
            [(b"system.posix_acl_access", ACCESS_NAME), (b"system.posix_acl_default", DEFAULT_NAME)];
        if let Some((_, stored)) = lists.iter().find(|(shown, _)| *shown == name) {
            let name = AttributeName { namespace: AttrNamespace::Root, name: stored };
            let Some(value) = value else { return self.volume.remove_attribute(ino, &name) };
            let list = PosixAcl::from_xattr(value).filter(PosixAcl::is_valid).ok_or(Error::File(FileError::Invalid))?;
            return self.volume.set_attribute(ino, &name, &list.encode());
        }
        let spaces: [(&[u8], AttrNamespace); 3] = [
            (b"user.", AttrNamespace::User),
            (b"trusted.", AttrNamespace::Root),
            (b"security.", AttrNamespace::Secure),
        ];
        let found = spaces.iter().find_map(|(prefix, namespace)| Some((*namespace, name.strip_prefix(*prefix)?)));
        let Some((namespace, name)) = found.filter(|(_, name)| !name.is_empty()) else {
            let text = format!("{}: attributes are in user, trusted or security, or access lists", escape(name));
            return Err(Error::Usage(text));
        };
        let name = AttributeName { namespace, name };
        match value {
            Some(value) => self.volume.set_attribute(ino, &name, value),
            None => self.volume.remove_attribute(ino, &name),
        }
    }

    fn reflink(&mut self, source: &[u8], target: &[u8]) -> Result<()> {
        let from = existing(self.volume, source, true)?;
        let to = destination(self.volume, source, target, false)?;
        let ino = match to.ino {
            Some(ino) => ino,
            None => {
                let mode = self.volume.store().inode(from)?.raw().core.mode.get();
                self.create(&to, mode)?
            }
        };
        self.volume.reflink(from, ino)
    }
}

fn entries_of(stack: &mut [(Ino, Entries)]) -> &mut Entries {
    &mut stack.last_mut().expect("invariant: the stack is not empty here").1
}

fn each(paths: &[Vec<u8>], mut change: impl FnMut(&[u8]) -> Result<()>) -> std::result::Result<(), Failure> {
    paths.iter().try_for_each(|path| change(path).map_err(Failure::at(path)))
}
