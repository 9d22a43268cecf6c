//! The records of a btree as xfs_db prints them, and as this library reads them.

use std::path::Path;

use xfskit::geometry::{BtreeKind, Geometry};
use xfskit::ondisk::{
    OnDisk, RawAllocRecord, RawExtent, RawInobtRecord, RawRefcountRecord, RawRmapRecord, RawSparseInobtRecord,
};

use crate::reference::{Reference, said};

/// What `btdump` prints of the leaves of the tree that `commands` of xfs_db find.
pub fn records(
    data: &Path,
    realtime: Option<&Path>,
    commands: &[String],
    reference: &Reference,
) -> Result<Vec<String>, String> {
    let mut command = reference.tool("xfs_db", ["-r"]);
    if let Some(realtime) = realtime {
        command.arg("-R").arg(realtime);
    }
    for line in commands {
        command.args(["-c", line]);
    }
    let output = command.args(["-c", "btdump"]).arg(data).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(said(&output));
    }
    let (mut found, mut in_records) = (Vec::new(), false);
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let line = line.trim();
        let numbered = line.split_once(":[").filter(|(number, _)| number.parse::<u32>().is_ok());
        match numbered {
            Some((_, rest)) if in_records => found.push(rest.trim_end_matches(']').to_owned()),
            Some(_) => {}
            None => in_records = line.contains("recs["),
        }
    }
    Ok(found)
}

/// A record as `btdump` prints it.
pub fn print(geometry: &Geometry, kind: BtreeKind, record: &[u8]) -> String {
    match kind {
        BtreeKind::Bnobt | BtreeKind::Cntbt => {
            let extent = whole::<RawAllocRecord>(record).decode();
            format!("{},{}", extent.startblock, extent.blockcount)
        }
        BtreeKind::Inobt | BtreeKind::Finobt if geometry.features.has_sparseinodes() => {
            let chunk = whole::<RawSparseInobtRecord>(record).decode();
            let (holes, free) = (hex(u64::from(chunk.holemask)), hex(chunk.free));
            format!("{},{holes},{},{},{free}", chunk.startino, chunk.count, chunk.freecount)
        }
        BtreeKind::Inobt | BtreeKind::Finobt => {
            let chunk = whole::<RawInobtRecord>(record).decode();
            format!("{},{},{}", chunk.startino, chunk.freecount, hex(chunk.free))
        }
        BtreeKind::Rmapbt | BtreeKind::Rtrmapbt => {
            let rmap = whole::<RawRmapRecord>(record).decode().expect("known flags");
            let flags = [rmap.unwritten, rmap.attr_fork, rmap.bmbt_block].map(u8::from);
            let owner = i64::from_ne_bytes(rmap.owner.to_ne_bytes());
            let (start, len, offset) = (rmap.startblock, rmap.blockcount, rmap.offset);
            format!("{start},{len},{owner},{offset},{},{},{}", flags[0], flags[1], flags[2])
        }
        BtreeKind::Refcountbt | BtreeKind::Rtrefcountbt => {
            let count = whole::<RawRefcountRecord>(record).decode();
            format!("{},{},{},{}", count.startblock, count.blockcount, count.refcount, u8::from(count.cow))
        }
        BtreeKind::Bmbt => {
            let extent = whole::<RawExtent>(record).decode();
            let state = u8::from(extent.unwritten);
            format!("{},{},{},{state}", extent.startoff, extent.startblock, extent.blockcount)
        }
    }
}

/// Hexadecimal as C prints it: zero has no prefix.
fn hex(value: u64) -> String {
    if value == 0 { "0".to_owned() } else { format!("{value:#x}") }
}

fn whole<T: OnDisk>(record: &[u8]) -> &T {
    T::prefix(record).expect("a whole record").0
}
