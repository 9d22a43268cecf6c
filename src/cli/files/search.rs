//! `find`, `du`, `xattr`, `map` and `owner`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::ArgMatches;
use serde_json::{Value, json};

use super::context::{Context, exit_code, paths};
use super::json;
use super::list::{Sink, joined, target_of};
use super::{parse, words};
use crate::cli::output::standard_output;
use crate::files::name::escape;
use crate::files::owner::{BlockAddress, BlockOwner, Named, owners, paths_of};
use crate::files::{
    Address, Counted, Event, Last, Map, Mapped, Mapping, Next, Order, Stat, Usage, Visited, Xattr, Xattrs, walk,
};
use crate::forms::ForkKind;
use crate::geometry::{Geometry, Ino};

/// Lists files that fulfil conditions.
pub(super) fn find(context: &Context, arguments: &ArgMatches) -> anyhow::Result<ExitCode> {
    let reader = context.reader();
    let filter = parse::filter(arguments)?;
    let long = arguments.get_flag("long");
    let mut out = standard_output();
    let mut sink = Sink::begin(&mut out, context.json, "find", "files")?;
    for path in paths(arguments)? {
        let found = reader.lookup(&path, Last::Follow)?;
        walk(&reader, &found.inode, Order::Name, &mut |event| -> anyhow::Result<Next> {
            let Event::Enter(at) = event else { return Ok(Next::Descend) };
            let Some(stat) = Stat::of(&reader, at.inode) else { return Ok(Next::Descend) };
            let name = if at.depth > 0 { at.name } else { last_name(&path) };
            if filter.accepts(name, &stat) {
                let whole = joined(&path, at.path);
                match &mut sink {
                    Sink::Json(records) => {
                        records.put(&json::stat(&whole, &stat, target_of(&reader, at.inode).as_deref()))?;
                    }
                    Sink::Text(out) if long => writeln!(out, "{} {}", words::long(&stat), escape(&whole))?,
                    Sink::Text(out) => writeln!(out, "{}", escape(&whole))?,
                }
            }
            Ok(Next::Descend)
        })?;
    }
    sink.finish()?;
    out.flush()?;
    Ok(exit_code(&reader))
}

fn last_name(path: &[u8]) -> &[u8] {
    path.split(|&byte| byte == b'/').rfind(|name| !name.is_empty()).unwrap_or(path)
}

/// Says how much space files take.
pub(super) fn du(context: &Context, arguments: &ArgMatches) -> anyhow::Result<ExitCode> {
    let reader = context.reader();
    let (all, sum, bytes) = (arguments.get_flag("all"), arguments.get_flag("summarize"), arguments.get_flag("bytes"));
    let mut out = standard_output();
    let mut sink = Sink::begin(&mut out, context.json, "du", "files")?;
    let mut counted = Counted::default();
    for path in paths(arguments)? {
        let found = reader.lookup(&path, Last::Keep)?;
        counted.usage(&reader, &found.inode, &mut |at: &Visited<'_>, usage: Usage| -> anyhow::Result<()> {
            let is_folder = at.inode.file_type() == Some(crate::forms::FileType::Directory);
            if at.depth > 0 && (sum || !(all || is_folder)) {
                return Ok(());
            }
            let whole = joined(&path, at.path);
            match &mut sink {
                Sink::Json(records) => records.put(&json!({
                    "path": json::path(&whole),
                    "allocated": usage.allocated,
                    "apparent": usage.apparent,
                    "files": usage.files,
                }))?,
                Sink::Text(out) => {
                    let amount = if bytes { usage.apparent } else { usage.allocated.div_ceil(1024) };
                    writeln!(out, "{amount}\t{}", escape(&whole))?;
                }
            }
            Ok(())
        })?;
    }
    sink.finish()?;
    out.flush()?;
    Ok(exit_code(&reader))
}

/// Shows extended attributes.
pub(super) fn xattr(context: &Context, arguments: &ArgMatches) -> anyhow::Result<ExitCode> {
    let reader = context.reader();
    let wanted = arguments.get_one("name").map(super::context::path_of).transpose()?;
    let raw = arguments.get_flag("raw");
    let mut out = standard_output();
    let mut sink = Sink::begin(&mut out, context.json, "xattr", "files")?;
    for (index, path) in paths(arguments)?.iter().enumerate() {
        let found = reader.lookup(path, Last::Keep)?;
        let xattrs = Xattrs::read(&reader, &found.inode);
        let shown: Vec<Xattr> =
            xattrs.shown().into_iter().filter(|xattr| wanted.as_ref().is_none_or(|name| *name == xattr.name)).collect();
        if let Some(name) = wanted.as_ref().filter(|_| shown.is_empty()) {
            bail!("{}: has no attribute {}", escape(path), escape(name));
        }
        match &mut sink {
            Sink::Json(records) => {
                let list =
                    shown.iter().map(|xattr| json!({ "name": escape(&xattr.name), "value": escape(&xattr.value) }));
                records.put(&json!({
                    "path": json::path(path),
                    "attributes": list.collect::<Vec<_>>(),
                    "access_acl": xattrs.access.as_ref().map(|acl| acl.to_text()),
                    "default_acl": xattrs.default.as_ref().map(|acl| acl.to_text()),
                }))?;
            }
            Sink::Text(out) if raw => {
                for xattr in &shown {
                    out.write_all(&xattr.value)?;
                }
            }
            Sink::Text(out) => {
                writeln!(out, "{}{}:", if index == 0 { "" } else { "\n" }, escape(path))?;
                for xattr in &shown {
                    let acl = match &xattr.name[..] {
                        b"system.posix_acl_access" => xattrs.access.as_ref(),
                        b"system.posix_acl_default" => xattrs.default.as_ref(),
                        _ => None,
                    };
                    let value = acl.map_or_else(|| escape(&xattr.value), |acl| acl.to_text());
                    writeln!(out, "{}={value}", escape(&xattr.name))?;
                }
            }
        }
    }
    sink.finish()?;
    out.flush()?;
    Ok(exit_code(&reader))
}

/// Shows where the blocks of files lie.
pub(super) fn map(context: &Context, arguments: &ArgMatches) -> anyhow::Result<ExitCode> {
    let reader = context.reader();
    let kind = if arguments.get_flag("attributes") { ForkKind::Attr } else { ForkKind::Data };
    let mut out = standard_output();
    let mut sink = Sink::begin(&mut out, context.json, "map", "extents")?;
    for (index, path) in paths(arguments)?.iter().enumerate() {
        let found = reader.lookup(path, Last::Keep)?;
        let (mapped, map) = Map::open(&reader, &found.inode, kind)?;
        if let Sink::Text(out) = &mut sink {
            let what = match mapped {
                Mapped::Extents => "",
                Mapped::Inline(bytes) => &format!(" {bytes} bytes in the inode"),
                Mapped::Nothing => " nothing",
            };
            writeln!(out, "{}{}:{what}", if index == 0 { "" } else { "\n" }, escape(path))?;
        }
        for mapping in map.into_iter().flatten() {
            match (mapping, &mut sink) {
                (Err(error), _) => reader.report(&error),
                (Ok(mapping), Sink::Json(records)) => records.put(&mapping_json(path, &mapping))?,
                (Ok(mapping), Sink::Text(out)) => writeln!(out, "{}", mapping_words(reader.geometry(), &mapping))?,
            }
        }
    }
    sink.finish()?;
    out.flush()?;
    Ok(exit_code(&reader))
}

fn mapping_words(geometry: &Geometry, mapping: &Mapping) -> String {
    let (first, last) = (mapping.offset, mapping.offset + mapping.len - 1);
    let place = match mapping.address {
        None => return format!("  {first}..{last}: hole"),
        Some(Address::Data(fsb, agno, agbno)) => {
            let daddr = geometry.fsb_daddr(fsb).map_or(0, |daddr| daddr.0);
            format!("block {fsb} ({agno}/{agbno}, daddr {daddr})")
        }
        Some(Address::Realtime(rtb, None)) => format!("realtime block {rtb}"),
        Some(Address::Realtime(rtb, Some((rgno, rgbno)))) => format!("realtime block {rtb} ({rgno}/{rgbno})"),
    };
    let state = if mapping.unwritten { ", unwritten" } else { "" };
    format!("  {first}..{last}: {place}, {} blocks{state}", mapping.len)
}

fn mapping_json(path: &[u8], mapping: &Mapping) -> Value {
    let (device, block, group, group_block) = match mapping.address {
        None => (None, None, None, None),
        Some(Address::Data(fsb, agno, agbno)) => (Some("data"), Some(fsb.0), Some(agno.0), Some(agbno.0)),
        Some(Address::Realtime(rtb, parts)) => {
            (Some("realtime"), Some(rtb.0), parts.map(|parts| parts.0.0), parts.map(|parts| parts.1.0))
        }
    };
    json!({
        "path": json::path(path),
        "offset": mapping.offset,
        "blocks": mapping.len,
        "device": device,
        "block": block,
        "group": group,
        "group_block": group_block,
        "unwritten": mapping.unwritten,
    })
}

/// Says who owns blocks.
pub(super) fn owner(context: &Context, arguments: &ArgMatches) -> anyhow::Result<ExitCode> {
    let reader = context.reader();
    let mut out = standard_output();
    let mut sink = Sink::begin(&mut out, context.json, "owner", "owners")?;
    for text in arguments.get_many::<String>("blocks").into_iter().flatten() {
        let block = BlockAddress::parse(reader.geometry(), text);
        let block = block.with_context(|| format!("{text}: the filesystem has no such block"))?;
        let owners = owners(&reader, block, arguments.get_flag("walk"))?;
        let inodes: Vec<Ino> = owners.iter().filter_map(inode_of).collect();
        let named = if inodes.is_empty() { Vec::new() } else { paths_of(&reader, &inodes) };
        if owners.is_empty() {
            sink_owner(&mut sink, text, None, &named)?;
        }
        for owner in &owners {
            sink_owner(&mut sink, text, Some(owner), &named)?;
        }
    }
    sink.finish()?;
    out.flush()?;
    Ok(exit_code(&reader))
}

fn inode_of(owner: &BlockOwner) -> Option<Ino> {
    if let BlockOwner::File(file) = owner { Some(file.ino) } else { None }
}

fn sink_owner(sink: &mut Sink<'_>, block: &str, owner: Option<&BlockOwner>, named: &[Named]) -> anyhow::Result<()> {
    let paths: Vec<&[u8]> = (owner.and_then(inode_of))
        .and_then(|ino| named.iter().find(|named| named.ino == ino))
        .map(|named| named.paths.iter().map(Vec::as_slice).collect())
        .unwrap_or_default();
    match sink {
        Sink::Text(out) => {
            write!(out, "{block}: {}", owner.map_or("nobody claims it".to_owned(), owner_words))?;
            for path in paths {
                write!(out, " {}", escape(path))?;
            }
            writeln!(out)?;
        }
        Sink::Json(records) => {
            let file = owner.and_then(|owner| if let BlockOwner::File(file) = owner { Some(*file) } else { None });
            records.put(&json!({
                "block": block,
                "owner": owner.map(owner_name),
                "btree": owner.and_then(|owner| if let BlockOwner::Btree(kind) = owner { Some(kind.name()) } else { None }),
                "inode": file.map(|file| file.ino.0),
                "fork": file.map(|file| if file.is_attribute { "attributes" } else { "data" }),
                "fork_btree": file.map(|file| file.is_btree),
                "offset": file.filter(|file| !file.is_btree).map(|file| file.offset),
                "unwritten": file.map(|file| file.unwritten),
                "paths": paths.iter().map(|path| json::path(path)).collect::<Vec<_>>(),
            }))?;
        }
    }
    Ok(())
}

/// What an owner is called in JSON.
fn owner_name(owner: &BlockOwner) -> &'static str {
    match owner {
        BlockOwner::Free => "free",
        BlockOwner::FreeList => "free list",
        BlockOwner::Headers => "group headers",
        BlockOwner::Journal => "journal",
        BlockOwner::Btree(_) => "btree",
        BlockOwner::Inodes(_) => "inodes",
        BlockOwner::CopyOnWrite => "copy on write",
        BlockOwner::RealtimeSuperblock => "realtime superblock",
        BlockOwner::File(_) => "file",
        BlockOwner::Other(_) => "other",
    }
}

fn owner_words(owner: &BlockOwner) -> String {
    match owner {
        BlockOwner::Free => "free".to_owned(),
        BlockOwner::FreeList => "free list of the group".to_owned(),
        BlockOwner::Headers => "headers of the group".to_owned(),
        BlockOwner::Btree(kind) => format!("btree {}", kind.name()),
        BlockOwner::Inodes(first) => format!("inodes, in the chunk of {first}"),
        BlockOwner::CopyOnWrite => "held for copying on write".to_owned(),
        BlockOwner::File(file) => {
            let fork = if file.is_attribute { "attributes" } else { "data" };
            let unwritten = if file.unwritten { ", unwritten" } else { "" };
            match file.is_btree {
                true => format!("inode {}, btree of its {fork}", file.ino),
                false => format!("inode {}, {fork}, block {}{unwritten}", file.ino, file.offset),
            }
        }
        BlockOwner::Other(number) => format!("the reverse mapping btree names owner {number:#x}"),
        BlockOwner::Journal | BlockOwner::RealtimeSuperblock => owner_name(owner).to_owned(),
    }
}
