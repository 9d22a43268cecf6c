//! Headers and btrees of an allocation group.

use super::dump::Dumper;
use super::order::{Added, Sink};
use super::stale;
use super::tree::TreeWalk;
use crate::error::{Check, Place, Result, Rule};
use crate::geometry::{AgBlock, AgNumber, BtreeKind, Daddr};
use crate::ondisk::metadump::MetaDevice;
use crate::ondisk::{
    InodeChunk, NULLAGBLOCK, OnDisk, RawAgf, RawAgfl, RawAgi, RawInobtRecord, RawRtSuperblock, RawSparseInobtRecord,
    RawSuperblock, crc,
};

/// Copies the headers and btrees of group `agno`; gives the chunks of its inode btree.
pub(super) fn copy_group(dumper: &Dumper<'_>, sink: &mut Sink<'_>, agno: AgNumber) -> Result<Vec<InodeChunk>> {
    if let Some((daddr, mut sector)) = header(dumper, agno, 0)? {
        clear_superblock(dumper, &mut sector);
        sink.append(daddr.0, &sector)?;
    }
    let agf = header(dumper, agno, RawAgf::SECTOR)?;
    if let Some((daddr, sector)) = &agf {
        sink.append(daddr.0, sector)?;
    }
    let agi = header(dumper, agno, RawAgi::SECTOR)?;
    if let Some((daddr, sector)) = &agi {
        sink.append(daddr.0, sector)?;
    }
    let agf = agf.as_ref().and_then(|(_, sector)| RawAgf::prefix(sector)).map(|(agf, _)| agf);
    let agi = agi.as_ref().and_then(|(_, sector)| RawAgi::prefix(sector)).map(|(agi, _)| agi);
    if let Some((daddr, mut sector)) = header(dumper, agno, RawAgfl::SECTOR)? {
        if let Some(agf) = agf.filter(|_| dumper.options.zero_stale) {
            clear_free_list(dumper, agf, &mut sector);
        }
        sink.append(daddr.0, &sector)?;
    }
    if let Some(agf) = agf {
        copy_space_trees(dumper, sink, agno, agf)?;
    }
    match agi {
        Some(agi) => copy_inode_trees(dumper, sink, agno, agi),
        None => Ok(Vec::new()),
    }
}

/// A header of a group as it stands; `None` when it cannot be read.
fn header(dumper: &Dumper<'_>, agno: AgNumber, sector: u32) -> Result<Option<(Daddr, Vec<u8>)>> {
    let Some(daddr) = dumper.geometry.ag_header_daddr(agno, sector) else { return Ok(None) };
    let mut bytes = vec![0; dumper.geometry.sectsize as usize];
    Ok(dumper.read(daddr, &mut bytes)?.then_some((daddr, bytes)))
}

/// Takes the label out.
fn clear_superblock(dumper: &Dumper<'_>, sector: &mut [u8]) {
    if !dumper.options.obscure {
        return;
    }
    let sound = dumper.geometry.features.has_crc() && crc::matches(sector, RawSuperblock::CRC_OFFSET);
    if let Some((sb, _)) = RawSuperblock::prefix_mut(sector) {
        obscure_label(&mut sb.fname);
    }
    if sound {
        crc::stamp(sector, RawSuperblock::CRC_OFFSET);
    }
}

fn obscure_label(label: &mut [u8]) {
    let len = label.iter().position(|&byte| byte == 0).unwrap_or(label.len());
    label[..len].fill(b'L');
    label[len..].fill(0);
}

/// Blocks that left the free list are still named behind its end.
fn clear_free_list(dumper: &Dumper<'_>, agf: &RawAgf, sector: &mut [u8]) {
    let v5 = dumper.geometry.features.has_crc();
    let sound = v5 && crc::matches(sector, RawAgfl::CRC_OFFSET);
    let (first, last) = (agf.flfirst.get() as usize, agf.fllast.get() as usize);
    let entries = RawAgfl::entries_mut(sector, v5);
    let capacity = entries.len().min(dumper.geometry.agfl_capacity as usize);
    if first >= capacity || last >= capacity {
        return;
    }
    let mut at = (last + 1) % capacity;
    while at != first {
        entries[at] = NULLAGBLOCK.into();
        at = (at + 1) % capacity;
    }
    entries[capacity..].fill(NULLAGBLOCK.into());
    if sound {
        crc::stamp(sector, RawAgfl::CRC_OFFSET);
    }
}

fn copy_space_trees(dumper: &Dumper<'_>, sink: &mut Sink<'_>, agno: AgNumber, agf: &RawAgf) -> Result<()> {
    let features = &dumper.geometry.features;
    let trees = [
        (BtreeKind::Bnobt, agf.bno_root, agf.bno_level, true),
        (BtreeKind::Cntbt, agf.cnt_root, agf.cnt_level, true),
        (BtreeKind::Rmapbt, agf.rmap_root, agf.rmap_level, features.has_rmapbt()),
        (BtreeKind::Refcountbt, agf.refcount_root, agf.refcount_level, features.has_reflink()),
    ];
    for (kind, root, levels, present) in trees {
        if present {
            let mut walk = TreeWalk::new(dumper, kind, Some(agno), place_of(agno));
            walk.copy(sink, u64::from(root.get()), levels.get(), &mut |_, _| Ok(()))?;
        }
    }
    Ok(())
}

fn place_of(agno: AgNumber) -> Place {
    Place { agno: Some(agno.0), ..Place::default() }
}

fn copy_inode_trees(dumper: &Dumper<'_>, sink: &mut Sink<'_>, agno: AgNumber, agi: &RawAgi) -> Result<Vec<InodeChunk>> {
    let sparse = dumper.geometry.features.has_sparseinodes();
    let mut chunks = Vec::new();
    let mut walk = TreeWalk::new(dumper, BtreeKind::Inobt, Some(agno), place_of(agno));
    walk.copy(sink, u64::from(agi.root.get()), agi.level.get(), &mut |_, record| {
        let chunk = if sparse {
            RawSparseInobtRecord::prefix(record).map(|(raw, _)| raw.decode())
        } else {
            RawInobtRecord::prefix(record).map(|(raw, _)| raw.decode())
        };
        chunks.extend(chunk.filter(|chunk| is_plausible(dumper, agno, chunk)));
        Ok(())
    })?;
    if dumper.geometry.features.has_finobt() {
        let mut walk = TreeWalk::new(dumper, BtreeKind::Finobt, Some(agno), place_of(agno));
        walk.copy(sink, u64::from(agi.free_root.get()), agi.free_level.get(), &mut |_, _| Ok(()))?;
    }
    Ok(chunks)
}

/// Whether a chunk of inodes can lie where the record says.
fn is_plausible(dumper: &Dumper<'_>, agno: AgNumber, chunk: &InodeChunk) -> bool {
    let geometry = dumper.geometry;
    let first = crate::geometry::AgIno(chunk.startino);
    let (agbno, index) = geometry.agino_parts(first);
    let last = chunk.startino.checked_add(63).map(|last| geometry.agino_parts(crate::geometry::AgIno(last)).0);
    let inside = |agbno: AgBlock| agbno.0 > 0 && geometry.ag_blocks(agno).is_some_and(|blocks| agbno.0 < blocks);
    // a sparse chunk may have its hole behind the end of the group
    let inside = inside(agbno) && (last.is_some_and(inside) || chunk.holemask != 0);
    let align = geometry.inodes.chunk_align;
    let aligned = index % 64 == 0 && (geometry.inodes.per_block > 64 || index == 0);
    let aligned = aligned && (!geometry.features.has_align() || align == 0 || agbno.0 % align == 0);
    if !inside || !aligned {
        let check = Check::new("inobt_rec", "startino", Rule::Range);
        dumper.warn_check(check, &place_of(agno), format!("{}", chunk.startino));
    }
    inside && aligned
}

/// Copies the superblock of the realtime section.
pub(super) fn copy_realtime_superblock(dumper: &Dumper<'_>, sink: &mut Sink<'_>) -> Result<()> {
    let (device, start) = dumper.image.realtime()?;
    let len = dumper.geometry.blocksize as usize;
    if !dumper.options.obscure {
        return match sink.copy(device, start, MetaDevice::Realtime, 0, len)? {
            Added::Whole => Ok(()),
            Added::Unreadable(error) => dumper.unreadable(error),
        };
    }
    let mut block = vec![0; len];
    if let Err(error) = device.read_at(start, &mut block) {
        return dumper.unreadable(error);
    }
    let sound = crc::matches(&block, RawRtSuperblock::CRC_OFFSET);
    if let Some((rtsb, rest)) = RawRtSuperblock::prefix_mut(&mut block) {
        obscure_label(&mut rtsb.fname);
        if dumper.options.zero_stale {
            stale::clear(rest);
        }
    }
    if sound {
        crc::stamp(&mut block, RawRtSuperblock::CRC_OFFSET);
    }
    sink.append_to(MetaDevice::Realtime, 0, &block)
}
