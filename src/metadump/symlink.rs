//! Targets of symbolic links.

use super::dump::Dumper;
use super::object::{Fork, Piece, is_metadata};
use super::order::Sink;
use super::stale;
use crate::error::{Check, Place, Result, Rule};
use crate::geometry::Daddr;
use crate::geometry::limits::BASIC_BLOCK;
use crate::ondisk::remote::{RawDsymlinkHdr, SYMLINK_MAGIC, SYMLINK_MAXLEN};
use crate::ondisk::{OnDisk, crc};

/// A target that lies in its inode.
pub(super) fn clear_short(dumper: &Dumper<'_>, fork: &Fork<'_>, place: &Place, data: &mut [u8]) {
    let size = usize::try_from(fork.raw.core.size.get()).unwrap_or(usize::MAX);
    if size > data.len() {
        dumper.warn_check(Check::new("dinode", "size", Rule::Range), place, size.to_string());
    }
    let (target, rest) = data.split_at_mut(size.min(data.len()));
    if dumper.options.obscure && !is_metadata(dumper, fork.raw) {
        dumper.names.target(fork.ino.0, target);
    }
    if dumper.options.zero_stale {
        stale::clear(rest);
    }
}

/// A target in blocks of its own: in version 5, each run of them has a header.
pub(super) fn copy(
    dumper: &Dumper<'_>,
    sink: &mut Sink<'_>,
    fork: &Fork<'_>,
    place: &Place,
    pieces: &[Piece],
) -> Result<()> {
    let geometry = dumper.geometry;
    let block = geometry.blocksize as usize;
    let most = (SYMLINK_MAXLEN as usize).div_ceil(block) * 2 + 1;
    let mut left = usize::try_from(fork.raw.core.size.get()).unwrap_or(usize::MAX).min(SYMLINK_MAXLEN as usize);
    let mut buffers: Vec<(Daddr, Vec<u8>)> = Vec::new();
    if pieces.len() > most {
        let check = Check::new("dinode", "nextents", Rule::Range);
        dumper.warn_check(check, place, format!("{} extents of a symbolic link", pieces.len()));
    }
    for piece in pieces.iter().take(most) {
        let blocks = (piece.blocks as usize).min(most);
        if blocks < piece.blocks as usize {
            let check = Check::new("bmbt_rec", "blockcount", Rule::Range);
            dumper.warn_check(check, place, format!("{} blocks of a symbolic link", piece.blocks));
        }
        let mut bytes = vec![0; blocks * block];
        if dumper.read(piece.daddr, &mut bytes)? {
            buffers.push((piece.daddr, bytes));
        }
    }
    // the target is replaced as a whole, since a part of its path may cross from one run to the next
    let header = if geometry.features.has_crc() { RawDsymlinkHdr::SIZE } else { 0 };
    let mut target = Vec::new();
    let mut ranges = Vec::new();
    for (_, bytes) in &buffers {
        let stated = RawDsymlinkHdr::prefix(bytes).filter(|(head, _)| header == 0 || head.magic.get() == SYMLINK_MAGIC);
        let stated = match stated {
            Some((head, _)) if header > 0 => head.bytes.get() as usize,
            _ => bytes.len(),
        };
        let len = left.min(stated).min(bytes.len() - header.min(bytes.len()));
        target.extend_from_slice(&bytes[header..header + len]);
        ranges.push(header..header + len);
        left -= len;
    }
    if dumper.options.obscure && !is_metadata(dumper, fork.raw) {
        dumper.names.target(fork.ino.0, &mut target);
    }
    let mut rest = &target[..];
    for ((daddr, bytes), range) in buffers.iter_mut().zip(ranges) {
        let sound = header > 0 && crc::matches(bytes, RawDsymlinkHdr::CRC_OFFSET);
        let (part, after) = rest.split_at(range.len());
        rest = after;
        let end = range.end;
        bytes[range].copy_from_slice(part);
        // behind the target may be what was longer once
        if dumper.options.zero_stale || dumper.options.obscure {
            stale::clear(&mut bytes[end..]);
        }
        if sound {
            crc::stamp(bytes, RawDsymlinkHdr::CRC_OFFSET);
        }
        sink.append(daddr.0, bytes)?;
    }
    debug_assert!(block % BASIC_BLOCK as usize == 0);
    Ok(())
}
