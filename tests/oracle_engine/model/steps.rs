//! One random operation after the other, on a volume and on the tree.

use std::collections::BTreeMap;

use xfskit::error::{Error, Result};
use xfskit::geometry::Ino;
use xfskit::ondisk::attr_short::AttrNamespace;
use xfskit::volume::attributes::AttributeName;
use xfskit::volume::operation::{NewFile, Properties, Volume};

use super::compare::{attributes, contents};
use super::tree::{File, Kind, Tree};
use crate::random::Random;

/// Names that a directory has at most, so that directories shrink as often as they grow.
const NAMES: u64 = 900;
/// Most files.
const FILES: usize = 6_000;

/// The tree, and where its operations come from.
pub struct Steps {
    pub tree: Tree,
    random: Random,
    size: u64,
    reflink: bool,
    /// Contents are written whole to new files, and never again.
    whole: bool,
}

impl Steps {
    pub fn new(seed: u64, size: u64, reflink: bool) -> Self {
        let tree = Tree { root: Ino(0), files: BTreeMap::new() };
        Steps { tree, random: Random::new(seed), size, reflink, whole: false }
    }

    /// The same without operations of which a part can be seen: each is there, or not.
    pub fn whole(seed: u64, size: u64) -> Self {
        Steps { whole: true, ..Steps::new(seed, size, false) }
    }

    /// Takes over what mkfs has left.
    pub fn begin(&mut self, volume: &mut Volume) -> Result<()> {
        let root = volume.root();
        self.tree.root = root;
        let mut file = File::new(Kind::Directory(BTreeMap::new(), root), 0o755, 0);
        file.attributes = attributes(volume, &volume.store().inode(root)?);
        self.tree.files.insert(root, file);
        Ok(())
    }

    /// Does one operation. A volume that is full is no error; then nothing may have changed, but contents of files.
    pub fn step(&mut self, volume: &mut Volume) -> Result<()> {
        if self.tree.files.is_empty() {
            self.begin(volume)?;
        }
        let shrink = self.tree.files.len() > FILES || self.random.once_in(200);
        let result = match if shrink { 4 + self.random.below(3) } else { self.random.below(16) } {
            0..=2 => self.create(volume),
            3 => self.mkdir(volume),
            4..=6 => self.remove(volume),
            7 => self.rename(volume),
            8 => self.link(volume),
            9 | 10 => self.write(volume),
            11 if !self.whole => self.cut(volume),
            12 | 13 => self.set_attribute(volume),
            14 => self.remove_attribute(volume),
            _ => self.other(volume),
        };
        match result {
            Err(Error::NoSpace(_)) => Ok(()),
            result => result,
        }
    }

    fn directory(&mut self) -> Ino {
        let directories: Vec<Ino> =
            self.tree.files.iter().filter(|(_, file)| file.is_directory()).map(|(ino, _)| *ino).take(40).collect();
        directories[self.random.index(directories.len())]
    }

    fn any_file(&mut self) -> Ino {
        let at = self.random.index(self.tree.files.len());
        *self.tree.files.keys().nth(at).expect("a file")
    }

    fn regular(&mut self) -> Option<Ino> {
        let ino = self.any_file();
        matches!(self.tree.files[&ino].kind, Kind::Regular(_)).then_some(ino)
    }

    /// A name, which a directory may have already.
    fn name(&mut self) -> Vec<u8> {
        let number = self.random.below(NAMES);
        let mut name = format!("{number}").into_bytes();
        let more = usize::try_from(number * 7919 % 250).expect("small") * usize::from(number.is_multiple_of(3));
        name.extend(std::iter::repeat_n(b'x', more.saturating_sub(name.len())));
        name
    }

    /// A directory, and a name that it has not.
    fn new_name(&mut self) -> Option<(Ino, Vec<u8>)> {
        let dir = self.directory();
        let name = self.name();
        (!self.tree.entries(dir).contains_key(&name)).then_some((dir, name))
    }

    /// A directory, and a name that it has.
    fn old_name(&mut self) -> Option<(Ino, Vec<u8>)> {
        let dir = self.directory();
        let entries = self.tree.entries(dir);
        if entries.is_empty() {
            return None;
        }
        let at = self.random.index(entries.len());
        let name = self.tree.entries(dir).keys().nth(at)?.clone();
        Some((dir, name))
    }

    fn create(&mut self, volume: &mut Volume) -> Result<()> {
        let Some((dir, name)) = self.new_name() else { return Ok(()) };
        let (permissions, uid) = (u16::try_from(self.random.below(0o1000)).expect("small"), 7);
        let new = |kind: u16| NewFile { mode: kind | permissions, uid, gid: 8, ..NewFile::default() };
        let (ino, kind) = match self.random.below(8) {
            0 => {
                let len = 1 + self.random.length(1_022);
                let target = vec![b't'; usize::try_from(len).expect("small")];
                (volume.symlink(dir, &name, &target, &new(0o120_000))?, Kind::Symlink(target))
            }
            1 => (volume.create(dir, &name, &new(0o010_000))?, Kind::Fifo),
            _ => (volume.create(dir, &name, &new(0o100_000))?, Kind::Regular(Vec::new())),
        };
        self.tree.create(dir, &name, ino, File::new(kind, permissions, uid));
        Ok(())
    }

    fn mkdir(&mut self, volume: &mut Volume) -> Result<()> {
        let Some((dir, name)) = self.new_name() else { return Ok(()) };
        let new = NewFile { mode: 0o040_755, uid: 3, ..NewFile::default() };
        let ino = volume.create(dir, &name, &new)?;
        self.tree.create(dir, &name, ino, File::new(Kind::Directory(BTreeMap::new(), dir), 0o755, 3));
        Ok(())
    }

    fn remove(&mut self, volume: &mut Volume) -> Result<()> {
        let Some((dir, name)) = self.old_name() else { return Ok(()) };
        let ino = self.tree.entries(dir)[&name];
        if self.tree.files[&ino].is_directory() {
            let result = volume.rmdir(dir, &name);
            if !self.tree.entries(ino).is_empty() {
                assert!(matches!(result, Err(Error::File(_))), "a directory with entries is removed: {result:?}");
                return Ok(());
            }
            result?;
        } else {
            volume.unlink(dir, &name)?;
        }
        self.tree.remove(dir, &name);
        Ok(())
    }

    fn rename(&mut self, volume: &mut Volume) -> Result<()> {
        let Some((dir, name)) = self.old_name() else { return Ok(()) };
        let (new_dir, new_name) = (self.directory(), self.name());
        let ino = self.tree.entries(dir)[&name];
        let is_directory = self.tree.files[&ino].is_directory();
        let replaced = self.tree.entries(new_dir).get(&new_name).copied();
        let fits = replaced.is_none_or(|target| {
            let file = &self.tree.files[&target];
            target == ino
                || file.is_directory() == is_directory && (!is_directory || self.tree.entries(target).is_empty())
        });
        let allowed = fits && !(is_directory && self.tree.is_below(new_dir, ino));
        match volume.rename(dir, &name, new_dir, &new_name) {
            Ok(()) => {
                assert!(allowed, "a rename that cannot be was done");
                self.tree.rename(dir, &name, new_dir, &new_name);
                Ok(())
            }
            Err(Error::File(error)) if allowed => panic!("a rename failed: {error}"),
            Err(Error::File(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn link(&mut self, volume: &mut Volume) -> Result<()> {
        let ino = self.any_file();
        let Some((dir, name)) = self.new_name() else { return Ok(()) };
        if self.tree.files[&ino].is_directory() {
            return Ok(());
        }
        volume.link(ino, dir, &name)?;
        self.tree.file_mut(ino).links += 1;
        self.tree.entries_mut(dir).insert(name, ino);
        Ok(())
    }

    fn contents_mut(&mut self, ino: Ino) -> &mut Vec<u8> {
        match &mut self.tree.file_mut(ino).kind {
            Kind::Regular(contents) => contents,
            _ => panic!("inode {ino} has no contents"),
        }
    }

    /// After a volume was full in the middle, what there is counts.
    fn settle(&mut self, volume: &Volume, ino: Ino, result: Result<()>, wanted: Vec<u8>) -> Result<()> {
        match result {
            Ok(()) => *self.contents_mut(ino) = wanted,
            Err(Error::NoSpace(_)) => *self.contents_mut(ino) = contents(volume, ino),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn write(&mut self, volume: &mut Volume) -> Result<()> {
        let Some(ino) = self.regular() else { return Ok(()) };
        if self.whole && !self.contents_mut(ino).is_empty() {
            return Ok(());
        }
        let offset = if self.whole { 0 } else { self.random.below(self.size) };
        let len = self.random.length(self.size / 2);
        let bytes = self.random.bytes(usize::try_from(len).expect("small"));
        let mut wanted = self.contents_mut(ino).clone();
        let offset_at = usize::try_from(offset).expect("small");
        if !bytes.is_empty() {
            wanted.resize(wanted.len().max(offset_at + bytes.len()), 0);
            wanted[offset_at..offset_at + bytes.len()].copy_from_slice(&bytes);
        }
        let result = volume.write(ino, offset, &bytes);
        self.settle(volume, ino, result, wanted)
    }

    fn cut(&mut self, volume: &mut Volume) -> Result<()> {
        let Some(ino) = self.regular() else { return Ok(()) };
        let mut wanted = self.contents_mut(ino).clone();
        let result = if self.random.once_in(2) {
            let size = self.random.below(self.size);
            wanted.resize(usize::try_from(size).expect("small"), 0);
            volume.truncate(ino, size)
        } else {
            let (offset, len) = (self.random.below(self.size), self.random.length(self.size));
            let at = |place: u64| usize::try_from(place).expect("small").min(wanted.len());
            let range = at(offset)..at(offset + len);
            wanted[range].fill(0);
            volume.punch(ino, offset, len)
        };
        self.settle(volume, ino, result, wanted)
    }

    fn attribute_name(&mut self) -> (AttrNamespace, Vec<u8>) {
        let namespaces = [AttrNamespace::User, AttrNamespace::Root, AttrNamespace::Secure];
        let number = self.random.below(20);
        let mut name = format!("attribute{number}").into_bytes();
        name.resize(name.len() + usize::try_from(number * number / 2).expect("small"), b'n');
        (namespaces[self.random.index(3)], name)
    }

    fn set_attribute(&mut self, volume: &mut Volume) -> Result<()> {
        let ino = self.any_file();
        let (namespace, name) = self.attribute_name();
        let most = if self.random.once_in(12) { 65_536 } else { 300 };
        let len = self.random.length(most);
        let value = self.random.bytes(usize::try_from(len).expect("small"));
        volume.set_attribute(ino, &AttributeName { namespace, name: &name }, &value)?;
        self.tree.file_mut(ino).attributes.insert((namespace, name), value);
        Ok(())
    }

    fn remove_attribute(&mut self, volume: &mut Volume) -> Result<()> {
        let ino = self.any_file();
        let Some((namespace, name)) = self.tree.files[&ino].attributes.keys().next().cloned() else { return Ok(()) };
        volume.remove_attribute(ino, &AttributeName { namespace, name: &name })?;
        self.tree.file_mut(ino).attributes.remove(&(namespace, name));
        Ok(())
    }

    fn other(&mut self, volume: &mut Volume) -> Result<()> {
        match self.random.below(4) {
            0 if self.reflink => self.share(volume),
            1 => volume.sync(),
            _ => {
                let ino = self.any_file();
                let permissions = u16::try_from(self.random.below(0o1000)).expect("small");
                let uid = u32::try_from(self.random.below(1 << 32)).expect("32 bits");
                let properties = Properties { permissions: Some(permissions), uid: Some(uid), ..Properties::default() };
                volume.set_properties(ino, &properties)?;
                let file = self.tree.file_mut(ino);
                (file.permissions, file.uid) = (permissions, uid);
                Ok(())
            }
        }
    }

    fn share(&mut self, volume: &mut Volume) -> Result<()> {
        let (Some(source), Some(target)) = (self.regular(), self.regular()) else { return Ok(()) };
        let wanted = self.contents_mut(source).clone();
        let result = volume.reflink(source, target);
        self.settle(volume, target, result, wanted)
    }
}
