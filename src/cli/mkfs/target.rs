//! `--target`: the features of a layout against what a kernel and a GRUB can use.

use crate::error::{Error, Result};
use crate::mkfs::devices::Devices;
use crate::mkfs::layout::{Layout, RealtimePlace};
use crate::mkfs::suboptions::Key;
use crate::mkfs::{Defaults, Environment, Options, Resolved, resolve};
use crate::readers::{Feature, Target, Wish};

/// A page of the machines that the table of readers is about, in bytes.
const PAGE: u32 = 4096;

/// Resolves options to a layout that the target can use: features that it lacks are off, unless they were asked for.
///
/// # Errors
/// `Usage`, when an option asks for something that the target lacks, and for all that [`resolve()`] refuses.
pub(super) fn resolve_for(
    target: Option<Target>,
    options: &Options,
    devices: &Devices,
    environment: &Environment,
) -> Result<Resolved> {
    let mut defaults = Defaults::default();
    loop {
        let resolved = resolve(options, devices, &defaults, environment)?;
        let Some(target) = target else { return Ok(resolved) };
        let off = target.features_to_turn_off(&wishes(&resolved.layout, options))?;
        if off.is_empty() {
            return Ok(resolved);
        }
        let before = defaults;
        off.iter().for_each(|feature| turn_off(&mut defaults, *feature));
        if defaults == before {
            let names: Vec<_> = off.into_iter().map(Feature::name).collect();
            return Err(Error::Usage(format!(
                "--target {target}: no filesystem can be made without {}",
                names.join(", ")
            )));
        }
    }
}

fn turn_off(defaults: &mut Defaults, feature: Feature) {
    match feature {
        Feature::Finobt => defaults.finobt = false,
        Feature::SparseInodes => defaults.sparse_inodes = false,
        Feature::Rmapbt | Feature::RtRmapbt | Feature::RtRmapbtUnfit => defaults.rmapbt = false,
        Feature::Reflink | Feature::RtReflink | Feature::RtReflinkUnfit => defaults.reflink = false,
        Feature::Inobtcount => defaults.inobtcount = false,
        Feature::Bigtime => defaults.bigtime = false,
        Feature::Nrext64 => defaults.nrext64 = false,
        Feature::Exchange => defaults.exchange = false,
        Feature::Parent => defaults.parent = false,
        _ => {}
    }
}

/// The features of a layout, each with the option that asked for it.
fn wishes(layout: &Layout, options: &Options) -> Vec<Wish> {
    use Feature as F;
    let on = layout.features;
    let (crc, realtime) = (on.crc, layout.realtime.place != RealtimePlace::None);
    let large = layout.block.bytes() > PAGE;
    let groups = realtime && on.metadir;
    let shares = layout.realtime.extent_blocks == 1 && groups && !on.zoned;
    let quota = [
        Key::MetadataUquota,
        Key::MetadataGquota,
        Key::MetadataPquota,
        Key::MetadataUqnoenforce,
        Key::MetadataGqnoenforce,
        Key::MetadataPqnoenforce,
    ];
    let metadir_for: Vec<Key> = [Key::MetadataMetadir, Key::RealtimeZoned].into_iter().chain(quota).collect();
    let volume: &[Key] = &[Key::RealtimeRtdev, Key::RealtimeName, Key::RealtimeStart, Key::RealtimeZoned];
    let rows: [(bool, Feature, &[Key]); 24] = [
        (!crc, F::V4, &[Key::MetadataCrc]),
        (crc, F::V5, &[Key::MetadataCrc]),
        (on.ftype, F::Ftype, &[Key::NamingFtype]),
        (on.finobt, F::Finobt, &[Key::MetadataFinobt]),
        (on.sparse_inodes, F::SparseInodes, &[Key::InodeSparse]),
        (on.rmapbt, F::Rmapbt, &[Key::MetadataRmapbt]),
        (on.reflink, F::Reflink, &[Key::MetadataReflink]),
        (on.inobtcount, F::Inobtcount, &[Key::MetadataInobtcount]),
        (on.bigtime, F::Bigtime, &[Key::MetadataBigtime]),
        (on.nrext64, F::Nrext64, &[Key::InodeNrext64]),
        (on.exchange, F::Exchange, &[Key::InodeExchange]),
        (on.parent, F::Parent, &[Key::NamingParent]),
        (on.metadir, F::Metadir, &metadir_for),
        (on.ascii_ci && crc, F::AsciiCi, &[Key::NamingVersion]),
        (on.ascii_ci && !crc, F::AsciiCiV4, &[Key::NamingVersion]),
        (large && crc, F::LargeBlocks, &[Key::BlockSize]),
        (large && !crc, F::LargeBlocksV4, &[Key::BlockSize]),
        (realtime && !groups, F::Realtime, volume),
        (groups, F::Rtgroups, volume),
        (on.reflink && shares, F::RtReflink, &[Key::MetadataReflink]),
        (on.reflink && realtime && !shares, F::RtReflinkUnfit, &[Key::MetadataReflink]),
        (on.rmapbt && groups, F::RtRmapbt, &[Key::MetadataRmapbt]),
        (on.rmapbt && realtime && !groups, F::RtRmapbtUnfit, &[Key::MetadataRmapbt]),
        (on.zoned, F::Zoned, &[Key::RealtimeZoned]),
    ];
    let present = rows.into_iter().filter(|(on, ..)| *on);
    present
        .map(|(_, feature, keys)| Wish { feature, option: keys.iter().find_map(|key| asked(options, *key)) })
        .collect()
}

/// The option as the user wrote it, if it was given at all.
fn asked(options: &Options, key: Key) -> Option<String> {
    let name = key.suboption().written();
    if key == Key::NamingVersion {
        return options.ascii_ci.then(|| format!("{name}=ci"));
    }
    match (options.number(key), options.text(key)) {
        (Some(number), _) => Some(format!("{name}={number}")),
        (None, Some(text)) => Some(format!("{name}={text}")),
        (None, None) => None,
    }
}
