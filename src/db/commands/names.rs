//! Names and what they lead to: ls, parent, path (xfsprogs `db/namei.c`).

use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::hash::directory_hash;
use super::options::Options;
use crate::db::answer::{Answer, Bytes, Nothing, Text, bytes_value, until_zero};
use crate::db::command::Command;
use crate::db::session::Session;
use crate::error::{Error, Result};
use crate::forms::{DirEntry, DirForm, Directory, Inode, for_each_parent};
use crate::geometry::Ino;
use crate::ondisk::dir_data::{DATA_ALIGN, MAXNAMELEN, entry_len, ftype};

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "ls",
        alias: Some("l"),
        min: 0,
        max: None,
        moves: false,
        usage: "[-i] [-m] [path]...",
        brief: "list directories",
        help: "Lists the directory that one looks at, or those that the paths lead to: cookie, inode number, type, hash of the name, its length, the name, and whether it can be one.\n  -i  only the inode number that each path leads to, or that one looks at\n  -m  paths in the metadata directory tree",
        run: ls,
    },
    Command {
        name: "parent",
        alias: Some("pptr"),
        min: 0,
        max: None,
        moves: false,
        usage: "[-m] [path]...",
        brief: "list parent pointers",
        help: "Lists which directories have which names for the file that one looks at, or for those that the paths lead to: inode number and generation of the directory, length of the name, the name.\n  -m  paths in the metadata directory tree",
        run: parent,
    },
    Command {
        name: "path",
        alias: None,
        min: 1,
        max: None,
        moves: true,
        usage: "[-m] path",
        brief: "go to the inode that a path leads to",
        help: "Goes to the inode that a path leads to: from the root directory where it begins with a slash, else from the directory that one looks at.\n  -m  a path in the metadata directory tree",
        run: path,
    },
];

fn path(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let options = Options::parse(words, "m")?;
    let root = session.root_directory(options.has('m'))?;
    let [path] = options.operands.as_slice() else { return Err(Error::Usage("path takes one path".to_owned())) };
    let ino = session.resolve(root, path.as_bytes())?.ino;
    session.go_to_inode(ino)?;
    Ok(Box::new(Nothing))
}

/// What a listing gives: its bytes and the same as data.
type Listed = (Vec<u8>, Value);

/// Runs `list` on the inode that one looks at, or with its title on each that a path leads to. What goes wrong with one
/// path is told the observer; only when nothing goes right is it an error.
fn each(
    session: &Session,
    paths: &[String],
    root: Ino,
    titled: bool,
    list: &dyn Fn(&Inode) -> Result<Listed>,
) -> Result<Box<dyn Answer>> {
    if paths.is_empty() {
        let (bytes, value) = list(&session.inode_here()?)?;
        return Ok(Bytes::boxed(bytes, value));
    }
    let (mut bytes, mut values, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for path in paths {
        match session.resolve(root, path.as_bytes()).and_then(|inode| Ok((inode.ino, list(&inode)?))) {
            Ok((ino, (listed, value))) => {
                if titled {
                    bytes.extend_from_slice(format!("{path}:\n").as_bytes());
                }
                bytes.extend(listed);
                values.push(json!({ "path": path, "ino": ino.0, "list": value }));
            }
            Err(error) => problems.push(error),
        }
    }
    session.settle(problems, values.is_empty())?;
    Ok(Bytes::boxed(bytes, values))
}

fn ls(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let options = Options::parse(words, "im")?;
    let root = session.root_directory(options.has('m'))?;
    if !options.has('i') {
        return each(session, &options.operands, root, true, &|inode| list_directory(session, inode));
    }
    if options.operands.is_empty() {
        let ino = session.inode_here()?.ino;
        return Ok(Text::boxed(format!("{ino}\n"), json!({ "ino": ino.0 })));
    }
    each(session, &options.operands, root, false, &|inode| {
        Ok((format!("{}\n", inode.ino).into_bytes(), Value::from(inode.ino.0)))
    })
}

/// The words for file types in directory entries.
const TYPES: [&str; 9] =
    ["unknown", "regular", "directory", "chardev", "blkdev", "fifo", "socket", "symlink", "whiteout"];

fn type_word(kind: Option<u8>) -> &'static str {
    TYPES.get(usize::from(kind.unwrap_or(ftype::UNKNOWN))).unwrap_or(&TYPES[0])
}

fn list_directory(session: &Session, inode: &Inode) -> Result<Listed> {
    let directory = Directory::open(session.image.cache(), inode)?;
    // where there are several data blocks, xfs_db shows the cookie of the entry behind
    let behind = matches!(directory.form()?, DirForm::Leaf | DirForm::Node);
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    directory.for_each(&mut |entry| {
        match entry {
            Ok(entry) => {
                let (line, value) = entry_line(session, &entry, behind);
                bytes.extend(line);
                values.push(value);
            }
            Err(error) => session.observer.warn(&error),
        }
        ControlFlow::Continue(())
    });
    Ok((bytes, values.into()))
}

fn entry_line(session: &Session, entry: &DirEntry<'_>, behind: bool) -> Listed {
    let len = entry.name.len();
    let own = entry_len(len, session.geometry().features.has_ftype());
    let own = u64::try_from(own).unwrap_or(0);
    let unit = u64::try_from(DATA_ALIGN).unwrap_or(1);
    let cookie = |offset: u64| (offset / unit) & u64::from(u32::MAX);
    let shown = cookie(if behind { entry.offset.saturating_add(own) } else { entry.offset });
    let hash = directory_hash(session).hash(entry.name);
    let kind = type_word(entry.ftype);
    let good = (1..=MAXNAMELEN).contains(&len) && !entry.name.iter().any(|byte| matches!(byte, 0 | b'/'));
    let mut line = format!("{shown:<10} {:<18} {kind:<14} {hash:#010x} {len:3} ", entry.ino.0).into_bytes();
    line.extend_from_slice(until_zero(entry.name));
    line.extend_from_slice(if good { b" (good)\n" } else { b" (corrupt)\n" });
    let value = json!({
        "name": bytes_value(entry.name), "ino": entry.ino.0, "type": kind, "hash": hash,
        "cookie": cookie(entry.offset), "good": good,
    });
    (line, value)
}

fn parent(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let options = Options::parse(words, "m")?;
    let root = session.root_directory(options.has('m'))?;
    if !session.geometry().features.has_parent() {
        // titles come with the lists that there are none of
        return each(session, &options.operands, root, false, &|_| Ok((Vec::new(), json!([]))));
    }
    each(session, &options.operands, root, true, &|inode| list_parents(session, inode))
}

fn list_parents(session: &Session, inode: &Inode) -> Result<Listed> {
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    for_each_parent(session.image.cache(), inode, &mut |found| {
        match found {
            Ok(found) => {
                let (ino, generation, len) = (found.parent.0, found.generation, found.name.len());
                bytes.extend_from_slice(format!("{ino:18}:{generation:#010x} {len:3} ").as_bytes());
                bytes.extend_from_slice(until_zero(found.name));
                bytes.push(b'\n');
                values.push(json!({ "name": bytes_value(found.name), "ino": ino, "generation": generation }));
            }
            Err(error) => session.observer.warn(&error),
        }
        ControlFlow::Continue(())
    })?;
    Ok((bytes, values.into()))
}
