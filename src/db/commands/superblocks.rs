//! What the superblocks say of the whole filesystem: info, version, label, uuid, makecfg (xfsprogs `db/info.c`,
//! `db/sb.c`).

use std::fs::File;
use std::io::Write;

use serde_json::{Value, json};
use uuid::Uuid;

use super::number;
use super::options::Options;
use crate::buffer::read_superblock;
use crate::db::answer::{Answer, Bytes, Nothing, Text, bytes_value, until_zero};
use crate::db::command::Command;
use crate::db::session::Session;
use crate::error::{Check, Error, Place, Result, Rule};
use crate::forms::{Attributes, Inode};
use crate::geometry::{AgNumber, Features, Geometry, GeometrySummary, MkfsConfig, QuotaWish};
use crate::ondisk::attr_short::AttrNamespace;
use crate::ondisk::dinode::{flags, flags2};
use crate::ondisk::feature_bits::qflags;
use crate::ondisk::{RawDinode, RawSuperblock};
use std::ops::ControlFlow;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "info",
        alias: Some("i"),
        min: 0,
        max: Some(0),
        moves: false,
        usage: "",
        brief: "show the geometry as xfs_info does",
        help: "Shows sizes and features of the filesystem in the words of xfs_info and mkfs.xfs.",
        run: info,
    },
    Command {
        name: "version",
        alias: None,
        min: 0,
        max: Some(2),
        moves: false,
        usage: "[VERSIONNUM FEATURES2]",
        brief: "show the features of the filesystem",
        help: "Shows the version and features words of the superblock, and the names of the features in use. With two numbers, shows what these words would mean in their place. Nothing is changed.",
        run: version,
    },
    Command {
        name: "label",
        alias: None,
        min: 0,
        max: Some(1),
        moves: false,
        usage: "",
        brief: "show the label",
        help: "Shows the label, and which superblocks have another one.",
        run: label,
    },
    Command {
        name: "uuid",
        alias: None,
        min: 0,
        max: Some(1),
        moves: false,
        usage: "",
        brief: "show the UUID",
        help: "Shows the UUID, and the first superblock that has another one.",
        run: uuid,
    },
    Command {
        name: "makecfg",
        alias: None,
        min: 0,
        max: Some(1),
        moves: false,
        usage: "[FILE]",
        brief: "show the features as a configuration file of mkfs",
        help: "Shows the configuration file with which mkfs makes a filesystem of the same features; with a file name, writes it there. Sizes and places are left out, unless they are unusual.",
        run: makecfg,
    },
];

fn info(session: &mut Session, _words: &[String]) -> Result<Box<dyn Answer>> {
    let names = &session.names;
    let summary = GeometrySummary {
        device: &names.data,
        log_device: names.log.as_deref(),
        realtime_device: names.realtime.as_deref(),
        ..GeometrySummary::of(session.geometry(), &session.image.superblock().sb)
    };
    let value = summary_value(&summary);
    Ok(Text::boxed(summary.to_string(), value))
}

fn summary_value(s: &GeometrySummary<'_>) -> Value {
    json!({
        "device": s.device,
        "inode_bytes": s.inode_bytes, "agcount": s.agcount, "agblocks": s.agblocks, "sector_bytes": s.sector_bytes,
        "projid32": s.projid32, "crc": s.crc, "finobt": s.finobt, "sparse": s.sparse, "rmapbt": s.rmapbt,
        "reflink": s.reflink, "bigtime": s.bigtime, "inobtcount": s.inobtcount, "nrext64": s.nrext64,
        "exchange": s.exchange, "metadir": s.metadir,
        "block_bytes": s.block_bytes, "blocks": s.blocks, "imax_pct": s.imax_pct,
        "stripe_unit": s.stripe_unit, "stripe_width": s.stripe_width,
        "naming": {
            "block_bytes": s.directory_block_bytes, "ascii_ci": s.ascii_ci, "ftype": s.ftype, "parent": s.parent,
        },
        "log": {
            "internal": s.log_internal, "device": s.log_device, "blocks": s.log_blocks, "version": s.log_version,
            "sector_bytes": s.log_sector_bytes, "stripe_unit": s.log_stripe_unit, "lazy_count": s.lazy_count,
        },
        "realtime": {
            "device": s.realtime_device, "extent_bytes": s.realtime_extent_bytes, "blocks": s.realtime_blocks,
            "extents": s.realtime_extents, "groups": s.realtime_groups, "group_extents": s.realtime_group_extents,
            "zoned": s.zoned, "start": s.realtime_start, "reserved": s.realtime_reserved,
        },
    })
}

fn refuse_change(what: &str) -> Error {
    Error::Unsupported(format!("the {what} cannot be changed: the image is only read"))
}

fn version(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let mut sb = session.image.superblock().sb;
    let [versionnum, features2] = match words {
        [] => [u32::from(sb.versionnum.get()), session.geometry().features.features2],
        [versionnum, features2] => {
            let parse = |text: &str| {
                let number = number::parse(text, "feature word")?;
                u32::try_from(number).map_err(|_| Error::Usage(format!("{text} has more than 32 bits")))
            };
            [parse(versionnum)?, parse(features2)?]
        }
        _ => return Err(refuse_change("version")),
    };
    let narrow = u16::try_from(versionnum).map_err(|_| Error::Usage(format!("{versionnum} has more than 16 bits")))?;
    sb.versionnum = narrow.into();
    sb.features2 = features2.into();
    sb.bad_features2 = features2.into();
    let features = Features::from_superblock(&sb);
    let list = features.version_string();
    let names: Vec<&str> = list.split(',').collect();
    let value = json!({ "versionnum": versionnum, "features2": features2, "features": names });
    Ok(Text::boxed(format!("versionnum [{versionnum:#x}+{features2:#x}] = {list}\n"), value))
}

/// The superblock of group `agno` as it stands on the device.
fn superblock_of(session: &Session, agno: AgNumber) -> Result<RawSuperblock> {
    let place = Place { agno: Some(agno.0), ..Place::default() };
    let geometry = session.geometry();
    let offset = geometry.ag_header_daddr(agno, 0).and_then(|daddr| geometry.daddr_offset(daddr));
    let offset = offset.ok_or_else(|| Error::Usage(format!("there is no group {agno}")))?;
    let read = read_superblock(session.image.data(), offset, agno)?;
    if read.has_magic() { Ok(read.sb) } else { Err(Error::corrupt(Check::new("sb", "magicnum", Rule::Magic), place)) }
}

fn label(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    if !words.is_empty() {
        return Err(refuse_change("label"));
    }
    let first = superblock_of(session, AgNumber(0))?.fname;
    let (mut last, mut text, mut different) = (first, Vec::new(), Vec::new());
    for agno in session.geometry().ag_numbers().skip(1) {
        last = superblock_of(session, agno)?.fname;
        if last != first {
            text.extend_from_slice(format!("warning: AG {agno} label differs\n").as_bytes());
            different.push(agno.0);
        }
    }
    text.extend_from_slice(b"label = \"");
    text.extend_from_slice(until_zero(&last));
    text.extend_from_slice(b"\"\n");
    Ok(Bytes::boxed(text, json!({ "label": bytes_value(until_zero(&first)), "different_in_groups": different })))
}

fn uuid(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    if !words.is_empty() {
        return Err(refuse_change("UUID"));
    }
    let first = superblock_of(session, AgNumber(0))?.uuid;
    let (mut text, mut different) = (String::new(), None);
    for agno in session.geometry().ag_numbers().skip(1) {
        if superblock_of(session, agno)?.uuid != first {
            text = format!("warning: UUID in AG {agno} differs to the primary SB\n");
            different = Some(agno.0);
            break;
        }
    }
    let internal = session.geometry().log.start.is_some();
    if internal && session.names.log.is_some() {
        text += "warning - external log specified for FS with an internal log\n";
    } else if !internal && session.names.log.is_none() {
        text += "warning - no external log specified for FS with an external log\n";
    }
    let uuid = Uuid::from_bytes(first).to_string();
    text += &format!("UUID = {uuid}\n");
    Ok(Text::boxed(text, json!({ "uuid": uuid, "different_in_group": different })))
}

/// The words that the property `autofsck` can be.
const AUTOFSCK: [&str; 4] = ["none", "check", "optimize", "repair"];
/// The attribute of the root directory that holds it.
const AUTOFSCK_NAME: &[u8] = b"xfs:autofsck";

fn makecfg(session: &mut Session, words: &[String]) -> Result<Box<dyn Answer>> {
    let options = Options::parse(words, "")?;
    let geometry = session.geometry();
    let root = Inode::read(session.image.cache(), geometry.rootino)?;
    let autofsck = autofsck(session, &root)?;
    let text = config_of(geometry, root.raw(), autofsck).to_string();
    match options.operands.first() {
        None => {
            let lines: Vec<&str> = text.lines().collect();
            let value = json!(lines);
            Ok(Text::boxed(text, value))
        }
        Some(path) => {
            let written = File::create(path).and_then(|mut file| file.write_all(text.as_bytes()));
            written.map_err(|error| Error::Usage(format!("{path}: {error}")))?;
            Ok(Box::new(Nothing))
        }
    }
}

fn autofsck(session: &Session, root: &Inode) -> Result<Option<&'static str>> {
    let Some(attributes) = Attributes::open(session.image.cache(), root)? else { return Ok(None) };
    let mut found = None;
    attributes.for_each(&mut |attribute| {
        match attribute {
            Ok(attribute) => {
                if attribute.namespace == Some(AttrNamespace::Root) && attribute.name == AUTOFSCK_NAME {
                    found = Some(attributes.value(&attribute.value).map(|value| value.into_owned()));
                    return ControlFlow::Break(());
                }
            }
            Err(error) => session.observer.warn(&error),
        }
        ControlFlow::Continue(())
    });
    let value = found.transpose()?;
    Ok(value.and_then(|value| AUTOFSCK.into_iter().find(|word| word.as_bytes() == until_zero(&value))))
}

fn config_of<'a>(geometry: &Geometry, root: &RawDinode, autofsck: Option<&'a str>) -> MkfsConfig<'a> {
    let features = &geometry.features;
    let (bits, bits2) = (root.core.flags.get(), root.flags2_or_zero());
    let rt_inherit = bits & flags::RTINHERIT != 0;
    let whole = |blocks: u32| !rt_inherit || blocks % geometry.realtime.extent_blocks == 0;
    let hint = |on: bool, blocks: u32| Some(blocks).filter(|blocks| on && whole(*blocks));
    let quota = |counted: u16, enforced: u16| QuotaWish {
        counted: geometry.quota.flags & counted != 0,
        enforced: geometry.quota.flags & enforced != 0,
    };
    MkfsConfig {
        block_bytes: geometry.blocksize,
        blocks: geometry.dblocks,
        crc: features.has_crc(),
        finobt: features.has_finobt(),
        rmapbt: features.has_rmapbt(),
        reflink: features.has_reflink(),
        inobtcount: features.has_inobtcount(),
        bigtime: features.has_bigtime(),
        metadir: features.has_metadir(),
        autofsck,
        quotas: [
            quota(qflags::UQUOTA_ACCT, qflags::UQUOTA_ENFD),
            quota(qflags::GQUOTA_ACCT, qflags::GQUOTA_ENFD),
            quota(qflags::PQUOTA_ACCT, qflags::PQUOTA_ENFD),
        ],
        rt_inherit,
        project: Some(root.core.projid()).filter(|_| bits & flags::PROJINHERIT != 0),
        extent_size: hint(bits & flags::EXTSZINHERIT != 0, root.core.extsize.get()),
        cow_extent_size: hint(bits2 & flags2::COWEXTSIZE != 0, root.cowextsize.get()),
        dax: bits2 & flags2::DAX != 0,
        sparse: features.has_sparseinodes(),
        nrext64: features.has_nrext64(),
        exchange: features.has_exchange(),
        projid32: features.has_projid32(),
        imax_pct: geometry.imax_pct,
        inode_bytes: geometry.inodes.size,
        lazy_count: features.has_lazysbcount(),
        parent: features.has_parent(),
        ftype: features.has_ftype(),
        ascii_ci: features.has_asciici(),
        directory_block_bytes: geometry.directory.blksize,
        realtime_extent_bytes: u64::from(geometry.realtime.extent_blocks) * u64::from(geometry.blocksize),
    }
}
