//! `rdump`: files out of the filesystem into a folder (xfsprogs `db/rdump.c`).

use std::fs::File;

use serde_json::{Value, json};

use super::options::Options;
use crate::db::answer::{Answer, Text, bytes_value};
use crate::db::command::Command;
use crate::db::session::Session;
use crate::error::{Error, Result};
use crate::forms::{FileType, Inode};
use crate::tree::Reader;
use crate::tree::extract::{Extraction, Lost, Property};

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "rdump",
    alias: None,
    min: 1,
    max: None,
    moves: false,
    usage: "[-s] [path]... folder",
    brief: "copy files out of the filesystem into a folder",
    help: "Copies what the paths lead to, and all below it, into a folder of the running system, which is made if it is not there; without a path, everything. A single path to a directory gives what is in it, without the directory itself. Data with their holes, access bits, owners, times, hard links, symbolic links, devices, attributes and access control lists are kept, as far as the user may; inode flags and project numbers are not. A file whose name is taken stays out.\n  -s  it is an error if anything cannot be read or kept",
    run: rdump,
}];

fn rdump(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let options = Options::parse(words, "s")?;
    let Some((folder, paths)) = options.operands.split_last() else {
        return Err(Error::Usage("rdump takes a folder to copy to".to_owned()));
    };
    let failed = |error: std::io::Error| Error::Usage(format!("{folder}: {error}"));
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    let root = session.root_directory(false)?;
    let whole = ["/".to_owned()];
    let paths = if paths.is_empty() { &whole } else { paths };
    let starts: Result<Vec<(&str, Inode)>> =
        paths.iter().map(|path| Ok((path.as_str(), session.resolve(root, path.as_bytes())?))).collect();
    let reader = Reader::new(&session.image, &*session.observer);
    let mut extraction = Extraction::into(&reader, File::open(folder).map_err(failed)?).map_err(failed)?;
    for (path, inode) in starts? {
        let name = path.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty());
        let inner = paths.len() == 1 && inode.file_type() == Some(FileType::Directory);
        let name = name.filter(|_| !inner).map(str::as_bytes);
        extraction.add(name, &inode).map_err(failed)?;
    }
    let extracted = extraction.finish();
    if options.has('s') && (reader.problems() > 0 || !extracted.not_kept.is_empty()) {
        let problems = reader.problems();
        return Err(Error::Usage(format!("{folder}: {problems} problems in the filesystem, or not all could be kept")));
    }
    let lost: Vec<&Lost> = extracted.not_kept.iter().collect();
    let mut text = String::new();
    for lost in &lost {
        let line = said(lost.property).map(|said| format!("{folder}: {said}\n"));
        match line {
            Some(line) if !text.contains(&line) => text += &line,
            Some(_) => {}
            None => {
                let what = format!("{folder}: {} files: {}: {}", lost.count, lost.property.name(), lost.reason);
                session.observer.warn(&Error::Usage(what));
            }
        }
    }
    let values: Vec<Value> = lost.iter().map(|lost| value_of(lost)).collect();
    Ok(Text::boxed(text, json!({ "files": extracted.files, "bytes": extracted.bytes, "not_kept": values })))
}

/// What xfs_db says of a loss.
fn said(property: Property) -> Option<&'static str> {
    Some(match property {
        Property::Owner => "some uid/gid could not be set",
        Property::Mode => "some file modes could not be set",
        Property::Times => "some timestamps could not be set",
        Property::Xattr => "some extended xattrs could not be set",
        Property::Acl => "some ACLs could not be translated",
        Property::File | Property::HardLink => return None,
    })
}

fn value_of(lost: &Lost) -> Value {
    let paths: Vec<Value> = lost.paths.iter().map(|path| bytes_value(path)).collect();
    json!({ "property": lost.property.name(), "reason": lost.reason, "count": lost.count, "paths": paths })
}
