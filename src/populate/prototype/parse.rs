//! From words to files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

use super::token::Words;
use crate::error::{Error, Result};
use crate::ondisk::Timestamp;
use crate::ondisk::dinode::flags;
use crate::populate::content::{Attributes, Kind, Node, NodeId};
use crate::populate::data::{Data, Piece, Range};
use crate::populate::filling::{Filling, device, symlink};
use crate::populate::folder::{Opened, XattrReader};
use crate::report::name::escape;

/// The longest prototype file, in bytes.
const LONGEST: u64 = 1 << 30;
/// The word that ends a folder.
const END: &[u8] = b"$";
const SET_UID: u16 = 0o4000;
const SET_GID: u16 = 0o2000;
const GROUP_EXECUTE: u16 = 0o010;

/// How a prototype file is to be read.
#[derive(Clone, Copy)]
pub(in super::super) struct Options<'a> {
    /// Slashes in names stand for blanks.
    pub slashes_are_spaces: bool,
    /// Times of access are those of the files that are copied.
    pub atime: bool,
    /// Reads a size in bytes, with the suffixes that mkfs.xfs knows.
    pub size: &'a dyn Fn(&str) -> Option<u64>,
}

/// The kind of a file by the first letter of its mode.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Letter {
    Regular,
    Reserved,
    Block,
    Character,
    Directory,
    Symlink,
    Fifo,
}

/// What precedes the contents of every file.
struct Specification {
    letter: Letter,
    attributes: Attributes,
}

struct Parser<'p, 'f> {
    words: Words<'p>,
    path: &'p Path,
    options: Options<'p>,
    filling: &'p mut Filling<'f>,
    xattrs: XattrReader,
}

/// Adds the files of a prototype file to an empty tree, whose root becomes as the file has it.
///
/// # Errors
/// `Source`, for what is no prototype file, and files that cannot be read. Those of the sink.
pub(in super::super) fn read(path: &Path, options: Options<'_>, filling: &mut Filling<'_>) -> Result<()> {
    let text = contents(path).map_err(|error| Error::source(escape(path.as_os_str().as_bytes()), error))?;
    let words = Words::new(&text);
    let mut parser = Parser { words, path, options, filling, xattrs: XattrReader::default() };
    parser.heading()?;
    let root = parser.specification()?;
    if root.letter != Letter::Directory {
        return Err(parser.error("the first file is not a folder: it is the root of the tree"));
    }
    parser.filling.content.node_mut(NodeId::ROOT).attributes = root.attributes;
    parser.folders()
}

/// What mkfs.xfs takes ends with a newline; it would read behind the end of anything else.
fn contents(path: &Path) -> io::Result<Vec<u8>> {
    let invalid = |problem: &str| io::Error::new(io::ErrorKind::InvalidData, problem);
    let mut text = Vec::new();
    File::open(path)?.take(LONGEST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(invalid("is longer than 1 GiB"));
    }
    if text.contains(&0) {
        return Err(invalid("is no prototype file: there is a zero byte in it"));
    }
    if text.last() != Some(&b'\n') {
        return Err(invalid("is cut off: a prototype file ends with a newline"));
    }
    Ok(text)
}

impl<'p> Parser<'p, '_> {
    /// An error at the line of the last word.
    fn error(&self, problem: impl std::fmt::Display) -> Error {
        let path = escape(self.path.as_os_str().as_bytes());
        Error::source(format!("{path}:{}", self.words.line()), problem)
    }

    fn word(&mut self, what: &str) -> Result<&'p [u8]> {
        self.words.next().ok_or_else(|| self.error(format!("the file ends where {what} should be")))
    }

    /// The name of a boot file, and the numbers of blocks and inodes, which say nothing any more.
    fn heading(&mut self) -> Result<()> {
        for what in ["the name of a boot file", "a number of blocks", "a number of inodes"] {
            self.word(what)?;
        }
        Ok(())
    }

    /// Folder in folder.
    fn folders(&mut self) -> Result<()> {
        let mut open = vec![NodeId::ROOT];
        while let Some(&folder) = open.last() {
            match self.words.next() {
                None => break,
                Some(END) => {
                    open.pop();
                }
                Some(name) => {
                    let name = self.name(name);
                    open.extend(self.file(folder, &name)?);
                }
            }
        }
        Ok(())
    }

    fn name(&self, word: &[u8]) -> Vec<u8> {
        let blank = |byte: &u8| if self.options.slashes_are_spaces && *byte == b'/' { b' ' } else { *byte };
        word.iter().map(blank).collect()
    }

    /// Adds a file; when it is a folder, its node.
    fn file(&mut self, folder: NodeId, name: &[u8]) -> Result<Option<NodeId>> {
        let Specification { letter, mut attributes } = self.specification()?;
        if letter == Letter::Directory && self.filling.content.node(folder).attributes.permissions & SET_GID != 0 {
            // what is made in such a folder becomes one
            attributes.permissions |= SET_GID;
        }
        let kind = match letter {
            Letter::Directory => Kind::Directory(BTreeMap::new()),
            Letter::Fifo => Kind::Fifo,
            Letter::Symlink => {
                let target = self.word("the target of a symbolic link")?;
                symlink(target).map_err(|problem| self.error(problem))?
            }
            Letter::Block => Kind::BlockDevice(self.device()?),
            Letter::Character => Kind::CharDevice(self.device()?),
            Letter::Reserved => Kind::Regular(self.reserved(&mut attributes)?),
            Letter::Regular => self.copied(&mut attributes)?,
        };
        if self.filling.content.lookup(folder, name).is_some() {
            return Err(self.error(format!("there are two files with the name {}", escape(name))));
        }
        let (path, line) = (self.path, self.words.line());
        let shown = || format!("{}:{line}", escape(path.as_os_str().as_bytes()));
        let id = self.filling.put(folder, name, Node { kind, attributes }, &shown)?;
        Ok((letter == Letter::Directory).then_some(id))
    }

    /// Mode, user and group.
    fn specification(&mut self) -> Result<Specification> {
        let mode = self.word("a mode")?;
        let (letter, permissions) = parse_mode(mode).ok_or_else(|| {
            let mode = escape(mode);
            self.error(format!("{mode} is no mode: a letter of -rbcdlp, u or -, g or -, and three octal digits"))
        })?;
        let uid = self.id("a user")?;
        let gid = self.id("a group")?;
        Ok(Specification { letter, attributes: Attributes { permissions, uid, gid, ..Attributes::default() } })
    }

    fn number(&mut self, what: &str) -> Result<i64> {
        let word = self.word(what)?;
        let number = std::str::from_utf8(word).ok().and_then(number);
        number.ok_or_else(|| self.error(format!("{} is no number, where {what} should be", escape(word))))
    }

    fn id(&mut self, what: &str) -> Result<u32> {
        let number = self.number(what)?;
        let id = u32::try_from(number).ok().filter(|id| *id != u32::MAX);
        id.ok_or_else(|| self.error(format!("{number} is no number of {what}: 0 to 4294967294 are")))
    }

    fn device(&mut self) -> Result<crate::ondisk::dinode::DeviceNumber> {
        let major = self.number("the major number of a device")?;
        let minor = self.number("the minor number of a device")?;
        match (u64::try_from(major), u64::try_from(minor)) {
            (Ok(major), Ok(minor)) => device(major, minor).map_err(|problem| self.error(problem)),
            _ => Err(self.error(format!("{major}:{minor} is no device number"))),
        }
    }

    /// An empty file with space behind its end.
    fn reserved(&mut self, attributes: &mut Attributes) -> Result<Data> {
        let word = self.word("a size")?;
        let size = std::str::from_utf8(word).ok().and_then(|text| (self.options.size)(text));
        let size = size.ok_or_else(|| self.error(format!("{} is no size", escape(word))))?;
        // as when a file is written to
        attributes.permissions &= !SET_UID;
        if attributes.permissions & GROUP_EXECUTE != 0 {
            attributes.permissions &= !SET_GID;
        }
        attributes.flags |= flags::PREALLOC;
        let blocks = size.div_ceil(u64::from(self.filling.sink.block_size()));
        let range = Range { block: 0, piece: Piece::Reserved { blocks } };
        Ok(Data { size: 0, ranges: if blocks == 0 { Vec::new() } else { vec![range] } })
    }

    /// A copy of a file, with its attributes. What is no regular file, as /dev/null, stands for an empty one.
    fn copied(&mut self, attributes: &mut Attributes) -> Result<Kind> {
        let source = self.word("the path of a file")?;
        let shown = || escape(source);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file: OwnedFd = rustix::fs::open(source, flags, Mode::empty())
            .map_err(|error| self.error(format!("{} cannot be opened: {error}", escape(source))))?;
        let opened = Opened::new(&file, &shown)?;
        let stat = opened.stat();
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            return Err(self.error(format!("{} is a folder, and no file to be copied", escape(source))));
        }
        if self.options.atime {
            let nanoseconds = u32::try_from(stat.st_atime_nsec).unwrap_or(0);
            attributes.atime = Some(Timestamp { seconds: stat.st_atime, nanoseconds });
        }
        let data = if opened.is_regular() { opened.store(self.filling.sink)? } else { Data::default() };
        let kind = Kind::Regular(data);
        let (mode, filling) = (attributes.permissions, &*self.filling);
        self.xattrs.of_open(file.as_fd(), &shown, &mut |name, value| {
            filling.set_xattr(attributes, &kind, (name, value), &shown)
        })?;
        // the mode is that of the prototype, whatever list the copied file has
        attributes.change_mode(mode);
        Ok(kind)
    }
}

/// Kind and access bits. mkfs.xfs does not look at what follows the sixth character, so that it takes 0644 for 064.
fn parse_mode(word: &[u8]) -> Option<(Letter, u16)> {
    let &[letter, uid, gid, owner, group, other] = word else { return None };
    let letter = match letter {
        b'-' => Letter::Regular,
        b'r' => Letter::Reserved,
        b'b' => Letter::Block,
        b'c' => Letter::Character,
        b'd' => Letter::Directory,
        b'l' => Letter::Symlink,
        b'p' => Letter::Fifo,
        _ => return None,
    };
    let flag = |byte: u8, name: u8, bit: u16| match byte {
        b'-' => Some(0),
        byte if byte == name => Some(bit),
        _ => None,
    };
    let mut bits = flag(uid, b'u', SET_UID)? | flag(gid, b'g', SET_GID)?;
    for (digit, shift) in [(owner, 6), (group, 3), (other, 0)] {
        bits |= u16::try_from(char::from(digit).to_digit(8)?).ok()? << shift;
    }
    Some((letter, bits))
}

/// A number as C reads it: hexadecimal behind `0x`, octal behind `0`.
fn number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16).ok()?,
        None if digits.len() > 1 && digits.starts_with('0') => i64::from_str_radix(digits, 8).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if text.starts_with('-') { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::dinode::DeviceNumber;
    use crate::populate::content::Content;
    use crate::populate::exclude::Exclude;
    use crate::populate::memory_sink::MemorySink;
    use crate::report::Silent;

    /// Reads a prototype file; `{}` in it is the path of a file that holds `hello\n`.
    fn parse(text: &str, sink: &mut MemorySink) -> Result<Content> {
        let folder = tempfile::tempdir().expect("a folder");
        let (prototype, file) = (folder.path().join("prototype"), folder.path().join("file"));
        std::fs::write(&file, "hello\n").expect("written");
        std::fs::write(&prototype, text.replace("{}", &file.to_string_lossy())).expect("written");
        let size = |text: &str| text.strip_suffix('k').and_then(|text| text.parse::<u64>().ok()).map(|size| size << 10);
        let exclude = Exclude::default();
        let content = Content::new(Attributes::default());
        let mut filling = Filling { content, sink, observer: &Silent, exclude: &exclude };
        let options = Options { slashes_are_spaces: text.contains("a/b"), atime: false, size: &size };
        read(&prototype, options, &mut filling)?;
        Ok(filling.content)
    }

    #[test]
    fn files_of_all_kinds() {
        let mut sink = MemorySink::new(1024);
        let content = parse(
            "boot\n1 2\nd-g755 3 1\nsub d--700 5 6\n: comment $\nf -ug644 0x10 010 {}\n$\nr rug775 1 2 5k\n\
             l l--777 0 0 to/where\nb b--600 0 0 8 1\nc c--600 0 0 1 3\np p--600 0 0\na/b ---600 0 0 /dev/null\n$ rest\n",
            &mut sink,
        )
        .expect("a prototype");
        let root = content.node(NodeId::ROOT);
        assert_eq!((root.attributes.permissions, root.attributes.uid, root.attributes.gid), (0o2755, 3, 1));
        let names: Vec<_> = content.entries(NodeId::ROOT).map(|(name, _)| name.to_vec()).collect();
        assert_eq!(names, [&b"a b"[..], b"b", b"c", b"l", b"p", b"r", b"sub"]);
        let node = |name: &str| content.node(content.lookup(NodeId::ROOT, name.as_bytes()).expect("there"));
        assert_eq!(node("b").kind, Kind::BlockDevice(DeviceNumber { major: 8, minor: 1 }));
        assert_eq!(node("c").kind, Kind::CharDevice(DeviceNumber { major: 1, minor: 3 }));
        assert_eq!(node("l").kind, Kind::Symlink((*b"to/where").into()));
        assert_eq!((&node("p").kind, &node("a b").kind), (&Kind::Fifo, &Kind::Regular(Data::default())));
        let reserved = node("r");
        let range = Range { block: 0, piece: Piece::Reserved { blocks: 5 } };
        assert_eq!(reserved.kind, Kind::Regular(Data { size: 0, ranges: vec![range] }));
        assert_eq!((reserved.attributes.permissions, reserved.attributes.flags), (0o775, flags::PREALLOC));
        assert_eq!(node("sub").attributes.permissions, 0o2700, "the folder above has the set-group-ID bit");
        let sub = content.lookup(NodeId::ROOT, b"sub").expect("there");
        let file = content.node(content.lookup(sub, b"f").expect("there"));
        assert_eq!((file.attributes.permissions, file.attributes.uid, file.attributes.gid), (0o6644, 16, 8));
        let Kind::Regular(data) = &file.kind else { panic!("no file") };
        assert_eq!(sink.read(data), b"hello\n");
    }

    #[test]
    fn the_last_folders_need_no_end() {
        let content = parse("b 1 2 d--755 0 0 a d--755 0 0\n", &mut MemorySink::new(1024)).expect("a prototype");
        assert_eq!(content.len(), 2);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, line, word) in [
            ("", "", "newline"),
            ("boot\n1 2\nd--755 0 0", "", "newline"),
            ("boot\0\n", "", "zero byte"),
            ("boot\n1 2\n", ":3", "a mode"),
            ("b\n1 2\n---644 0 0 {}\n", ":3", "not a folder"),
            ("b\n1 2\nd--755 0 0\nx\n", ":5", "a mode"),
            ("b\n1 2\nd--955 0 0\n$\n", ":3", "d--955"),
            ("b\n1 2\nd--0755 0 0\n$\n", ":3", "d--0755"),
            ("b\n1 2\nx--755 0 0\n$\n", ":3", "x--755"),
            ("b\n1 2\nd--755 0x 0\n$\n", ":3", "0x"),
            ("b\n1 2\nd--755 -1 0\n$\n", ":3", "-1"),
            ("b\n1 2\nd--755 0 4294967295\n$\n", ":3", "4294967295"),
            ("b\n1 2\nd--755 0 0\nx p--644 0 0\nx p--644 0 0\n$\n", ":5", "two files"),
            ("b\n1 2\nd--755 0 0\n. p--644 0 0\n$\n", ":4", "there already"),
            ("b\n1 2\nd--755 0 0\nx/y p--644 0 0\n$\n", ":4", "slash"),
            ("b\n1 2\nd--755 0 0\nx ---644 0 0 /not/there\n$\n", ":4", "/not/there"),
            ("b\n1 2\nd--755 0 0\nx ---644 0 0 /\n$\n", ":4", "folder"),
            ("b\n1 2\nd--755 0 0\nx b--644 0 0 16384 1\n$\n", ":4", "16384"),
            ("b\n1 2\nd--755 0 0\nx r--644 0 0 5x\n$\n", ":4", "5x"),
        ] {
            let error = parse(text, &mut MemorySink::new(1024)).expect_err(text).to_string();
            assert!(error.contains(&format!("prototype{line}: ")) && error.contains(word), "{text:?}: {error}");
        }
    }

    #[test]
    fn numbers_as_c_has_them() {
        for (text, value) in
            [("0", 0), ("010", 8), ("0x1F", 31), ("-5", -5), ("+7", 7), ("99999999999", 99_999_999_999)]
        {
            assert_eq!(number(text), Some(value), "{text}");
        }
        for text in ["", "-", "--5", "0x", "08", "1x", "0x+1", "1 ", "9223372036854775808"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
