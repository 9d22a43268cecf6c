//! `ls`, `stat` and `tree`.

use std::io::Write;
use std::process::ExitCode;

use clap::ArgMatches;

use super::context::{Context, exit_code, paths};
use super::json::{self, Records};
use super::words;
use crate::cli::output::standard_output;
use crate::files::name::{escape, escape_component};
use crate::files::{Event, Folder, Last, Next, Order, Reader, Stat, walk};
use crate::forms::{FileType, Inode};

/// The output of `ls`: text or JSON.
struct Lister<'a> {
    reader: &'a Reader<'a>,
    long: bool,
    inode: bool,
    out: Sink<'a>,
}

/// Text, or records of JSON.
pub(super) enum Sink<'a> {
    Text(&'a mut dyn Write),
    Json(Records<'a>),
}

impl<'a> Sink<'a> {
    /// Output of `command`; in JSON, its list is called `list`.
    pub(super) fn begin(out: &'a mut dyn Write, json: bool, command: &str, list: &str) -> std::io::Result<Self> {
        Ok(if json { Sink::Json(Records::begin(out, command, list)?) } else { Sink::Text(out) })
    }

    /// Ends it.
    pub(super) fn finish(self) -> std::io::Result<()> {
        if let Sink::Json(records) = self { records.finish() } else { Ok(()) }
    }
}

/// Lists files.
pub(super) fn ls(context: &Context, arguments: &ArgMatches) -> anyhow::Result<ExitCode> {
    let reader = context.reader();
    let (recursive, directory) = (arguments.get_flag("recursive"), arguments.get_flag("directory"));
    let paths = paths(arguments)?;
    let mut out = standard_output();
    let sink = Sink::begin(&mut out, context.json, "ls", "files")?;
    let mut lister =
        Lister { reader: &reader, long: arguments.get_flag("long"), inode: arguments.get_flag("inode"), out: sink };
    for (index, path) in paths.iter().enumerate() {
        let found = reader.lookup(path, Last::Keep)?;
        let is_folder = found.inode.file_type() == Some(FileType::Directory);
        if !is_folder || directory {
            lister.show(path, &escape(path), &found.inode)?;
        } else if recursive {
            lister.recursive(path, &found.inode)?;
        } else {
            if paths.len() > 1 {
                lister.heading(path, index == 0)?;
            }
            lister.folder(path, &found.inode)?;
        }
    }
    lister.out.finish()?;
    out.flush()?;
    Ok(exit_code(&reader))
}

impl Lister<'_> {
    /// A line, or a record, about the file at `path`; in text, it is called `name`, which is escaped already.
    fn show(&mut self, path: &[u8], name: &str, inode: &Inode) -> anyhow::Result<()> {
        let Some(stat) = Stat::of(self.reader, inode) else { return Ok(()) };
        let target = target_of(self.reader, inode);
        match &mut self.out {
            Sink::Json(records) => records.put(&json::stat(path, &stat, target.as_deref()))?,
            Sink::Text(out) => {
                if self.inode {
                    write!(out, "{:>10} ", inode.ino)?;
                }
                if self.long {
                    write!(out, "{} ", words::long(&stat))?;
                }
                write!(out, "{name}")?;
                if let Some(target) = target.filter(|_| self.long) {
                    write!(out, " -> {}", escape(&target))?;
                }
                writeln!(out)?;
            }
        }
        Ok(())
    }

    fn heading(&mut self, path: &[u8], first: bool) -> anyhow::Result<()> {
        if let Sink::Text(out) = &mut self.out {
            writeln!(out, "{}{}:", if first { "" } else { "\n" }, escape(path))?;
        }
        Ok(())
    }

    fn folder(&mut self, path: &[u8], folder: &Inode) -> anyhow::Result<()> {
        let entries = Folder::read(self.reader, folder, Order::Name);
        for entry in entries.iter() {
            if let Some(inode) = self.reader.inode(entry.ino) {
                self.show(&joined(path, entry.name), &escape_component(entry.name), &inode)?;
            }
        }
        Ok(())
    }

    /// All folders below `start`, each with a heading; the inodes of its entries are read twice, so that a folder's lines
    /// stand together and memory holds one folder at a time.
    fn recursive(&mut self, start: &[u8], inode: &Inode) -> anyhow::Result<()> {
        let reader = self.reader;
        let mut first = true;
        walk(reader, inode, Order::Name, &mut |event| {
            if let Event::Enter(at) = event
                && at.inode.file_type() == Some(FileType::Directory)
            {
                let path = joined(start, at.path);
                self.heading(&path, first)?;
                self.folder(&path, at.inode)?;
                first = false;
            }
            Ok(Next::Descend)
        })
    }
}

/// Shows what inodes say.
pub(super) fn stat(context: &Context, arguments: &ArgMatches) -> anyhow::Result<ExitCode> {
    let reader = context.reader();
    let last = if arguments.get_flag("follow") { Last::Follow } else { Last::Keep };
    let mut out = standard_output();
    let mut sink = Sink::begin(&mut out, context.json, "stat", "files")?;
    for (index, path) in paths(arguments)?.iter().enumerate() {
        let found = reader.lookup(path, last)?;
        let Some(stat) = Stat::of(&reader, &found.inode) else { continue };
        let target = target_of(&reader, &found.inode);
        match &mut sink {
            Sink::Json(records) => records.put(&json::stat(path, &stat, target.as_deref()))?,
            Sink::Text(out) => {
                let gap = if index == 0 { "" } else { "\n" };
                write!(out, "{gap}{}", words::stat(path, &stat, target.as_deref()))?;
            }
        }
    }
    sink.finish()?;
    out.flush()?;
    Ok(exit_code(&reader))
}

/// Draws trees.
pub(super) fn tree(context: &Context, arguments: &ArgMatches) -> anyhow::Result<ExitCode> {
    let reader = context.reader();
    let depth =
        arguments.get_one::<u32>("depth").map_or(usize::MAX, |&depth| usize::try_from(depth).unwrap_or(usize::MAX));
    let mut out = standard_output();
    let mut sink = Sink::begin(&mut out, context.json, "tree", "files")?;
    for path in paths(arguments)? {
        let found = reader.lookup(&path, Last::Follow)?;
        // for each level above, whether entries follow in it
        let mut open: Vec<bool> = Vec::new();
        walk(&reader, &found.inode, Order::Name, &mut |event| -> anyhow::Result<Next> {
            let Event::Enter(at) = event else { return Ok(Next::Descend) };
            let target = target_of(&reader, at.inode);
            match &mut sink {
                Sink::Json(records) => {
                    if let Some(stat) = Stat::of(&reader, at.inode) {
                        let record = json::stat(&joined(&path, at.path), &stat, target.as_deref());
                        records.put(&record)?;
                    }
                }
                Sink::Text(out) => {
                    open.truncate(at.depth.saturating_sub(1));
                    let mut line: String = open.iter().map(|&more| if more { "│   " } else { "    " }).collect();
                    if at.depth > 0 {
                        line += if at.is_last { "└── " } else { "├── " };
                        open.push(!at.is_last);
                        line += &escape_component(at.name);
                    } else {
                        line += &escape(&path);
                    }
                    if let Some(target) = target {
                        line += &format!(" -> {}", escape(&target));
                    }
                    writeln!(out, "{line}")?;
                }
            }
            Ok(if at.depth < depth { Next::Descend } else { Next::Skip })
        })?;
    }
    sink.finish()?;
    out.flush()?;
    Ok(exit_code(&reader))
}

/// The target of a symbolic link; one that cannot be read is reported.
pub(super) fn target_of(reader: &Reader<'_>, inode: &Inode) -> Option<Vec<u8>> {
    if inode.file_type() != Some(FileType::Symlink) {
        return None;
    }
    reader.target(inode).map_err(|error| reader.report(&error)).ok()
}

/// `path` with names behind it.
pub(super) fn joined(path: &[u8], names: &[u8]) -> Vec<u8> {
    let mut whole = path.to_vec();
    if !names.is_empty() {
        if whole.last() != Some(&b'/') {
            whole.push(b'/');
        }
        whole.extend_from_slice(names);
    }
    whole
}
