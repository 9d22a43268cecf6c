//! Changes to what sources say, for folders that were made without root: owners, modes, and files that only root makes.
//!
//! A file of lines: a path or pattern, and settings, with blanks between.
//!
//! ```text
//! # what the package manager would do
//! /usr/bin/sudo   mode=4755
//! /home/ada/**    uid=1000 gid=1000
//! /dev/null       char=1:3 mode=666
//! ```

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use globset::GlobMatcher;

use super::content::{Attributes, Content, Kind, Node, NodeId, check_name};
use super::data::{Data, DataSink};
use super::exclude::anchored;
use super::filling::device;
use crate::error::{Error, Result};
use crate::report::name::{escape, unescape};

/// What a line is about.
#[derive(Clone, Debug)]
enum Subject {
    /// The file at this path, without a slash before it.
    Path(Vec<u8>),
    /// Files of this name in whatever folder.
    Name(Vec<u8>),
    /// Files whose path matches.
    Pattern(GlobMatcher),
}

/// A line.
#[derive(Clone, Debug)]
struct Line {
    number: usize,
    subject: Subject,
    mode: Option<u16>,
    uid: Option<u32>,
    gid: Option<u32>,
    make: Option<Kind>,
}

/// The changes.
#[derive(Clone, Debug, Default)]
pub struct Map {
    lines: Vec<Line>,
    /// The file that they come from, as it is shown.
    name: String,
}

/// Access bits of what is made, before other settings.
const FOLDER_MODE: u16 = 0o755;
const FILE_MODE: u16 = 0o644;

impl Map {
    /// Reads the lines of a file. `name` is its name in errors.
    ///
    /// # Errors
    /// `Source`, for a line that is none.
    pub fn parse(name: &str, text: &[u8]) -> Result<Self> {
        let mut lines = Vec::new();
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let words: Vec<&[u8]> =
                line.split(|byte| matches!(byte, b' ' | b'\t' | b'\r')).filter(|word| !word.is_empty()).collect();
            let Some((subject, settings)) = words.split_first().filter(|(word, _)| !word.starts_with(b"#")) else {
                continue;
            };
            let number = at + 1;
            let line = Line::parse(number, subject, settings);
            lines.push(line.map_err(|problem| Error::source(format!("{name}:{number}"), problem))?);
        }
        Ok(Map { lines, name: name.to_owned() })
    }

    /// Makes the files that are to be made.
    ///
    /// # Errors
    /// `Source`, when something else is in the way; those of the sink.
    pub(super) fn make(&self, content: &mut Content, sink: &mut dyn DataSink) -> Result<()> {
        for line in &self.lines {
            if let (Some(kind), Subject::Path(path)) = (&line.make, &line.subject) {
                make(content, path, kind, sink)?.map_err(|problem| self.error(line, problem))?;
            }
        }
        Ok(())
    }

    /// Sets what is to be set.
    ///
    /// # Errors
    /// `Source`, when a line without a pattern is about no file.
    pub(super) fn apply(&self, content: &mut Content) -> Result<()> {
        let mut used = vec![false; self.lines.len()];
        let mut left: Vec<(NodeId, Vec<u8>)> = vec![(NodeId::ROOT, Vec::new())];
        while let Some((id, path)) = left.pop() {
            for (line, used) in self.lines.iter().zip(&mut used) {
                if line.subject.is(&path) {
                    *used = true;
                    line.set(&mut content.node_mut(id).attributes);
                }
            }
            let below = content.entries(id).map(|(name, child)| {
                let path = if path.is_empty() { name.to_vec() } else { [&path[..], b"/", name].concat() };
                (child, path)
            });
            // what comes first in the order of names is on top
            let first = left.len();
            left.extend(below);
            left[first..].reverse();
        }
        let unused =
            self.lines.iter().zip(used).find(|(line, used)| !used && !matches!(line.subject, Subject::Pattern(_)));
        match unused {
            Some((line, _)) => Err(self.error(line, "there is no such file")),
            None => Ok(()),
        }
    }

    fn error(&self, line: &Line, problem: &str) -> Error {
        Error::source(format!("{}:{}", self.name, line.number), problem)
    }
}

impl Subject {
    fn parse(word: &[u8]) -> Option<Self> {
        let bytes = unescape(word)?;
        if bytes.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'{')) {
            let pattern = std::str::from_utf8(&bytes).ok()?;
            return anchored(pattern).ok().map(|glob| Subject::Pattern(glob.compile_matcher()));
        }
        let names: Vec<&[u8]> = bytes.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
        let sound = names.iter().all(|name| check_name(name).is_ok());
        sound.then(
            || if bytes.contains(&b'/') { Subject::Path(names.join(&b'/')) } else { Subject::Name(bytes.clone()) },
        )
    }

    fn is(&self, path: &[u8]) -> bool {
        match self {
            Subject::Path(wanted) => wanted == path,
            Subject::Name(wanted) => path.rsplit(|byte| *byte == b'/').next() == Some(wanted),
            Subject::Pattern(glob) => glob.is_match(Path::new(OsStr::from_bytes(path))),
        }
    }
}

impl Line {
    fn parse(number: usize, subject: &[u8], settings: &[&[u8]]) -> std::result::Result<Self, String> {
        let shown = escape(subject);
        let subject = Subject::parse(subject).ok_or_else(|| format!("{shown} is no path and no pattern"))?;
        let mut line = Line { number, subject, mode: None, uid: None, gid: None, make: None };
        if settings.is_empty() {
            return Err(format!("nothing is set for {shown}"));
        }
        for setting in settings {
            let text = std::str::from_utf8(setting).unwrap_or_default();
            let (key, value) = text.split_once('=').unwrap_or((text, ""));
            line.take(key, value).ok_or_else(|| {
                let allowed =
                    "mode=OCTAL, uid=NUMBER, gid=NUMBER, char=MAJOR:MINOR, block=MAJOR:MINOR, fifo, dir or file";
                format!("{}: allowed are {allowed}", escape(setting))
            })?;
        }
        if line.make.is_some() && !matches!(&line.subject, Subject::Path(path) if !path.is_empty()) {
            return Err(format!("{shown}: only a file at a path from the top, as /dev/null, can be made"));
        }
        Ok(line)
    }

    /// Takes a setting; `None` when it is none.
    fn take(&mut self, key: &str, value: &str) -> Option<()> {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u32>().ok().filter(|number| digits && *number != u32::MAX)
        };
        let numbers = || {
            let (major, minor) = value.split_once(':')?;
            device(number(major)?.into(), number(minor)?.into()).ok()
        };
        match (key, value) {
            ("mode", _) => {
                let digits = (1..=5).contains(&value.len()) && value.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
                let mode = u16::from_str_radix(value, 8).ok().filter(|mode| digits && *mode <= 0o7777)?;
                self.mode = Some(mode);
            }
            ("uid", _) => self.uid = Some(number(value)?),
            ("gid", _) => self.gid = Some(number(value)?),
            ("char", _) => self.make = Some(Kind::CharDevice(numbers()?)),
            ("block", _) => self.make = Some(Kind::BlockDevice(numbers()?)),
            ("fifo", "") => self.make = Some(Kind::Fifo),
            ("dir", "") => self.make = Some(Kind::Directory(BTreeMap::new())),
            ("file", "") => self.make = Some(Kind::Regular(Data::default())),
            _ => return None,
        }
        Some(())
    }

    fn set(&self, attributes: &mut Attributes) {
        attributes.uid = self.uid.unwrap_or(attributes.uid);
        attributes.gid = self.gid.unwrap_or(attributes.gid);
        if let Some(mode) = self.mode {
            attributes.change_mode(mode);
        }
    }
}

/// Makes a file, and the folders above it. A file that has the name gives way, and hands on what it has besides its contents;
/// a folder does not.
fn make(
    content: &mut Content,
    path: &[u8],
    kind: &Kind,
    sink: &mut dyn DataSink,
) -> Result<std::result::Result<(), &'static str>> {
    let mut names = path.split(|byte| *byte == b'/').peekable();
    let mut folder = NodeId::ROOT;
    while let Some(name) = names.next() {
        let is_last = names.peek().is_none();
        let is_folder = |id: NodeId, content: &Content| matches!(content.node(id).kind, Kind::Directory(_));
        let there = content.lookup(folder, name);
        match there {
            Some(id) if is_folder(id, content) && (!is_last || matches!(kind, Kind::Directory(_))) => folder = id,
            Some(_) if !is_last => return Ok(Err("what is above it is no folder")),
            Some(id) if is_folder(id, content) => return Ok(Err("a folder is there")),
            _ => {
                let folder_kind = Kind::Directory(BTreeMap::new());
                let kind = if is_last { kind.clone() } else { folder_kind };
                let is_folder = matches!(kind, Kind::Directory(_));
                let permissions = if is_folder { FOLDER_MODE } else { FILE_MODE };
                let inherited = there.map(|id| content.node(id).attributes.clone());
                let attributes = inherited.unwrap_or(Attributes { permissions, ..Attributes::default() });
                let id = content.add(Node { kind, attributes })?;
                content.replace(folder, name, id, sink)?;
                folder = id;
            }
        }
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::dinode::DeviceNumber;
    use crate::populate::memory_sink::MemorySink;

    /// A tree with the files `a`, `d/a`, `d/sub/b` and `tab\tx`.
    fn tree() -> Content {
        let mut content = Content::new(Attributes::default());
        let mut sink = MemorySink::new(1024);
        for path in ["a", "d/a", "d/sub/b", "tab\tx"] {
            let kind = Kind::Regular(Data::default());
            make(&mut content, path.as_bytes(), &kind, &mut sink).expect("no sink is asked").expect("made");
        }
        content
    }

    fn find(content: &Content, path: &str) -> NodeId {
        path.split('/').fold(NodeId::ROOT, |id, name| content.lookup(id, name.as_bytes()).expect("there"))
    }

    fn changed(text: &str) -> Result<Content> {
        let mut content = tree();
        let map = Map::parse("map", text.as_bytes())?;
        map.make(&mut content, &mut MemorySink::new(1024))?;
        map.apply(&mut content)?;
        Ok(content)
    }

    #[test]
    fn later_lines_count() {
        let content = changed(
            "# comment\n\n/** uid=5 gid=6\n  a mode=4711 \r\n/d/sub uid=7\n/d/*\tgid=8\n/tab\\tx uid=0\n/ mode=700\n*.none uid=1\n",
        )
        .expect("a map");
        let state = |path: &str| {
            let attributes = &content.node(find(&content, path)).attributes;
            (attributes.permissions, attributes.uid, attributes.gid)
        };
        assert_eq!(state("a"), (0o4711, 5, 6));
        assert_eq!(state("d/a"), (0o4711, 5, 8));
        assert_eq!(state("d/sub"), (0o755, 7, 8));
        assert_eq!(state("d/sub/b"), (0o644, 5, 6));
        assert_eq!(state("tab\tx"), (0o644, 0, 6));
        assert_eq!(content.node(NodeId::ROOT).attributes.permissions, 0o700);
    }

    #[test]
    fn files_that_only_root_makes() {
        let content =
            changed("/dev/null char=1:3 mode=666\n/d/a block=8:1\n/d dir uid=9\n/run/p fifo\n/x/y/z dir\n/e file\n")
                .expect("a map");
        let node = |path: &str| content.node(find(&content, path));
        assert_eq!(node("dev/null").kind, Kind::CharDevice(DeviceNumber { major: 1, minor: 3 }));
        assert_eq!((node("dev/null").attributes.permissions, node("dev").attributes.permissions), (0o666, 0o755));
        assert_eq!(node("d/a").kind, Kind::BlockDevice(DeviceNumber { major: 8, minor: 1 }));
        assert_eq!((&node("run/p").kind, &node("e").kind), (&Kind::Fifo, &Kind::Regular(Data::default())));
        assert_eq!((node("d").attributes.uid, content.entries(find(&content, "d")).count()), (9, 2));
        assert_eq!(content.entries(find(&content, "x/y/z")).count(), 0);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, word) in [
            ("/a", "nothing is set"),
            ("/a uid=x", "uid=x"),
            ("/a mode=8", "mode=8"),
            ("/a mode=10000", "mode=10000"),
            ("/a uid=4294967295", "4294967295"),
            ("/a colour=red", "allowed"),
            ("/a fifo=1", "allowed"),
            ("/x char=1", "char=1"),
            ("/x char=99999:1", "char"),
            ("/*x char=1:1", "only a file at a path"),
            ("x char=1:1", "only a file at a path"),
            ("/ dir", "only a file at a path"),
            ("/../x uid=1", "no path"),
            ("/[ uid=1", "no path"),
            ("/none uid=1", "no such file"),
            ("/d fifo", "a folder is there"),
            ("/a/b fifo", "no folder"),
        ] {
            let error = changed(&format!("\n{text}\n")).map(|_| ()).expect_err(text).to_string();
            assert!(error.starts_with("map:2: ") && error.contains(word), "{text}: {error}");
        }
    }
}
