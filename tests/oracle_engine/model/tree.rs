//! A tree of files in memory.

use std::collections::BTreeMap;

use xfskit::geometry::Ino;
use xfskit::ondisk::attr_short::AttrNamespace;

/// What a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Its entries, and the directory above.
    Directory(BTreeMap<Vec<u8>, Ino>, Ino),
    /// Its contents.
    Regular(Vec<u8>),
    /// Its target.
    Symlink(Vec<u8>),
    /// A named pipe.
    Fifo,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub kind: Kind,
    pub permissions: u16,
    pub uid: u32,
    pub links: u32,
    pub attributes: BTreeMap<(AttrNamespace, Vec<u8>), Vec<u8>>,
}

/// All files by inode number.
#[derive(Clone, Debug)]
pub struct Tree {
    pub root: Ino,
    pub files: BTreeMap<Ino, File>,
}

impl File {
    /// A new one.
    pub fn new(kind: Kind, permissions: u16, uid: u32) -> Self {
        let links = if matches!(kind, Kind::Directory(..)) { 2 } else { 1 };
        File { kind, permissions, uid, links, attributes: BTreeMap::new() }
    }

    pub fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory(..))
    }
}

impl Tree {
    /// The entries of a directory.
    pub fn entries(&self, dir: Ino) -> &BTreeMap<Vec<u8>, Ino> {
        match &self.files[&dir].kind {
            Kind::Directory(entries, _) => entries,
            _ => panic!("inode {dir} is no directory"),
        }
    }

    pub fn entries_mut(&mut self, dir: Ino) -> &mut BTreeMap<Vec<u8>, Ino> {
        match &mut self.file_mut(dir).kind {
            Kind::Directory(entries, _) => entries,
            _ => panic!("inode {dir} is no directory"),
        }
    }

    pub fn file_mut(&mut self, ino: Ino) -> &mut File {
        self.files.get_mut(&ino).expect("a file")
    }

    /// Adds a new file to a directory.
    pub fn create(&mut self, dir: Ino, name: &[u8], ino: Ino, file: File) {
        if file.is_directory() {
            self.file_mut(dir).links += 1;
        }
        self.entries_mut(dir).insert(name.to_vec(), ino);
        assert!(self.files.insert(ino, file).is_none(), "inode {ino} is in use");
    }

    /// Takes a link away.
    pub fn remove(&mut self, dir: Ino, name: &[u8]) {
        let ino = self.entries_mut(dir).remove(name).expect("a name");
        self.drop_link(dir, ino);
    }

    fn drop_link(&mut self, dir: Ino, ino: Ino) {
        if self.files[&ino].is_directory() {
            self.files.remove(&ino);
            self.file_mut(dir).links -= 1;
            return;
        }
        self.file_mut(ino).links -= 1;
        if self.files[&ino].links == 0 {
            self.files.remove(&ino);
        }
    }

    /// Moves a link.
    pub fn rename(&mut self, dir: Ino, name: &[u8], new_dir: Ino, new_name: &[u8]) {
        let ino = self.entries(dir)[name];
        let replaced = self.entries(new_dir).get(new_name).copied();
        if replaced == Some(ino) {
            return;
        }
        self.entries_mut(dir).remove(name);
        if let Some(replaced) = replaced {
            self.drop_link(new_dir, replaced);
        }
        self.entries_mut(new_dir).insert(new_name.to_vec(), ino);
        if self.files[&ino].is_directory() && dir != new_dir {
            self.file_mut(dir).links -= 1;
            self.file_mut(new_dir).links += 1;
            if let Kind::Directory(_, parent) = &mut self.file_mut(ino).kind {
                *parent = new_dir;
            }
        }
    }

    /// Whether `dir` is `ino`, or lies below it.
    pub fn is_below(&self, mut dir: Ino, ino: Ino) -> bool {
        loop {
            if dir == ino {
                return true;
            }
            match &self.files[&dir].kind {
                Kind::Directory(_, parent) if dir != self.root => dir = *parent,
                _ => return false,
            }
        }
    }
}
