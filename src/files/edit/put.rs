//! Files of this machine copied into the image, with modes, owners, times, attributes, holes and hard links.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::fs::{self, File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{SeekFrom, lgetxattr, llistxattr, seek};

use super::change::Failure;
use super::editor::Editor;
use super::path::{End, destination};
use crate::error::{Error, FileError, Place, Result};
use crate::geometry::Ino;
use crate::ondisk::dinode::DeviceNumber;
use crate::ondisk::timestamp::Timestamp;
use crate::volume::operation::{NewFile, Properties};

/// Bytes that are read at once.
const PIECE: usize = 16 << 20;
/// Most bytes of the names, and of a value, of a file's attributes: Linux allows no more.
const XATTR_BYTES: usize = 65_536;

/// Files with more than one link that were copied, by device and inode number.
type Links = HashMap<(u64, u64), Ino>;

fn of_system(error: std::io::Error) -> Error {
    Error::io(Place::default(), error)
}

impl Editor<'_> {
    /// Copies files in.
    pub(super) fn put(
        &mut self,
        sources: &[PathBuf],
        target: &[u8],
        recursive: bool,
    ) -> std::result::Result<(), Failure> {
        let mut links = Links::new();
        for source in sources {
            let name = |path: &Path| path.as_os_str().as_bytes().to_vec();
            let last = source.file_name().map_or_else(Vec::new, |last| last.as_bytes().to_vec());
            let to = destination(self.volume, &last, target, sources.len() > 1).map_err(Failure::at(target))?;
            self.put_tree(source, to, recursive, &mut links)
                .map_err(|(path, error)| Failure::at(&name(&path))(error))?;
        }
        Ok(())
    }

    /// Copies a file, and what a directory holds. Directories that are not done are kept on a list, not on the stack.
    fn put_tree(
        &mut self,
        source: &Path,
        to: End,
        recursive: bool,
        links: &mut Links,
    ) -> std::result::Result<(), (PathBuf, Error)> {
        let mut left = vec![(source.to_path_buf(), to)];
        let mut directories = Vec::new();
        while let Some((path, to)) = left.pop() {
            let here = |error: Error| (path.clone(), error);
            let metadata = fs::symlink_metadata(&path).map_err(|error| here(of_system(error)))?;
            if metadata.is_dir() && !recursive {
                return Err(here(Error::File(FileError::IsADirectory)));
            }
            let ino = self.put_one(&path, &metadata, &to, links).map_err(here)?;
            if !metadata.is_dir() {
                continue;
            }
            directories.push((ino, metadata));
            let mut names: Vec<_> = fs::read_dir(&path)
                .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.file_name())).collect())
                .map_err(|error| here(of_system(error)))?;
            names.sort_unstable_by(|a, b| b.cmp(a));
            for name in names {
                let inside = self.volume.lookup(ino, name.as_bytes()).map_err(here)?;
                let end = End { parent: ino, name: name.as_bytes().to_vec(), ino: inside };
                left.push((path.join(&name), end));
            }
        }
        // what was put into them has changed their times
        for (ino, metadata) in directories {
            self.set_times(ino, &metadata).map_err(|error| (source.to_path_buf(), error))?;
        }
        Ok(())
    }

    fn put_one(&mut self, path: &Path, metadata: &Metadata, to: &End, links: &mut Links) -> Result<Ino> {
        let key = (metadata.dev(), metadata.ino());
        if metadata.nlink() > 1
            && !metadata.is_dir()
            && let Some(ino) = links.get(&key)
        {
            self.make_way(to)?;
            self.volume.link(*ino, to.parent, &to.name)?;
            return Ok(*ino);
        }
        let ino = self.make(path, metadata, to)?;
        links.insert(key, ino);
        self.put_attributes(path, ino)?;
        self.set_times(ino, metadata)?;
        Ok(ino)
    }

    /// A file that is in the way of one that is no directory goes.
    fn make_way(&mut self, to: &End) -> Result<()> {
        if to.ino.is_some() { self.volume.unlink(to.parent, &to.name) } else { Ok(()) }
    }

    fn make(&mut self, path: &Path, metadata: &Metadata, to: &End) -> Result<Ino> {
        let mode = u16::try_from(metadata.mode() & 0o177_777).unwrap_or(0);
        let kind = metadata.file_type();
        let rdev = if kind.is_block_device() || kind.is_char_device() {
            let (major, minor) = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
            DeviceNumber { major, minor }.encode().ok_or(Error::File(FileError::Invalid))?
        } else {
            0
        };
        let new = NewFile { mode, uid: metadata.uid(), gid: metadata.gid(), rdev, attributes: false };
        if kind.is_dir() {
            return match to.ino {
                Some(ino) => Ok(ino),
                None => self.volume.create(to.parent, &to.name, &new),
            };
        }
        self.make_way(to)?;
        if kind.is_symlink() {
            let target = fs::read_link(path).map_err(of_system)?;
            return self.volume.symlink(to.parent, &to.name, target.as_os_str().as_bytes(), &new);
        }
        let ino = self.volume.create(to.parent, &to.name, &new)?;
        if kind.is_file() {
            self.put_contents(path, metadata, ino)?;
        }
        Ok(ino)
    }

    fn put_contents(&mut self, path: &Path, metadata: &Metadata, ino: Ino) -> Result<()> {
        let file = File::open(path).map_err(of_system)?;
        let mut at = 0;
        let mut piece = vec![0; PIECE.min(usize::try_from(metadata.len()).unwrap_or(PIECE))];
        while let Some((start, end)) = next_data(&file, at, metadata.len())? {
            let mut next = start;
            while next < end {
                let len = usize::try_from(end - next).unwrap_or(PIECE).min(PIECE);
                file.read_exact_at(&mut piece[..len], next).map_err(of_system)?;
                self.volume.write(ino, next, &piece[..len])?;
                next += u64::try_from(len).unwrap_or(0);
            }
            at = end;
        }
        if at < metadata.len() {
            self.volume.truncate(ino, metadata.len())?;
        }
        // what was read must be one state of the file
        let now = file.metadata().map_err(of_system)?;
        let same =
            now.len() == metadata.len() && (now.mtime(), now.mtime_nsec()) == (metadata.mtime(), metadata.mtime_nsec());
        if same { Ok(()) } else { Err(Error::Usage("the file changed while it was read".to_owned())) }
    }

    fn set_times(&mut self, ino: Ino, metadata: &Metadata) -> Result<()> {
        let time = |seconds: i64, nanoseconds: i64| Timestamp {
            seconds,
            nanoseconds: u32::try_from(nanoseconds).unwrap_or(0),
        };
        let permissions = u16::try_from(metadata.mode() & 0o7777).unwrap_or(0);
        self.volume.set_properties(
            ino,
            &Properties {
                permissions: Some(permissions),
                uid: Some(metadata.uid()),
                gid: Some(metadata.gid()),
                project: None,
                atime: Some(time(metadata.atime(), metadata.atime_nsec())),
                mtime: Some(time(metadata.mtime(), metadata.mtime_nsec())),
            },
        )
    }

    fn put_attributes(&mut self, path: &Path, ino: Ino) -> Result<()> {
        let mut names = vec![0; XATTR_BYTES];
        let len = match llistxattr(path, &mut names[..]) {
            Ok(len) => len,
            Err(rustix::io::Errno::NOTSUP) => 0,
            Err(error) => return Err(of_system(error.into())),
        };
        let mut value = vec![0; XATTR_BYTES];
        for name in names[..len].split_inclusive(|byte| *byte == 0) {
            let name = CStr::from_bytes_with_nul(name).map_err(|_| Error::File(FileError::Invalid))?.to_bytes();
            let known: [&[u8]; 4] = [b"user.", b"trusted.", b"security.", b"system.posix_acl_"];
            if !known.iter().any(|prefix| name.starts_with(prefix)) {
                continue;
            }
            let len =
                lgetxattr(path, OsStr::from_bytes(name), &mut value[..]).map_err(|error| of_system(error.into()))?;
            let value = value[..len].to_vec();
            self.set_xattr(ino, name, Some(&value))?;
        }
        Ok(())
    }
}

/// The next range of a file that is no hole, from `at` on.
fn next_data(file: &File, at: u64, size: u64) -> Result<Option<(u64, u64)>> {
    if at >= size {
        return Ok(None);
    }
    let start = match seek(file, SeekFrom::Data(at)) {
        Ok(start) => start,
        Err(rustix::io::Errno::NXIO) => return Ok(None),
        // a filesystem that knows no holes
        Err(rustix::io::Errno::INVAL) => return Ok(Some((at, size))),
        Err(error) => return Err(of_system(error.into())),
    };
    let end = seek(file, SeekFrom::Hole(start)).map_err(|error| of_system(error.into()))?;
    Ok((start < size).then_some((start, end.min(size))))
}
