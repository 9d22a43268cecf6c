//! Records, keys and pointers in the blocks of a group's btree. Source: Linux `fs/xfs/libxfs/xfs_btree.c`.

use std::cmp::Ordering;

use crate::error::Result;
use crate::mkfs::write::tree::{Sort, Tree, damaged};
use crate::ondisk::{OnDisk, RawShortBlock};

/// Bytes of a pointer.
const POINTER: usize = size_of::<u32>();

fn shift(block: &mut [u8], start: usize, end: usize, step: usize, up: bool) -> Result<()> {
    let to = if up { start + step } else { start.checked_sub(step).ok_or_else(damaged)? };
    if end < start || to + (end - start) > block.len() {
        return Err(damaged());
    }
    block.copy_within(start..end, to);
    Ok(())
}

impl Tree {
    /// The key of a block: that of its first entry, and the highest upper half of all.
    pub(super) fn keys(&self, at: u32, level: usize) -> Result<Vec<u8>> {
        let mut whole = self.key(at, level, 0)?;
        if self.kind.overlaps() {
            let half = whole.len() / 2;
            for entry in 1..self.len(at)? {
                let key = self.key(at, level, entry)?;
                let order = self.kind.sort_of_key(&key[half..]).cmp(&self.kind.sort_of_key(&whole[half..]));
                if order == Ordering::Greater {
                    whole[half..].copy_from_slice(&key[half..]);
                }
            }
        }
        Ok(whole)
    }

    /// The key of an entry.
    pub(super) fn key(&self, at: u32, level: usize, entry: usize) -> Result<Vec<u8>> {
        let block = self.block(at)?;
        if level > 0 {
            return block.get(self.key_range(entry)).map(<[u8]>::to_vec).ok_or_else(damaged);
        }
        block.get(self.record_range(entry)).and_then(|record| self.kind.key_of_record(record)).ok_or_else(damaged)
    }

    pub(super) fn sort(&self, at: u32, level: usize, entry: usize) -> Result<Sort> {
        let block = self.block(at)?;
        let sort = if level > 0 {
            block.get(self.key_range(entry)).and_then(|key| self.kind.sort_of_key(key))
        } else {
            block.get(self.record_range(entry)).and_then(|record| self.kind.sort_of_record(record))
        };
        sort.ok_or_else(damaged)
    }

    pub(super) fn pointer(&self, at: u32, entry: usize) -> Result<u32> {
        let bytes = self.block(at)?.get(self.pointer_range(entry)).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u32::from_be_bytes).ok_or_else(damaged)
    }

    /// Entries that a block of a level holds.
    pub(super) fn capacity(&self, level: usize) -> usize {
        let room = self.blocks.values().next().map_or(0, Vec::len) - self.header;
        if level > 0 { room / (self.kind.key_len() + POINTER) } else { room / self.kind.record_len() }
    }

    pub(super) fn record_range(&self, entry: usize) -> std::ops::Range<usize> {
        let start = self.header + entry * self.kind.record_len();
        start..start + self.kind.record_len()
    }

    pub(super) fn key_range(&self, entry: usize) -> std::ops::Range<usize> {
        let start = self.header + entry * self.kind.key_len();
        start..start + self.kind.key_len()
    }

    pub(super) fn pointer_range(&self, entry: usize) -> std::ops::Range<usize> {
        let start = self.header + self.capacity(1) * self.kind.key_len() + entry * POINTER;
        start..start + POINTER
    }

    /// Moves the records from `from` to the end, at `len`, by one place, up or down.
    pub(super) fn shift_records(&mut self, at: u32, from: usize, len: usize, up: bool) -> Result<()> {
        let (start, end) = (self.record_range(from).start, self.record_range(len).start);
        let step = self.kind.record_len();
        shift(self.block_mut(at)?, start, end, step, up)
    }

    /// Moves keys and pointers from `from` to the end, at `len`, by one place, up or down.
    pub(super) fn shift_entries(&mut self, at: u32, from: usize, len: usize, up: bool) -> Result<()> {
        let (key, key_end) = (self.key_range(from).start, self.key_range(len).start);
        let (pointer, pointer_end) = (self.pointer_range(from).start, self.pointer_range(len).start);
        let step = self.kind.key_len();
        let block = self.block_mut(at)?;
        shift(block, key, key_end, step, up)?;
        shift(block, pointer, pointer_end, POINTER, up)
    }

    pub(super) fn put_entry(&mut self, at: u32, entry: usize, key: &[u8], child: u32) -> Result<()> {
        let (keys, pointers) = (self.key_range(entry), self.pointer_range(entry));
        let block = self.block_mut(at)?;
        block.get_mut(keys).ok_or_else(damaged)?.copy_from_slice(key);
        block.get_mut(pointers).ok_or_else(damaged)?.copy_from_slice(&child.to_be_bytes());
        Ok(())
    }

    /// The bytes of `count` entries: records, or keys and pointers.
    pub(super) fn take(&self, at: u32, level: usize, from: usize, count: usize) -> Result<(Vec<u8>, Vec<u8>)> {
        let block = self.block(at)?;
        let copy = |range: std::ops::Range<usize>| block.get(range).map(<[u8]>::to_vec).ok_or_else(damaged);
        if level == 0 {
            let records = self.record_range(from).start..self.record_range(from + count).start;
            return Ok((copy(records)?, Vec::new()));
        }
        let keys = self.key_range(from).start..self.key_range(from + count).start;
        let pointers = self.pointer_range(from).start..self.pointer_range(from + count).start;
        Ok((copy(keys)?, copy(pointers)?))
    }

    /// Puts what [`Tree::take`] gave at entry `to` of another block.
    pub(super) fn place(&mut self, at: u32, level: usize, to: usize, entries: &(Vec<u8>, Vec<u8>)) -> Result<()> {
        let start = if level == 0 { self.record_range(to).start } else { self.key_range(to).start };
        let pointers = self.pointer_range(to).start;
        let block = self.block_mut(at)?;
        block.get_mut(start..start + entries.0.len()).ok_or_else(damaged)?.copy_from_slice(&entries.0);
        if level > 0 {
            block.get_mut(pointers..pointers + entries.1.len()).ok_or_else(damaged)?.copy_from_slice(&entries.1);
        }
        Ok(())
    }

    pub(super) fn block(&self, at: u32) -> Result<&Vec<u8>> {
        self.blocks.get(&at).ok_or_else(damaged)
    }

    pub(super) fn block_mut(&mut self, at: u32) -> Result<&mut Vec<u8>> {
        self.blocks.get_mut(&at).ok_or_else(damaged)
    }

    pub(super) fn head(&self, at: u32) -> Result<&RawShortBlock> {
        RawShortBlock::prefix(self.block(at)?).map(|(head, _)| head).ok_or_else(damaged)
    }

    pub(super) fn head_mut(&mut self, at: u32) -> Result<&mut RawShortBlock> {
        RawShortBlock::prefix_mut(self.block_mut(at)?).map(|(head, _)| head).ok_or_else(damaged)
    }

    pub(super) fn len(&self, at: u32) -> Result<usize> {
        Ok(usize::from(self.head(at)?.numrecs.get()))
    }

    pub(super) fn set_len(&mut self, at: u32, len: usize) -> Result<()> {
        let len = u16::try_from(len).map_err(|_| damaged())?;
        self.head_mut(at)?.numrecs.set(len);
        Ok(())
    }
}
