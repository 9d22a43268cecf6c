//! `hash`: the hash of a name (xfsprogs `db/hash.c`).

use serde_json::{Value, json};

use super::number;
use super::options::Options;
use crate::db::answer::{Answer, Text};
use crate::db::command::Command;
use crate::db::session::Session;
use crate::error::Result;
use crate::ondisk::name_hash::{NameHash, hash_name};
use crate::ondisk::parent::hash_parent;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "hash",
    alias: None,
    min: 1,
    max: None,
    moves: false,
    usage: "[-d | -p INODE] NAME...",
    brief: "show the hashes of names",
    help: "Shows the hash under which each name stands in the index of a directory or of attributes.\n  -d        as the name of a directory's entry: in a filesystem that does not regard case, it is another hash\n  -p INODE  as a parent pointer to a directory with this inode number\nWithout an option: as the name of an attribute.",
    run: hash,
}];

/// How the filesystem hashes the names in directories.
pub(super) fn directory_hash(session: &Session) -> NameHash {
    if session.geometry().features.has_asciici() { NameHash::AsciiCi } else { NameHash::Bytes }
}

fn hash(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let options = Options::parse(words, "dp:")?;
    let parent = options.value('p').map(|text| number::parse(text, "inode number")).transpose()?;
    let (mut text, mut values) = (String::new(), Vec::<Value>::new());
    for name in &options.operands {
        let hash = match options.last_of("dp") {
            Some('d') => directory_hash(session).hash(name.as_bytes()),
            Some(_) => hash_parent(directory_hash(session), name.as_bytes(), parent.unwrap_or_default()),
            None => hash_name(name.as_bytes()),
        };
        text += &format!("{hash:#x}\n");
        values.push(json!({ "name": name, "hash": hash }));
    }
    Ok(Text::boxed(text, values))
}
