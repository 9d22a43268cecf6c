//! `cat`, `get` and `tar`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::ArgMatches;
use serde_json::{Value, json};

use super::background::Background;
use super::context::{Context, exit_code, kept_code, paths};
use super::{TOOL, json};
use crate::cli::output::{complain, standard_output};
use crate::files::extract::{Extracted, Extraction, NotKept};
use crate::files::name::escape;
use crate::files::tar::{Archive, Archived};
use crate::files::{Found, Last, Start};
use crate::forms::FileType;
use crate::report::{Observer, Unit};

/// Paths that are named for each thing that could not be kept.
const SHOWN_PATHS: usize = 5;

/// Writes the contents of files to the standard output.
pub(super) fn cat(context: &Context, arguments: &ArgMatches) -> anyhow::Result<ExitCode> {
    let reader = context.reader();
    let mut out = standard_output();
    for path in paths(arguments)? {
        let found = reader.lookup(&path, Last::Follow)?;
        if found.inode.file_type() != Some(FileType::Regular) {
            bail!("{}: is no regular file", escape(&path));
        }
        reader.cat(&found.inode, &mut out)?;
    }
    out.flush()?;
    Ok(exit_code(&reader))
}

/// Puts files into a folder.
pub(super) fn get(context: &Context, arguments: &ArgMatches) -> anyhow::Result<ExitCode> {
    let reader = context.reader();
    let target: &PathBuf = arguments.get_one("folder").context("no folder was named")?;
    let mut wanted = Vec::new();
    for path in paths(arguments)? {
        let found = reader.lookup(&path, Last::Keep)?;
        if found.inode.file_type() == Some(FileType::Directory) && !arguments.get_flag("recursive") {
            bail!("{}: is a folder; --recursive takes all that it holds", escape(&path));
        }
        wanted.push((name_of(&path, &found)?, found));
    }
    let folder = open_folder(target)?;
    let mut extraction = Extraction::into(&reader, folder).with_context(|| target.display().to_string())?;
    begin(context, "extracting");
    for (name, found) in &wanted {
        let added = extraction.add(name.as_deref(), &found.inode);
        added.with_context(|| format!("cannot write to {}", target.display()))?;
    }
    context.terminal.end();
    let extracted = extraction.finish();
    if context.json {
        let mut out = standard_output();
        writeln!(out, "{}", extracted_json(&extracted))?;
        out.flush()?;
    }
    say_not_kept(&extracted.not_kept);
    Ok(kept_code(&reader, extracted.not_kept.is_empty()))
}

/// The name that a file gets; none for the root, which becomes the folder itself.
fn name_of(path: &[u8], found: &Found) -> anyhow::Result<Option<Vec<u8>>> {
    match (&found.names, Start::of(path)) {
        (Some(names), _) => Ok(names.last().cloned()),
        (None, (Start::Inode(ino), rest)) => {
            let last = rest.split(|&byte| byte == b'/').rfind(|name| !matches!(*name, b"" | b"." | b".."));
            Ok(Some(last.map_or_else(|| format!("inode-{ino}").into_bytes(), <[u8]>::to_vec)))
        }
        (None, _) => bail!("{}: has no name", escape(path)),
    }
}

/// Opens the folder that files go to, and makes it if it is not there.
fn open_folder(path: &Path) -> anyhow::Result<File> {
    match fs::create_dir(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).with_context(|| format!("cannot make {}", path.display())),
    }
    if !fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        bail!("{}: is no folder", path.display());
    }
    File::open(path).with_context(|| format!("cannot open {}", path.display()))
}

/// Says what could not be kept.
fn say_not_kept(not_kept: &NotKept) {
    for lost in not_kept.iter() {
        let paths: Vec<String> = lost.paths.iter().take(SHOWN_PATHS).map(|path| escape(path)).collect();
        let more = if lost.count > SHOWN_PATHS as u64 { ", ..." } else { "" };
        let (what, count) = (lost.property.name(), lost.count);
        complain(TOOL, &format!("not kept: {what}, {count} times: {}: {}{more}", lost.reason, paths.join(", ")));
    }
}

fn extracted_json(extracted: &Extracted) -> Value {
    let lost = extracted.not_kept.iter().map(|lost| {
        json!({
            "property": lost.property.name(),
            "reason": lost.reason,
            "count": lost.count,
            "paths": lost.paths.iter().map(|path| json::path(path)).collect::<Vec<_>>(),
        })
    });
    json!({
        "format": json::FORMAT,
        "command": "get",
        "files": extracted.files,
        "bytes": extracted.bytes,
        "not_kept": lost.collect::<Vec<_>>(),
    })
}

/// Writes an archive.
pub(super) fn tar(context: &Context, arguments: &ArgMatches) -> anyhow::Result<ExitCode> {
    let reader = context.reader();
    let output = arguments.get_one::<OsString>("output").filter(|&path| path != "-").map(PathBuf::from);
    if output.is_none() && context.json {
        bail!("--json needs --output: the archive goes to the standard output");
    }
    if output.is_none() && io::stdout().is_terminal() {
        bail!("an archive is not written to a terminal; --output names a file");
    }
    let mut wanted = Vec::new();
    for path in paths(arguments)? {
        let found = reader.lookup(&path, Last::Keep)?;
        wanted.push((prefix_of(&path, &found)?, found));
    }
    let failed =
        || output.as_ref().map_or("cannot write".to_owned(), |path| format!("cannot write {}", path.display()));
    let sink: Box<dyn Write + Send> = match &output {
        Some(path) => Box::new(File::create(path).with_context(failed)?),
        None => Box::new(unbuffered_output()?),
    };
    let mut out = Background::new(sink);
    begin(context, "archiving");
    let mut archive = Archive::new(&reader, &mut out);
    for (prefix, found) in &wanted {
        archive.add(prefix, &found.inode).with_context(failed)?;
    }
    let archived = archive.finish().with_context(failed)?;
    out.finish().with_context(failed)?;
    context.terminal.end();
    if context.json {
        let mut out = standard_output();
        writeln!(out, "{}", archived_json(&archived))?;
        out.flush()?;
    }
    if archived.sockets > 0 {
        complain(TOOL, &format!("not kept: {} sockets, which an archive cannot hold", archived.sockets));
    }
    if archived.lost > 0 {
        complain(TOOL, &format!("not kept: {} files whose contents cannot be read", archived.lost));
    }
    Ok(kept_code(&reader, archived.sockets == 0 && archived.lost == 0))
}

/// The standard output itself, for large pieces: the one of the library splits them at lines.
fn unbuffered_output() -> anyhow::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned().context("the standard output is closed")?))
}

/// The name of the first member: the way to the file, as tar has it when it is called at the root.
fn prefix_of(path: &[u8], found: &Found) -> anyhow::Result<Vec<u8>> {
    match &found.names {
        Some(names) if names.is_empty() => Ok(b".".to_vec()),
        Some(names) => Ok(names.join(&b'/')),
        None => name_of(path, found)?.context("a file without a name"),
    }
}

fn archived_json(archived: &Archived) -> Value {
    json!({
        "format": json::FORMAT,
        "command": "tar",
        "members": archived.members,
        "bytes": archived.bytes,
        "sockets_not_kept": archived.sockets,
        "files_not_kept": archived.lost,
    })
}

/// Begins work on all files.
fn begin(context: &Context, what: &str) {
    let sb = &context.image.superblock().sb;
    let files = sb.icount.get().saturating_sub(sb.ifree.get());
    context.terminal.begin(what, files, Unit::Items("files"));
}
