//! The devices: looked at before anything is decided, opened for writing when everything is.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};

use super::request::Request;
use crate::cli::source::{Source, SourceArgs};
use crate::device::{Access, ByteRange, Contents, Device, FileDevice, FileKind, OpenFile, Signature};
use crate::error::DeviceRole;
use crate::mkfs::devices::{DeviceFacts, DeviceKind, Devices};
use crate::mkfs::layout::{Layout, PowerSize};
use crate::mkfs::suboptions::Key;

/// Looks at every device that the request names.
pub(super) fn look(request: &Request) -> anyhow::Result<Devices> {
    let options = &request.options;
    let Some(name) = options.data_name.as_deref() else {
        bail!("no device or file to format was named");
    };
    let mut data = facts(name, request.source, DeviceRole::Data, request.force)?;
    if let Some(size) = request.size {
        match data.kind {
            DeviceKind::Block => bail!("--size: {name} is a block device, whose size is its own"),
            DeviceKind::Missing | DeviceKind::File if request.source.is_part() => {
                bail!("--size cannot be given with --offset or --partition")
            }
            DeviceKind::Missing | DeviceKind::File => {
                data.kind = DeviceKind::File;
                data.bytes = size;
            }
        }
    }
    let other = |name: &Option<String>, role| {
        name.as_deref().map(|name| facts(name, SourceArgs::default(), role, request.force)).transpose()
    };
    let devices = Devices {
        data,
        log: other(&options.log_name, DeviceRole::Log)?,
        realtime: other(&options.realtime_name, DeviceRole::Realtime)?,
    };
    all_different(&devices)?;
    Ok(devices)
}

fn facts(name: &str, part: SourceArgs, role: DeviceRole, force: bool) -> anyhow::Result<DeviceFacts> {
    let path = Path::new(name);
    if !path.exists() && !part.is_part() {
        return Ok(DeviceFacts::file(name, DeviceKind::Missing, 0));
    }
    let source = part.open(path, OpenFile::READ.on(role))?;
    let mut topology = source.file.topology().with_context(|| name.to_string())?;
    if topology.alignment_offset != 0 {
        if !force {
            bail!("{name}: the device is not aligned to its physical sectors; -f uses it anyway");
        }
        if topology.stripe().is_none() {
            (topology.minimum_io, topology.optimal_io) = (0, 0);
        }
        topology.sector_size.physical = topology.sector_size.logical;
    }
    let kind = match source.file.kind() {
        FileKind::Regular => DeviceKind::File,
        FileKind::Block => DeviceKind::Block,
    };
    Ok(DeviceFacts { name: name.to_string(), kind, bytes: source.device.len(), topology })
}

/// Refuses to overwrite what is known, unless that is wished.
pub(super) fn check_contents(request: &Request, devices: &Devices) -> anyhow::Result<()> {
    if request.force {
        return Ok(());
    }
    let options = &request.options;
    let all = [
        (Some(&devices.data), request.source, Key::DataFile),
        (devices.log.as_ref().filter(|_| !options.log_internal), SourceArgs::default(), Key::LogFile),
        (devices.realtime.as_ref(), SourceArgs::default(), Key::RealtimeFile),
    ];
    for (facts, part, file) in all {
        let Some(facts) = facts.filter(|facts| facts.kind != DeviceKind::Missing) else { continue };
        let emptied = options.switch(file) == Some(true) && facts.kind == DeviceKind::File;
        let path = Path::new(&facts.name);
        if emptied || !path.exists() {
            continue;
        }
        let source = part.open(path, OpenFile::READ)?;
        let found = Signature::all_on(&*source.device)
            .with_context(|| format!("cannot tell what {} holds; -f overwrites it anyway", facts.name))?;
        if let Some(signature) = found.first() {
            let kind = match signature.contents {
                Contents::Filesystem => "a filesystem or volume",
                Contents::PartitionTable => "a partition table",
            };
            bail!("{} holds {kind} ({}); -f overwrites it", facts.name, signature.name);
        }
    }
    check_surroundings(request, &devices.data)
}

/// Refuses what would destroy data outside of the part that was asked for, or behind the new end of the file.
fn check_surroundings(request: &Request, facts: &DeviceFacts) -> anyhow::Result<()> {
    if !Path::new(&facts.name).exists() {
        return Ok(());
    }
    let whole = SourceArgs::default().open(Path::new(&facts.name), OpenFile::READ)?;
    if request.source.offset.is_some() {
        let found = Signature::all_on(&*whole.device).unwrap_or_default();
        if let Some(table) = found.iter().find(|found| found.contents == Contents::PartitionTable) {
            bail!(
                "{} has a partition table ({}), and --offset formats all that follows; --partition formats one of its \
                 partitions, -f overwrites them",
                facts.name,
                table.name
            );
        }
    }
    match request.size {
        Some(size) if facts.kind == DeviceKind::File && size < whole.device.len() => {
            bail!("{} is longer than --size, by {} bytes; -f cuts it", facts.name, whole.device.len() - size)
        }
        _ => Ok(()),
    }
}

/// The devices, open for writing.
pub(super) struct Opened {
    data: Source,
    log: Option<Source>,
    realtime: Option<Source>,
}

impl Opened {
    /// Opens every device for writing, which fails while one is in use.
    pub fn new(request: &Request, devices: &Devices) -> anyhow::Result<Self> {
        let open = |facts: &DeviceFacts, part: SourceArgs, role| -> anyhow::Result<Source> {
            let access = if facts.kind == DeviceKind::Block { Access::Write } else { Access::Create };
            part.open(Path::new(&facts.name), OpenFile { access, role })
        };
        let data = open(&devices.data, request.source, DeviceRole::Data)?;
        let log = devices.log.as_ref().filter(|_| !request.options.log_internal);
        let log = log.map(|log| open(log, SourceArgs::default(), DeviceRole::Log)).transpose()?;
        let realtime = devices.realtime.as_ref();
        let realtime = realtime.map(|device| open(device, SourceArgs::default(), DeviceRole::Realtime)).transpose()?;
        Ok(Opened { data, log, realtime })
    }

    /// Gives the image file its length, empties the zones of zoned devices, and discards the contents of other block
    /// devices if that is wished.
    pub fn prepare(&self, request: &Request, devices: &Devices, layout: &Layout) -> crate::error::Result<()> {
        if self.data.file.kind() == FileKind::Regular && !request.source.is_part() {
            set_length(request, &self.data.file, layout.data.device_bytes)?;
        }
        let zoned = |facts: &DeviceFacts| facts.topology.zones.is_some();
        if zoned(&devices.data) {
            self.data.file.reset_zones(ByteRange { start: 0, len: devices.data.bytes })?;
        } else if layout.discard {
            discard(&self.data, layout.data.device_bytes);
        }
        if let (Some(source), Some(facts)) = (&self.realtime, &devices.realtime) {
            if zoned(facts) {
                source.file.reset_zones(ByteRange { start: 0, len: facts.bytes })?;
            } else if layout.discard {
                discard(source, usable(facts.bytes, layout.sector));
            }
        }
        if let (Some(source), true) = (&self.log, layout.discard) {
            discard(source, usable(source.device.len(), layout.log.sector));
        }
        Ok(())
    }

    /// The data device.
    pub fn data(&self) -> &Arc<dyn Device> {
        &self.data.device
    }

    /// The device of an external log.
    pub fn log(&self) -> Option<&dyn Device> {
        self.log.as_ref().map(|source| &*source.device)
    }

    /// The realtime device.
    pub fn realtime(&self) -> Option<&dyn Device> {
        self.realtime.as_ref().map(|source| &*source.device)
    }
}

/// Bytes of a device up to its last whole sector, or its last whole KiB if sectors are smaller.
fn usable(bytes: u64, sector: PowerSize) -> u64 {
    let unit = u64::from(sector.bytes()).max(1024);
    bytes / unit * unit
}

/// Discards what a block device holds. It is a service to the device that the filesystem does not depend on, so that
/// a device which fails to do it is no error.
fn discard(source: &Source, bytes: u64) {
    if source.file.kind() == FileKind::Block {
        let _ = source.device.discard(0, bytes);
    }
}

/// Refuses one file under two names: the sections would overwrite each other.
fn all_different(devices: &Devices) -> anyhow::Result<()> {
    let mut seen: Vec<(FileDevice, &str)> = Vec::new();
    let sections =
        [(Some(&devices.data), "data"), (devices.log.as_ref(), "log"), (devices.realtime.as_ref(), "realtime")];
    for (facts, section) in sections {
        let Some(path) = facts.map(|facts| Path::new(&facts.name)).filter(|path| path.exists()) else { continue };
        let file = FileDevice::open(path, OpenFile::READ)?;
        if let Some((other, first)) = seen.iter().find(|(other, _)| other.is_same_as(&file)) {
            let (one, two) = (path.display(), other.path().display());
            bail!("{one} is named for the {section} section, and is the file of the {first} section ({two}) already");
        }
        seen.push((file, section));
    }
    Ok(())
}

/// The file of `-d file` is emptied, that of `--size` gets this size, and any other grows to what the filesystem needs.
fn set_length(request: &Request, file: &FileDevice, data_bytes: u64) -> crate::error::Result<()> {
    if let Some(size) = request.size {
        return file.set_len(size);
    }
    if request.options.switch(Key::DataFile) == Some(true) {
        file.set_len(0)?;
    }
    if file.len() < data_bytes { file.set_len(data_bytes) } else { Ok(()) }
}
