//! Which features the filesystem gets.

use super::sectors::Sizes;
use super::stages::{Context, usage};
use crate::error::Result;
use crate::mkfs::layout::{Autofsck, Features, RootDefaults};
use crate::mkfs::suboptions::Key;

/// Below this size of a realtime extent, in bytes, nothing can be shared.
const SMALLEST_EXTENT: u32 = 4096;

/// The features that a filesystem gets when nothing is said about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// `-m finobt`
    pub finobt: bool,
    /// `-i sparse`
    pub sparse_inodes: bool,
    /// `-m rmapbt`
    pub rmapbt: bool,
    /// `-m reflink`
    pub reflink: bool,
    /// `-m inobtcount`
    pub inobtcount: bool,
    /// `-m bigtime`
    pub bigtime: bool,
    /// `-i nrext64`
    pub nrext64: bool,
    /// `-i exchange`
    pub exchange: bool,
    /// `-n parent`
    pub parent: bool,
}

impl Default for Defaults {
    /// Those of mkfs.xfs 7.2.
    fn default() -> Self {
        Defaults {
            finobt: true,
            sparse_inodes: true,
            rmapbt: true,
            reflink: true,
            inobtcount: true,
            bigtime: true,
            nrext64: true,
            exchange: true,
            parent: true,
        }
    }
}

/// The features, and what hangs together with them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub features: Features,
    pub log_version: u8,
    pub autofsck: Option<Autofsck>,
    pub quota_flags: u16,
    pub root: RootDefaults,
}

/// Takes the options for features, and settles what follows from them.
pub(super) fn resolve(context: &mut Context, sizes: &Sizes, defaults: &Defaults) -> Result<Choice> {
    let mut choice = asked_for(context, defaults);
    hardware_zones(context, &mut choice.features)?;
    log_version(context, sizes, &mut choice)?;
    if choice.features.ascii_ci {
        context.note("ascii-ci filesystems are deprecated and will not be supported by future versions.");
    }
    if choice.features.crc {
        version_5(context, &mut choice)?;
    } else {
        context.note("V4 filesystems are deprecated and will not be supported by future versions.");
        version_4(context, &mut choice)?;
    }
    let features = &mut choice.features;
    if !features.finobt {
        switch_off(context, Key::MetadataInobtcount, &mut features.inobtcount, "-m finobt=1")?;
    }
    zoned(context, &mut choice)?;
    let inside = context.devices.data.topology.zones.is_some() || context.options.text(Key::RealtimeStart).is_some();
    if inside || context.devices.realtime.is_some() {
        with_realtime(context, sizes, &mut choice.features)?;
    }
    what_belongs_together(context, &mut choice)?;
    let features = choice.features;
    // a filesystem with every back reference can be repaired online
    if choice.autofsck.is_none() && features.rmapbt && features.parent {
        choice.autofsck = Some(Autofsck::Repair);
    }
    Ok(choice)
}

fn asked_for(context: &Context, defaults: &Defaults) -> Choice {
    let options = context.options;
    let switch = |key, default| options.switch(key).unwrap_or(default);
    let number = |key| options.number(key).and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
    let attr = options.number(Key::InodeAttr).unwrap_or(2);
    let features = Features {
        crc: switch(Key::MetadataCrc, true),
        finobt: switch(Key::MetadataFinobt, defaults.finobt),
        sparse_inodes: switch(Key::InodeSparse, defaults.sparse_inodes),
        rmapbt: switch(Key::MetadataRmapbt, defaults.rmapbt),
        reflink: switch(Key::MetadataReflink, defaults.reflink),
        inobtcount: switch(Key::MetadataInobtcount, defaults.inobtcount),
        bigtime: switch(Key::MetadataBigtime, defaults.bigtime),
        nrext64: switch(Key::InodeNrext64, defaults.nrext64),
        metadir: switch(Key::MetadataMetadir, false),
        exchange: switch(Key::InodeExchange, defaults.exchange),
        parent: switch(Key::NamingParent, defaults.parent),
        ftype: options.ftype,
        attr2: attr == 2,
        attributes: attr == 1,
        lazy_counters: switch(Key::LogLazyCount, true),
        projid32: switch(Key::InodeProjid32bit, true),
        inode_alignment: switch(Key::InodeAlign, true),
        ascii_ci: options.ascii_ci,
        zoned: switch(Key::RealtimeZoned, false),
        zone_gaps: false,
    };
    let root = RootDefaults {
        rt_inherit: switch(Key::DataRtinherit, false),
        project: options.number(Key::DataProjinherit).map(|_| number(Key::DataProjinherit)),
        extent_size: number(Key::DataExtszinherit),
        cow_extent_size: number(Key::DataCowextsize),
        dax: switch(Key::DataDaxinherit, false),
    };
    let log_version = if options.number(Key::LogVersion) == Some(1) { 1 } else { 2 };
    Choice { features, log_version, autofsck: options.autofsck, quota_flags: options.quota_flags, root }
}

/// A device that is written in zones leaves no choice.
fn hardware_zones(context: &Context, features: &mut Features) -> Result<()> {
    let devices = context.devices;
    if let Some(zones) = devices.data.topology.zones {
        if zones.conventional == 0 {
            return Err(usage(format!("{}: a data device needs conventional zones at its start", devices.data.name)));
        }
        if context.options.text(Key::RealtimeStart).is_some() {
            return Err(usage(
                "-r start is not possible on a device with zones: the realtime section begins with them",
            ));
        }
    }
    if let Some(log) = devices.log.as_ref().filter(|log| log.topology.zones.is_some()) {
        return Err(usage(format!("-l logdev: {} is written in zones, which a log cannot be", log.name)));
    }
    if let Some(zones) = devices.realtime_zones() {
        features.zoned = true;
        features.zone_gaps = zones.gaps;
    }
    Ok(())
}

/// A stripe unit needs version 2 of the log, and so do sectors of more than 512 bytes.
fn log_version(context: &mut Context, sizes: &Sizes, choice: &mut Choice) -> Result<()> {
    if choice.log_version == 2 {
        return Ok(());
    }
    if sizes.log_sector.bytes() > 512 {
        return Err(usage(format!(
            "-l version=1 with log sectors of {} bytes; allowed: 512 bytes, or -l version=2",
            sizes.log_sector
        )));
    }
    if context.options.given(Key::LogSu) || context.options.given(Key::LogSunit) {
        context.note("log stripe unit specified, using v2 logs");
        choice.log_version = 2;
    }
    Ok(())
}

/// What version 5 always has, and what online checking would like to have.
fn version_5(context: &mut Context, choice: &mut Choice) -> Result<()> {
    let features = choice.features;
    let always = [
        (features.inode_alignment, "-i align=0", "-i align=1"),
        (features.lazy_counters, "-l lazy-count=0", "-l lazy-count=1"),
        (choice.log_version == 2, "-l version=1", "-l version=2"),
        (features.attr2, "-i attr", "-i attr=2"),
        (features.projid32, "-i projid32bit=0", "-i projid32bit=1"),
        (features.ftype, "-n ftype=0", "-n ftype=1"),
    ];
    for (on, asked, allowed) in always {
        if !on {
            return Err(usage(format!("{asked} is not possible with -m crc=1; allowed: {allowed}")));
        }
    }
    let Some(autofsck) = choice.autofsck.filter(|autofsck| *autofsck >= Autofsck::Check) else { return Ok(()) };
    let features = &mut choice.features;
    let helpful = [
        (Key::MetadataRmapbt, &mut features.rmapbt, "reverse mapping"),
        (Key::NamingParent, &mut features.parent, "parent pointers"),
    ];
    for (key, on, name) in helpful {
        if !*on && context.options.given(key) {
            context.note(format!("-m autofsck={} is less effective without {name}", autofsck.word()));
        } else {
            *on = true;
        }
    }
    Ok(())
}

/// What version 4 cannot have is switched off, unless it was asked for.
fn version_4(context: &Context, choice: &mut Choice) -> Result<()> {
    let features = &mut choice.features;
    let impossible = [
        (Key::MetadataFinobt, &mut features.finobt),
        (Key::InodeSparse, &mut features.sparse_inodes),
        (Key::MetadataRmapbt, &mut features.rmapbt),
        (Key::MetadataReflink, &mut features.reflink),
        (Key::MetadataInobtcount, &mut features.inobtcount),
        (Key::MetadataBigtime, &mut features.bigtime),
        (Key::InodeNrext64, &mut features.nrext64),
        (Key::InodeExchange, &mut features.exchange),
        (Key::NamingParent, &mut features.parent),
        (Key::MetadataMetadir, &mut features.metadir),
    ];
    for (key, on) in impossible {
        switch_off(context, key, on, "-m crc=1")?;
    }
    let mut autofsck = choice.autofsck.is_some();
    switch_off(context, Key::MetadataAutofsck, &mut autofsck, "-m crc=1")?;
    choice.autofsck = None;
    if choice.quota_flags != 0 {
        return Err(usage("-m uquota, gquota, pquota and the like need -m crc=1"));
    }
    Ok(())
}

/// Switches a feature off that lacks what it needs; an error if it was asked for.
fn switch_off(context: &Context, key: Key, on: &mut bool, needs: &str) -> Result<()> {
    if *on && context.options.given(key) {
        return Err(usage(format!(
            "{} needs {needs}; allowed: {}=0",
            key.suboption().written(),
            key.suboption().written()
        )));
    }
    *on = false;
    Ok(())
}

/// A zoned section needs the metadata directory, and allows neither large extents nor sharing.
fn zoned(context: &Context, choice: &mut Choice) -> Result<()> {
    let options = context.options;
    let features = &mut choice.features;
    if !features.zoned {
        for key in [Key::RealtimeStart, Key::RealtimeReserved] {
            if options.text(key).is_some() || options.number(key).is_some_and(|number| number != 0) {
                return Err(usage(format!("{} needs -r zoned=1", key.suboption().written())));
            }
        }
        return Ok(());
    }
    if !features.crc {
        return Err(usage("-r zoned=1 needs -m crc=1"));
    }
    if !features.metadir && options.given(Key::MetadataMetadir) {
        return Err(usage("-r zoned=1 needs the metadata directory; allowed: -m metadir=1"));
    }
    features.metadir = true;
    if options.given(Key::RealtimeExtsize) {
        return Err(usage("-r extsize is not possible with -r zoned=1"));
    }
    switch_off(context, Key::MetadataReflink, &mut features.reflink, "-r zoned=0")?;
    if !options.given(Key::DataRtinherit) {
        choice.root.rt_inherit = true;
    }
    Ok(())
}

/// Sharing and reverse mappings of realtime blocks need realtime groups, and so the metadata directory.
fn with_realtime(context: &Context, sizes: &Sizes, features: &mut Features) -> Result<()> {
    let options = context.options;
    if options.text(Key::RealtimeExtsize).is_some() && !features.zoned {
        switch_off(
            context,
            Key::MetadataReflink,
            &mut features.reflink,
            "a realtime extent of one block, so no -r extsize",
        )?;
    }
    if sizes.block.bytes() < SMALLEST_EXTENT {
        switch_off(
            context,
            Key::MetadataReflink,
            &mut features.reflink,
            "blocks of 4096 bytes or more with a realtime device",
        )?;
    }
    for (key, on) in [(Key::MetadataReflink, &mut features.reflink), (Key::MetadataRmapbt, &mut features.rmapbt)] {
        if features.metadir || !*on {
            continue;
        }
        if !options.given(key) {
            *on = false;
        } else if options.given(Key::MetadataMetadir) {
            return Err(usage(format!("{} with a realtime device needs -m metadir=1", key.suboption().written())));
        } else {
            features.metadir = true;
        }
    }
    Ok(())
}

/// Features that are switched on because others need them.
fn what_belongs_together(context: &Context, choice: &mut Choice) -> Result<()> {
    let options = context.options;
    let features = &mut choice.features;
    if choice.root.cow_extent_size != 0 && !features.reflink {
        return Err(usage("-d cowextsize needs -m reflink=1"));
    }
    if features.parent && !options.given(Key::InodeExchange) {
        features.exchange = true;
    }
    // without the metadata directory a kernel forgets the flags at the first mount without quota options
    if choice.quota_flags != 0 && !features.metadir {
        if options.given(Key::MetadataMetadir) {
            return Err(usage(
                "-m uquota, gquota, pquota and the like need the metadata directory; allowed: -m metadir=1",
            ));
        }
        features.metadir = true;
    }
    if features.metadir && !features.exchange {
        if options.given(Key::InodeExchange) {
            return Err(usage("-m metadir=1 needs the exchange of file ranges; allowed: -i exchange=1"));
        }
        features.exchange = true;
    }
    if options.given(Key::InodeMaxAtomicWrite) && !features.reflink {
        return Err(usage("-i max_atomic_write needs -m reflink=1"));
    }
    Ok(())
}
