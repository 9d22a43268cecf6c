//! Inodes: what of their bytes goes into the dump, and what hangs from their forks.

use super::dump::Dumper;
use super::object::{self, Fork, Object};
use super::order::Sink;
use super::{attribute, directory, stale, symlink};
use crate::error::{Check, Place, Result, Rule};
use crate::forms::FileType;
use crate::geometry::Ino;
use crate::ondisk::dinode::format;
use crate::ondisk::{OnDisk, RawDinode, crc};

/// Copies what hangs from an inode, and takes out of its bytes what shall not be in the dump. The bytes themselves are
/// the caller's to copy.
pub(super) fn copy_inode(
    dumper: &Dumper<'_>,
    sink: &mut Sink<'_>,
    ino: Ino,
    is_free: bool,
    bytes: &mut [u8],
) -> Result<()> {
    let Some((raw, _)) = RawDinode::prefix(bytes) else { return Ok(()) };
    let raw = *raw;
    let has_crc = dumper.geometry.features.has_crc();
    let sound = !dumper.is_plain() && has_crc && crc::matches(bytes, RawDinode::CRC_OFFSET);
    copy_forks(dumper, sink, ino, is_free, &raw, bytes)?;
    if sound {
        crc::stamp(bytes, RawDinode::CRC_OFFSET);
    }
    Ok(())
}

fn copy_forks(
    dumper: &Dumper<'_>,
    sink: &mut Sink<'_>,
    ino: Ino,
    is_free: bool,
    raw: &RawDinode,
    bytes: &mut [u8],
) -> Result<()> {
    let core = &raw.core;
    let literal = bytes.get_mut(core.literal_offset()..).unwrap_or(&mut []);
    if is_free {
        if dumper.options.zero_stale {
            stale::clear(literal);
        }
        return Ok(());
    }
    let place = Place { inode: Some(ino.0), ..Place::default() };
    let split = core.fork_offset();
    if split > literal.len() {
        dumper.warn_check(Check::new("dinode", "forkoff", Rule::Range), &place, core.forkoff.to_string());
        if dumper.options.obscure {
            stale::clear(literal);
        }
        return Ok(());
    }
    let split = if split == 0 { literal.len() } else { split };
    let (data, attr) = literal.split_at_mut(split);
    let of_fork = |format, extents, is_attr| Fork { ino, raw, format, extents, is_attr };
    let data_fork = of_fork(core.format, raw.data_extents(), false);
    match FileType::from_mode(core.mode.get()) {
        Some(FileType::Directory | FileType::Symlink | FileType::Regular) => {
            copy_data_fork(dumper, sink, &data_fork, &place, data)?;
        }
        Some(_) => clear_device(dumper, &data_fork, &place, data),
        // what cannot be told must not be told
        None if dumper.options.obscure && core.format == format::LOCAL => stale::clear(data),
        None => {}
    }
    if !attr.is_empty() {
        let fork = of_fork(core.aformat.to_be_bytes()[0], u64::from(raw.attr_extents()), true);
        match fork.format {
            format::LOCAL if !dumper.is_plain() => attribute::clear_short(dumper, &fork, &place, attr),
            format::EXTENTS | format::BTREE => object::copy_fork(dumper, sink, &fork, Object::Attributes, attr)?,
            _ => {}
        }
    }
    Ok(())
}

fn copy_data_fork(
    dumper: &Dumper<'_>,
    sink: &mut Sink<'_>,
    fork: &Fork<'_>,
    place: &Place,
    data: &mut [u8],
) -> Result<()> {
    if fork.format != format::LOCAL {
        return object::copy_fork(dumper, sink, fork, object::object_of(dumper, fork), data);
    }
    if dumper.is_plain() {
        return Ok(());
    }
    match FileType::from_mode(fork.raw.core.mode.get()) {
        Some(FileType::Directory) => directory::clear_short(dumper, fork, place, data),
        Some(FileType::Symlink) => symlink::clear_short(dumper, fork, place, data),
        _ => {
            dumper.warn_check(Check::new("dinode", "format", Rule::Mismatch), place, "contents in the inode");
            if dumper.options.obscure {
                stale::clear(data);
            }
        }
    }
    Ok(())
}

/// Of a device, pipe or socket the fork holds a device number at most.
fn clear_device(dumper: &Dumper<'_>, fork: &Fork<'_>, place: &Place, data: &mut [u8]) {
    if fork.extents != 0 {
        let detail = format!("{}, and the inode is that of a device", fork.extents);
        dumper.warn_check(Check::new("dinode", "nextents", Rule::Mismatch), place, detail);
        return;
    }
    if dumper.options.zero_stale
        && let Some(rest) = data.get_mut(size_of::<u32>()..)
    {
        stale::clear(rest);
    }
}
