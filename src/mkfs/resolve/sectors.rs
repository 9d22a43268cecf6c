//! Sizes of blocks, sectors, inodes and directory blocks.

use super::stages::{Context, usage};
use crate::error::Result;
use crate::mkfs::devices::DeviceKind;
use crate::mkfs::layout::PowerSize;
use crate::mkfs::numbers::Units;
use crate::mkfs::suboptions::Key;

const DEFAULT_BLOCK: u32 = 4096;
const LARGEST_BLOCK: u32 = 65536;
const SMALLEST_CRC_BLOCK: u32 = 1024;
const LARGEST_SECTOR: u32 = 32768;
const SMALLEST_SECTOR: u32 = 512;
const SMALLEST_DIRECTORY_BLOCK: u32 = 4096;

/// The sizes that everything else is counted in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub block: PowerSize,
    pub sector: PowerSize,
    pub log_sector: PowerSize,
    pub inode: PowerSize,
    pub directory_block: PowerSize,
}

impl Sizes {
    /// What the suffixes mean from here on.
    pub fn units(&self) -> Units {
        Units { block: Some(self.block.bytes()), sector: Some(self.sector.bytes()) }
    }

    /// Whole blocks in `bytes`.
    pub fn blocks_in(&self, bytes: u64) -> u64 {
        bytes >> self.block.log()
    }

    /// Blocks of so many units of 512 bytes, as long as these are whole blocks.
    pub fn blocks_in_basic(&self, basic: i32) -> i32 {
        basic >> (self.block.log() - 9)
    }

    /// Adds the sizes that depend on the features.
    pub fn complete(&mut self, context: &Context, crc: bool) -> Result<()> {
        self.directory_block = directory_block(context, self)?;
        self.inode = inode(context, self.block, crc)?;
        Ok(())
    }
}

/// Chooses block and sector sizes.
pub(super) fn resolve(context: &mut Context) -> Result<Sizes> {
    let block = power(context.options.number(Key::BlockSize), DEFAULT_BLOCK)?;
    let crc = context.options.switch(Key::MetadataCrc).unwrap_or(true);
    if crc && block.bytes() < SMALLEST_CRC_BLOCK {
        return Err(usage(format!(
            "-b size={block}: too small with -m crc=1; allowed: powers of two from {SMALLEST_CRC_BLOCK} to {LARGEST_BLOCK}"
        )));
    }
    check_kinds(context)?;
    let sector = sector(context, block)?;
    let log_sector = log_sector(context, block, sector)?;
    Ok(Sizes { block, sector, log_sector, inode: PowerSize::from_log(9), directory_block: block })
}

fn power(asked: Option<i64>, default: u32) -> Result<PowerSize> {
    let bytes = asked.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(default);
    PowerSize::from_bytes(bytes).ok_or_else(|| usage(format!("{bytes} is not a power of two")))
}

/// Files need a size where they are to be made, and what is to be a file must not be a device.
fn check_kinds(context: &Context) -> Result<()> {
    let devices = context.devices;
    let checked = [
        (Some(&devices.data), Key::DataFile, Key::DataSize, Key::DataName),
        (devices.log.as_ref(), Key::LogFile, Key::LogSize, Key::LogLogdev),
        (devices.realtime.as_ref(), Key::RealtimeFile, Key::RealtimeSize, Key::RealtimeRtdev),
    ];
    for (facts, file, size, name) in checked {
        let Some(facts) = facts else { continue };
        let is_file = context.options.switch(file) == Some(true);
        let sized = context.options.text(size).is_some();
        if is_file && !sized {
            return Err(usage(format!("{} needs {} too", file.suboption().written(), size.suboption().written())));
        }
        match facts.kind {
            DeviceKind::Missing if !(is_file || name == Key::DataName && sized) => {
                let hint = if name == Key::DataName { "; with -d size= or --size it is made as a file" } else { "" };
                return Err(usage(format!(
                    "{}={}: no such file or device{hint}",
                    name.suboption().written(),
                    facts.name
                )));
            }
            DeviceKind::Block if is_file => {
                return Err(usage(format!("{}: {} is a block device", file.suboption().written(), facts.name)));
            }
            _ => {}
        }
    }
    if !context.options.log_internal && devices.log.is_none() {
        return Err(usage("-l internal=0 needs a device: -l logdev"));
    }
    Ok(())
}

/// The sector: as asked, else the physical sector of the devices, unless blocks are smaller.
fn sector(context: &mut Context, block: PowerSize) -> Result<PowerSize> {
    let data = context.devices.data.sector();
    let bytes = match context.options.sector {
        Some(bytes) => bytes,
        None => {
            let usable = |sector: crate::device::SectorSize| {
                if sector.physical > LARGEST_SECTOR { sector.logical } else { sector.physical }
            };
            let mut bytes = usable(data);
            if let Some(realtime) = &context.devices.realtime {
                bytes = bytes.max(usable(realtime.sector()));
            }
            if block.bytes() < bytes && block.bytes() >= data.logical {
                context.note(format!(
                    "-b size={block}: less than the physical sector of {bytes} bytes; using the logical sector of {} bytes",
                    data.logical
                ));
                bytes = data.logical;
            }
            bytes
        }
    };
    let largest = block.bytes().min(LARGEST_SECTOR);
    let sector = PowerSize::from_bytes(bytes)
        .filter(|sector| (SMALLEST_SECTOR..=largest).contains(&sector.bytes()))
        .filter(|sector| sector.bytes() >= data.logical);
    if let Some(sector) = sector {
        fits_every_device(context, sector)?;
    }
    sector.ok_or_else(|| {
        usage(format!(
            "-s size={bytes}: allowed with blocks of {block} bytes on a device with sectors of {} bytes: powers of two from {} to {largest}",
            data.logical,
            data.logical.max(SMALLEST_SECTOR),
        ))
    })
}

/// A block device takes no access smaller than its sectors, unless it goes through the page cache, which it does as
/// soon as one of the others is a file.
fn fits_every_device(context: &Context, sector: PowerSize) -> Result<()> {
    let devices = context.devices;
    let others = [(devices.log.as_ref(), "-l logdev"), (devices.realtime.as_ref(), "-r rtdev")];
    let present = others.into_iter().filter_map(|(facts, option)| facts.map(|facts| (facts, option)));
    let cached =
        devices.data.kind != DeviceKind::Block || present.clone().any(|(facts, _)| facts.kind != DeviceKind::Block);
    for (facts, option) in present {
        let smallest = facts.sector().logical;
        if !cached && sector.bytes() < smallest {
            return Err(usage(format!(
                "{option}={}: sectors of {smallest} bytes, larger than the sector of {sector} bytes; allowed: -s size={smallest} or more",
                facts.name
            )));
        }
    }
    Ok(())
}

/// The sector of the log: that of the data section, unless the log is external.
fn log_sector(context: &Context, block: PowerSize, sector: PowerSize) -> Result<PowerSize> {
    let external = context.devices.log.as_ref().filter(|_| !context.options.log_internal);
    let bytes = match (context.options.log_sector, external) {
        (Some(bytes), None) if bytes != sector.bytes() => {
            return Err(usage(format!(
                "-l sectsize={bytes}: an internal log has the sector of the data section; allowed: {sector}"
            )));
        }
        (Some(bytes), _) => bytes,
        (None, None) => sector.bytes(),
        (None, Some(log)) => log.sector().logical,
    };
    let largest = block.bytes().min(LARGEST_SECTOR);
    PowerSize::from_bytes(bytes).filter(|size| (SMALLEST_SECTOR..=largest).contains(&size.bytes())).ok_or_else(|| {
        usage(format!("-l sectsize={bytes}: allowed with blocks of {block} bytes: powers of two from {SMALLEST_SECTOR} to {largest}"))
    })
}

fn directory_block(context: &Context, sizes: &Sizes) -> Result<PowerSize> {
    let smallest = sizes.block.bytes().max(SMALLEST_DIRECTORY_BLOCK);
    let Some(bytes) = context.options.size(Key::NamingSize, sizes.units())? else {
        return power(None, smallest);
    };
    u32::try_from(bytes).ok().and_then(PowerSize::from_bytes).filter(|size| *size >= sizes.block).ok_or_else(|| {
        usage(format!(
            "-n size={bytes}: allowed with blocks of {} bytes: powers of two from {smallest} to {LARGEST_BLOCK}",
            sizes.block
        ))
    })
}

/// The inode: 512 bytes in version 5, 256 in version 4, and at least two in a block.
fn inode(context: &Context, block: PowerSize, crc: bool) -> Result<PowerSize> {
    let default = if crc { 512 } else { 256 };
    let perblock = context.options.number(Key::InodePerblock);
    let asked = match perblock {
        Some(count) => Some(i64::from(block.bytes()) / count),
        None => context.options.number(Key::InodeSize),
    };
    let bytes = asked.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(default);
    let largest = (block.bytes() / 2).min(2048);
    PowerSize::from_bytes(bytes).filter(|size| (default..=largest).contains(&size.bytes())).ok_or_else(|| {
        let option = if perblock.is_some() { "-i perblock (-i size):" } else { "-i size:" };
        usage(format!(
            "{option} {bytes} bytes; allowed with blocks of {block} bytes and -m crc={}: powers of two from {default} to {largest}",
            u8::from(crc)
        ))
    })
}
