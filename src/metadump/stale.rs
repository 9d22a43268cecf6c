//! Bytes that mean nothing, and may still say what once stood there.

use crate::btree::Layout;
use crate::ondisk::{OnDisk, RawLongBlock, RawLongBlockV5, RawShortBlock, RawShortBlockV5, crc};

/// Makes bytes zero.
pub(super) fn clear(bytes: &mut [u8]) {
    bytes.fill(0);
}

/// Makes zero what of the room for keys, pointers or records is not in use; behind what must not be, as in a block with
/// impossible counts, nothing is touched.
pub(super) fn clear_btree_entries(bytes: &mut [u8], layout: &Layout, level: u32, count: usize) {
    if count > layout.most(level) {
        return;
    }
    let end = bytes.len();
    if level == 0 {
        if let Some(rest) = bytes.get_mut(layout.record(count).start.min(end)..) {
            clear(rest);
        }
        return;
    }
    let (keys, pointers) = (layout.low_key(count).start, layout.pointer(0).start);
    if let Some(gap) = bytes.get_mut(keys.min(pointers)..pointers) {
        clear(gap);
    }
    if let Some(rest) = bytes.get_mut(layout.pointer(count).start.min(end)..) {
        clear(rest);
    }
}

/// The same in a block of a btree, with its CRC if that was right before.
pub(super) fn clear_btree_block(block: &mut [u8], layout: &Layout, has_crc: bool) {
    let long = layout.kind().is_long();
    let offset = if long { RawLongBlockV5::CRC_OFFSET } else { RawShortBlockV5::CRC_OFFSET };
    let head = if long {
        RawLongBlock::prefix(block).map(|(head, _)| (head.magic, head.level, head.numrecs))
    } else {
        RawShortBlock::prefix(block).map(|(head, _)| (head.magic, head.level, head.numrecs))
    };
    let Some((magic, level, count)) = head.filter(|head| head.0.get() == layout.kind().magic(has_crc)) else { return };
    let _ = magic;
    let sound = has_crc && crc::matches(block, offset);
    clear_btree_entries(block, layout, u32::from(level.get()), usize::from(count.get()));
    if sound {
        crc::stamp(block, offset);
    }
}
