//! From a path to its inode.

use super::name::escape;
use crate::error::{Error, Result};
use crate::forms::{Directory, FileType, Inode};
use crate::geometry::Ino;
use crate::tree::Reader;

/// Symbolic links that are followed on the way to one file, as in Linux.
const MOST_LINKS: u32 = 40;

/// What happens to a symbolic link that a path ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// It is followed.
    Follow,
    /// It is meant itself, unless a slash stands behind it.
    Keep,
}

/// What a path leads to.
#[derive(Clone, Debug)]
pub struct Found {
    /// The inode.
    pub inode: Inode,
    /// The way to it without symbolic links and dots; no slash before the first name, nothing for the root. `None` when the
    /// path names an inode by its number.
    pub names: Option<Vec<Vec<u8>>>,
}

/// How a path starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the root of the filesystem.
    Root,
    /// At an inode of this number, written `<NUMBER>`.
    Inode(Ino),
}

impl Start {
    /// The start of `path`, and what of it follows. Whether there is a slash before the first name does not matter.
    pub fn of(path: &[u8]) -> (Self, &[u8]) {
        let number = || {
            let end = path.iter().position(|&byte| byte == b'>')?;
            let number = std::str::from_utf8(path.get(1..end)?).ok()?.parse().ok()?;
            let rest = &path[end + 1..];
            (path[0] == b'<' && (rest.is_empty() || rest[0] == b'/')).then_some((Start::Inode(Ino(number)), rest))
        };
        number().unwrap_or((Start::Root, path))
    }
}

impl Reader<'_> {
    /// What `path` leads to. Symbolic links are followed inside the image, as if it were mounted at `/`; `..` does not lead
    /// out of it.
    ///
    /// # Errors
    /// `Usage` when there is no such file, with the part of the path that leads nowhere; `Io` and `Corrupt` where the way
    /// is damaged.
    pub fn lookup(&self, path: &[u8], last: Last) -> Result<Found> {
        let (start, rest) = Start::of(path);
        let start = match start {
            Start::Root => self.geometry().rootino,
            Start::Inode(ino) => ino,
        };
        let mut way = Way { reader: self, start, steps: Vec::new(), links: 0 };
        let inode = way.follow(rest, last, path)?;
        let names = (start == self.geometry().rootino).then(|| way.steps.into_iter().map(|step| step.name).collect());
        Ok(Found { inode, names })
    }

    /// Inode `ino`, which somebody asks for.
    fn demand(&self, ino: Ino) -> Result<Inode> {
        let nothing = || Error::Usage(format!("inode {ino} is not one of a file that can be read"));
        self.inode(ino).ok_or_else(nothing)
    }
}

/// A name on the way, and the inode that it stands for.
struct Step {
    name: Vec<u8>,
    ino: Ino,
}

/// The way from the start to where the lookup has come.
struct Way<'a, 'r> {
    reader: &'a Reader<'r>,
    start: Ino,
    steps: Vec<Step>,
    links: u32,
}

impl Way<'_, '_> {
    /// Follows `path` from where the way is now; `whole` is what was asked for.
    fn follow(&mut self, path: &[u8], last: Last, whole: &[u8]) -> Result<Inode> {
        // what is left to follow, the next name last
        let mut left: Vec<Vec<u8>> = names_of(path).rev().collect();
        let slash = path.last() == Some(&b'/');
        while let Some(name) = left.pop() {
            if name == b".." {
                self.steps.pop();
                continue;
            }
            let inode = self.step(&name, whole)?;
            if inode.file_type() != Some(FileType::Symlink) || (left.is_empty() && last == Last::Keep && !slash) {
                self.steps.push(Step { name, ino: inode.ino });
                continue;
            }
            self.links += 1;
            if self.links > MOST_LINKS {
                return Err(Error::Usage(format!("{}: too many symbolic links", escape(whole))));
            }
            let target = self.reader.target(&inode)?;
            if target.first() == Some(&b'/') {
                self.steps.clear();
                self.start = self.reader.geometry().rootino;
            }
            left.extend(names_of(&target).rev());
        }
        let inode = self.reader.demand(self.here())?;
        if slash && inode.file_type() != Some(FileType::Directory) {
            return Err(Error::Usage(format!("{}: is no directory", escape(whole))));
        }
        Ok(inode)
    }

    fn here(&self) -> Ino {
        self.steps.last().map_or(self.start, |step| step.ino)
    }

    /// The inode that `name` stands for where the way is now.
    fn step(&self, name: &[u8], whole: &[u8]) -> Result<Inode> {
        let so_far: Vec<u8> = self.steps.iter().flat_map(|step| [b"/", &step.name[..]].concat()).collect();
        let failed = |what: &str| {
            let at = if so_far.is_empty() { "/".to_owned() } else { escape(&so_far) };
            Error::Usage(format!("{}: {at} {what}", escape(whole)))
        };
        let folder = self.reader.demand(self.here())?;
        if folder.file_type() != Some(FileType::Directory) {
            return Err(failed("is no directory"));
        }
        let found = Directory::open(self.reader.source(), &folder)?.lookup(name);
        let found = match found {
            Ok(found) => found,
            // an index that is damaged does not hide what the directory lists
            Err(error) => {
                self.reader.report(&error);
                let entries = super::Folder::read(self.reader, &folder, super::Order::Stored);
                return match entries.iter().find(|entry| entry.name == name) {
                    Some(entry) => self.reader.demand(entry.ino),
                    None => Err(error),
                };
            }
        };
        let found = found.ok_or_else(|| failed(&format!("has no entry {}", super::name::escape_component(name))))?;
        self.reader.demand(found.ino)
    }
}

/// The names in a path, without empty ones and single dots.
fn names_of(path: &[u8]) -> impl DoubleEndedIterator<Item = Vec<u8>> {
    path.split(|&byte| byte == b'/').filter(|name| !name.is_empty() && *name != b".").map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inode_number_starts_a_path() {
        assert_eq!(Start::of(b"<128>"), (Start::Inode(Ino(128)), &b""[..]));
        assert_eq!(Start::of(b"<128>/a/b"), (Start::Inode(Ino(128)), &b"/a/b"[..]));
        for path in [&b"<128>a"[..], b"<x>", b"<>", b"<12", b"/<128>", b"", b"<-1>"] {
            assert_eq!(Start::of(path), (Start::Root, path));
        }
    }

    #[test]
    fn empty_names_and_dots_are_left_out() {
        let names: Vec<_> = names_of(b"//a/./b/../c/").collect();
        assert_eq!(names, [&b"a"[..], b"b", b"..", b"c"]);
    }
}
