//! What is done to an image: to structures, aimed at the numbers that readers go by, with checksums made right; or to any
//! bytes, as they are.

use std::sync::Arc;

use xfskit::device::{ByteRange, Device, OverlayDevice, PartDevice};
use xfskit::image::ImageDevices;
use xfskit::journal::{CrcState, LogArea, Piece, Records};
use xfskit::ondisk::crc;
use xfskit::ondisk::log_record::RawLogRecHeader;

use super::Random;
use super::bases::Base;
use super::structures::{Form, Site, Unit, integers};

/// An image after its mutation.
pub struct Mutant {
    pub devices: ImageDevices,
    /// Structures that were changed.
    pub hit: Vec<Site>,
    /// The primary superblock is one of them, or may be.
    pub headless: bool,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Numbers of structures, and the checksums of these.
    Aimed,
    /// Any bytes.
    Blind,
    /// Words of the journal, and the checksums of its records.
    Journal,
}

/// An image made from `base`.
pub fn mutate(base: &Base, manner: Manner, random: &mut Random) -> Mutant {
    let data = Arc::new(OverlayDevice::new(Arc::clone(&base.data)));
    let realtime = base.realtime.as_ref().map(|device| Arc::new(OverlayDevice::new(Arc::clone(device))));
    let log = base.log.as_ref().map(|device| Arc::new(OverlayDevice::new(Arc::clone(device))));
    let mut hit = Vec::new();
    let mut len = data.len();
    let on = |site: &Site| -> &dyn Device {
        match &realtime {
            Some(realtime) if site.realtime => realtime,
            _ => &data,
        }
    };
    match manner {
        Manner::Aimed => {
            for _ in 0..=random.below(4) {
                let site = base.sites.pick(random);
                aim(base, &site, on(&site), random);
                hit.push(site);
            }
        }
        Manner::Blind => {
            for _ in 0..=random.below(6) {
                let site = base.sites.pick(random);
                spoil(&site, on(&site), random);
                hit.push(site);
            }
            if random.one_in(12) {
                len = random.under(len);
            }
        }
        Manner::Journal => {
            let device: &dyn Device = log.as_ref().map_or(&data as &dyn Device, |log| log as &dyn Device);
            if let Ok(area) = LogArea::new(device, &base.geometry) {
                for _ in 0..=random.below(8) {
                    change_journal(base, device, random);
                }
                if random.one_in(2) {
                    reseal(base, device, &area);
                }
            }
        }
    }
    let headless = hit.iter().any(|site| site.offset < u64::from(base.geometry.sectsize) && !site.realtime);
    let whole = len == data.len();
    let data: Arc<dyn Device> = data;
    let data = if whole {
        data
    } else {
        Arc::new(PartDevice::new(data, ByteRange { start: 0, len }).expect("a part of the device"))
    };
    let devices = ImageDevices {
        data,
        log: log.map(|device| device as Arc<dyn Device>),
        realtime: realtime.map(|device| device as Arc<dyn Device>),
    };
    Mutant { devices, hit, headless: headless || !whole }
}

/// A number as malice chooses it; `old` stands there now.
fn number(base: &Base, site: &Site, old: u64, width: usize, random: &mut Random) -> u64 {
    let geometry = &base.geometry;
    let most = if width == 8 { u64::MAX } else { (1 << (8 * width)) - 1 };
    let own = site.offset >> geometry.blocklog;
    let within = own % u64::from(geometry.agblocks.max(1));
    let value = match random.below(16) {
        0 => 0,
        1 => most,
        2 => most - random.under(3),
        3 => most >> 1,
        4 => 1 << random.below(8 * width),
        5 => (1_u64 << random.below(8 * width)).wrapping_sub(1 + random.under(2)),
        6 => old.wrapping_add(1),
        7 => old.wrapping_sub(1),
        8 => old ^ 1 << random.below(8 * width),
        9 => random.under(300),
        10 => random.next(),
        // its own block: a cycle
        11 => *random.pick(&[own, within, site.offset >> 9]),
        12 => *random.pick(&[u64::from(geometry.agblocks), u64::from(geometry.agcount), geometry.dblocks]),
        13 => geometry.rootino.0 + random.under(64),
        14 => random.under(u64::from(geometry.blocksize)),
        _ => random.under(u64::from(geometry.agblocks)),
    };
    value & most
}

fn read(bytes: &[u8], at: usize, width: usize) -> u64 {
    bytes[at..at + width].iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

fn write(bytes: &mut [u8], at: usize, width: usize, value: u64) {
    bytes[at..at + width].copy_from_slice(&value.to_be_bytes()[8 - width..]);
}

/// Changes a structure at places that mean something, and makes its checksum right.
fn aim(base: &Base, site: &Site, device: &dyn Device, random: &mut Random) {
    let mut bytes = vec![0; site.len];
    device.read_at(site.offset, &mut bytes).expect("memory can be read");
    let Form { fields, header, .. } = *site.form;
    let mut places = Vec::new();
    integers(fields, 0, &mut places);
    places.retain(|(at, width)| at + width <= bytes.len() && Some(*at) != site.form.crc);
    for _ in 0..=random.below(3) {
        match random.below(8) {
            // a field of the header; its magic number seldom
            0..=2 if !places.is_empty() => {
                let (at, width) = *random.pick(&places);
                if at != site.form.magic_at() || random.one_in(10) {
                    let value = number(base, site, read(&bytes, at, width), width, random);
                    write(&mut bytes, at, width, value);
                }
            }
            // a word of a record: mostly of one of the first
            0..=5 => {
                let room = bytes.len() - header;
                let reach = if random.below(4) > 0 { room.min(300) } else { room };
                let width = [1, 2, 4, 8][random.below(4)];
                if reach >= width {
                    let from_end = random.one_in(6);
                    let at = random.below(reach - width + 1) / width * width;
                    let at = if from_end { bytes.len() - width - at } else { header + at };
                    let value = number(base, site, read(&bytes, at, width), width, random);
                    write(&mut bytes, at, width, value);
                }
            }
            // records of this structure, or of one like it, at another place
            6 => {
                let len = (1 << random.below(6)).min(bytes.len() - header);
                let from = header + random.below(bytes.len() - header - len + 1);
                let to = header + random.below(bytes.len() - header - len + 1);
                bytes.copy_within(from..from + len, to);
            }
            _ => {
                let other = base.sites.like(site, random);
                if other.realtime == site.realtime && other.len == site.len {
                    let mut others = vec![0; site.len];
                    device.read_at(other.offset, &mut others).expect("memory can be read");
                    let start = if random.one_in(2) { 0 } else { header };
                    bytes[start..].copy_from_slice(&others[start..]);
                }
            }
        }
    }
    if let Some(at) = site.form.crc.filter(|_| base.geometry.features.has_crc()) {
        crc::stamp(&mut bytes, at);
    }
    device.write_at(site.offset, &bytes).expect("memory can be written");
}

/// Changes any bytes of a structure, and leaves its checksum.
fn spoil(site: &Site, device: &dyn Device, random: &mut Random) {
    let mut bytes = vec![0; site.len];
    device.read_at(site.offset, &mut bytes).expect("memory can be read");
    let len = (1 << random.below(10)).min(bytes.len());
    let at = random.below(bytes.len() - len + 1);
    let part = &mut bytes[at..at + len];
    match random.below(4) {
        0 => part.fill(0),
        1 => part.fill(0xff),
        2 => part.iter_mut().for_each(|byte| *byte = random.next().to_le_bytes()[0]),
        _ => part[0] ^= 1 << random.below(8),
    }
    // what stands at the beginning of another block
    if site.form.unit == Unit::Block && random.one_in(20) {
        let len = bytes.len().min(512);
        bytes.rotate_left(len);
    }
    device.write_at(site.offset, &bytes).expect("memory can be written");
}

/// Changes a word, a byte or a block of the journal.
fn change_journal(base: &Base, device: &dyn Device, random: &mut Random) {
    const BLOCK: u64 = 512;
    let start = base.log_start();
    // mostly where there is something to replay
    let used = base.dirty_blocks.clone();
    let total = base.geometry.log_basic_blocks();
    let block = |random: &mut Random| match used.is_empty() || random.one_in(8) {
        true => random.under(total),
        false => (used.start + random.under(used.end - used.start)) % total,
    };
    let mut at = start + block(random) * BLOCK + random.under(BLOCK - 8);
    let bytes = match random.below(6) {
        0 => vec![random.next().to_le_bytes()[0]],
        1 => random.next().to_be_bytes()[..4].to_vec(),
        2 => u32::MAX.to_be_bytes().to_vec(),
        3 => {
            at = start + block(random) * BLOCK;
            let mut other = vec![0; 512];
            device.read_at(start + block(random) * BLOCK, &mut other).expect("memory can be read");
            other
        }
        4 => vec![0; 8],
        _ => u32::try_from(random.under(300)).expect("below 300").to_le_bytes().to_vec(),
    };
    device.write_at(at, &bytes).expect("memory can be written");
}

/// Makes the checksums of all records right that still look like records.
fn reseal(base: &Base, device: &dyn Device, area: &LogArea<'_>) {
    let offset = std::mem::offset_of!(RawLogRecHeader, crc) as u64;
    for piece in Records::new(area, 0, area.blocks()) {
        if let Piece::Record(record) = piece
            && let CrcState::Wrong { computed } = record.crc
        {
            let at = base.log_start() + u64::from(record.block) * 512 + offset;
            device.write_at(at, &computed.to_le_bytes()).expect("memory can be written");
        }
    }
}
