//! `--minimize`: the files go to a temporary file first, and the size of the image follows from them.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};

use super::fill::Fill;
use super::request::Request;
use super::target::resolve_for;
use crate::device::{Device, MemoryDevice};
use crate::error::{DeviceRole, Error, Result};
use crate::mkfs::devices::{DeviceFacts, DeviceKind, Devices};
use crate::mkfs::layout::Layout;
use crate::mkfs::suboptions::Key;
use crate::mkfs::{self, Environment};
use crate::populate::{Candidate, Candidates, Content, Headroom, Regime, Spool, smallest};

/// Files that are on their way into an image.
pub(super) struct Spooled {
    /// What they are.
    pub content: Content,
    /// Their bytes.
    pub spool: Spool,
    /// Bytes of the smallest image that holds them.
    pub bytes: u64,
}

/// Sizes that are tried to find out what a block is: whatever the options say about groups, it fits one of them.
const PROBES: [u32; 6] = [30, 34, 28, 38, 42, 46];

/// Reads the sources and finds the size of the smallest image that holds them.
pub(super) fn measure(
    request: &Request,
    fill: &Fill,
    headroom: Headroom,
    devices: &Devices,
    environment: &Environment,
) -> anyhow::Result<Spooled> {
    let data = &devices.data;
    if data.kind == DeviceKind::Block {
        bail!("--minimize: {} is a block device, whose size is its own", data.name);
    }
    if request.source.is_part() {
        bail!("--minimize cannot be given with --offset or --partition");
    }
    if request.size.is_some() || request.options.given(Key::DataSize) {
        bail!("--minimize finds the size, so that no other can be given");
    }
    let sizes = Sizes { request, devices, environment, block: 1 };
    let probes = PROBES.map(|shift| sizes.layout(1 << shift));
    let first = probes.iter().position(Result::is_ok).unwrap_or(0);
    let layout = probes.into_iter().nth(first).context("no size was tried")??;
    let mut sizes = Sizes { block: u64::from(layout.block.bytes()), ..sizes };

    let path = Path::new(&data.name);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut spool = Spool::new(folder, layout.block.bytes())?;
    let content = fill.open(&layout)?.read(devices, &mut spool)?;
    let blocks = smallest(&content, &spool, headroom, &mut sizes)?;
    Ok(Spooled { content, spool, bytes: blocks * sizes.block })
}

/// Filesystems of any size with the options of a request.
struct Sizes<'r> {
    request: &'r Request,
    devices: &'r Devices,
    environment: &'r Environment,
    /// Bytes of a block.
    block: u64,
}

impl Sizes<'_> {
    /// The layout for an image of so many bytes.
    fn layout(&self, bytes: u64) -> Result<Layout> {
        let data = DeviceFacts { kind: DeviceKind::File, bytes, ..self.devices.data.clone() };
        let devices = Devices { data, ..self.devices.clone() };
        let resolved = resolve_for(self.request.target, &self.request.options, &devices, self.environment)?;
        Ok(resolved.layout)
    }

    fn bytes(&self, blocks: u64) -> Result<u64> {
        blocks.checked_mul(self.block).ok_or_else(|| Error::Usage("no image is large enough for the files".into()))
    }
}

impl Candidates for Sizes<'_> {
    fn regime(&mut self, blocks: u64) -> Result<Option<Regime>> {
        let layout = self.layout(self.bytes(blocks)?);
        Ok(layout.ok().map(|layout| Regime { groups: layout.data.agcount, log_blocks: layout.log.blocks }))
    }

    fn make(&mut self, blocks: u64) -> Result<Candidate> {
        let bytes = self.bytes(blocks)?;
        let layout = self.layout(bytes)?;
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(bytes));
        let other =
            |facts: &Option<DeviceFacts>, role| facts.as_ref().map(|facts| MemoryDevice::new(facts.bytes).on(role));
        let log = other(&self.devices.log, DeviceRole::Log);
        let realtime = other(&self.devices.realtime, DeviceRole::Realtime);
        let (log, realtime) =
            (log.as_ref().map(|log| log as &dyn Device), realtime.as_ref().map(|rt| rt as &dyn Device));
        let superblock = mkfs::prepare(&layout, &*device, log, realtime, &mut || {})?.superblock();
        Ok(Candidate { superblock, device })
    }
}
