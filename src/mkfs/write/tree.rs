//! A btree of an allocation group, changed in place as Linux `fs/xfs/libxfs/xfs_btree.c` changes it: the same shifts to
//! neighbours and the same splits, on the bytes of the blocks, so that what moved entries leave behind stays there, too.
//!
//! The library's general engine (`crate::btree`) writes whole blocks and cleans what is unused; the bytes here must be those of
//! mkfs.xfs also where nothing looks at them.

use std::collections::BTreeMap;

use zerocopy::IntoBytes;

use crate::error::{Error, Result};
use crate::mkfs::write::group::NULL;
use crate::ondisk::{OnDisk, RawInobtKey, RawInobtRecord, RawRmapKey, RawRmapRecord};

/// Which tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Inode chunks, all or those with free inodes.
    Inode,
    /// Reverse mappings, whose keys have a lower and an upper half.
    Rmap,
}

/// Order of records and keys.
pub(super) type Sort = [u64; 3];

impl Kind {
    /// Bytes of a record.
    pub const fn record_len(self) -> usize {
        match self {
            Kind::Inode => RawInobtRecord::SIZE,
            Kind::Rmap => RawRmapRecord::SIZE,
        }
    }

    /// Bytes of a key, both halves.
    pub const fn key_len(self) -> usize {
        match self {
            Kind::Inode => RawInobtKey::SIZE,
            Kind::Rmap => 2 * RawRmapKey::SIZE,
        }
    }

    /// Whether keys have an upper half.
    pub const fn overlaps(self) -> bool {
        matches!(self, Kind::Rmap)
    }

    /// Order of a record.
    pub fn sort_of_record(self, record: &[u8]) -> Option<Sort> {
        match self {
            Kind::Inode => RawInobtRecord::prefix(record).map(|(record, _)| [u64::from(record.startino.get()), 0, 0]),
            Kind::Rmap => RawRmapRecord::prefix(record).map(|(record, _)| sort_of_rmap(&record.low_key())),
        }
    }

    /// Order of a key, or of one half of it.
    pub fn sort_of_key(self, key: &[u8]) -> Option<Sort> {
        match self {
            Kind::Inode => RawInobtKey::prefix(key).map(|(key, _)| [u64::from(key.startino.get()), 0, 0]),
            Kind::Rmap => RawRmapKey::prefix(key).map(|(key, _)| sort_of_rmap(key)),
        }
    }

    /// The key of a record.
    pub fn key_of_record(self, record: &[u8]) -> Option<Vec<u8>> {
        match self {
            Kind::Inode => {
                let (record, _) = RawInobtRecord::prefix(record)?;
                Some(RawInobtKey { startino: record.startino }.as_bytes().to_vec())
            }
            Kind::Rmap => {
                let (record, _) = RawRmapRecord::prefix(record)?;
                Some([record.low_key().as_bytes(), record.high_key().as_bytes()].concat())
            }
        }
    }
}

fn sort_of_rmap(key: &RawRmapKey) -> Sort {
    [u64::from(key.startblock.get()), key.owner.get(), key.offset.get()]
}

/// Where new blocks of a tree come from, and how they begin.
pub(super) trait Supply {
    /// A block, as close to block `near` of the group as possible.
    fn block(&mut self, near: u32) -> Result<u32>;
    /// An empty block of the tree that lies at block `at` of the group.
    fn empty(&self, at: u32) -> Vec<u8>;
}

/// A place in a tree: the block and the entry in it, for each level from the leaves up. An entry may be one behind the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    path: Vec<(u32, usize)>,
}

/// What a split leaves to be inserted one level above.
struct Split {
    key: Vec<u8>,
    block: u32,
    cursor: Cursor,
}

/// A btree.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// Which tree.
    pub kind: Kind,
    /// Bytes of a block's header.
    pub header: usize,
    /// The root.
    pub root: u32,
    /// Levels, the leaves included.
    pub levels: u32,
    /// The blocks, by their place in the group.
    pub blocks: BTreeMap<u32, Vec<u8>>,
}

impl Tree {
    /// A tree of one block.
    pub fn new(kind: Kind, header: usize, root: u32, block: Vec<u8>) -> Self {
        Tree { kind, header, root, levels: 1, blocks: BTreeMap::from([(root, block)]) }
    }

    /// Stands in for a tree that is being changed.
    pub fn nothing() -> Self {
        Tree { kind: Kind::Inode, header: 0, root: NULL, levels: 0, blocks: BTreeMap::new() }
    }

    /// The place behind all records that are not above `sort`.
    pub fn seek(&self, sort: Sort) -> Result<Cursor> {
        let mut path = Vec::new();
        let mut at = self.root;
        for level in (0..usize::try_from(self.levels).map_err(|_| damaged())?).rev() {
            let count = self.len(at)?;
            let mut entry = 0;
            while entry < count && self.sort(at, level, entry)? <= sort {
                entry += 1;
            }
            if level > 0 {
                entry = entry.saturating_sub(1);
            }
            path.push((at, entry));
            if level > 0 {
                at = self.pointer(at, entry)?;
            }
        }
        path.reverse();
        Ok(Cursor { path })
    }

    /// The record at a place; `None` behind the last one of a block.
    pub fn record<R: OnDisk + Copy>(&self, cursor: &Cursor) -> Result<Option<R>> {
        let (at, entry) = cursor.leaf();
        if entry >= self.len(at)? {
            return Ok(None);
        }
        let range = self.record_range(entry);
        let bytes = self.block(at)?.get(range).ok_or_else(damaged)?;
        Ok(R::prefix(bytes).map(|(record, _)| *record))
    }

    /// The place of the record before; `None` before the first.
    pub fn previous(&self, cursor: &Cursor) -> Result<Option<Cursor>> {
        let mut cursor = cursor.clone();
        if cursor.path[0].1 > 0 {
            cursor.path[0].1 -= 1;
            return Ok(Some(cursor));
        }
        let Some(mut cursor) = self.neighbour(&cursor, 0, false)? else { return Ok(None) };
        cursor.path[0].1 = self.len(cursor.path[0].0)?.checked_sub(1).ok_or_else(damaged)?;
        Ok(Some(cursor))
    }

    /// The place of the record after; `None` behind the last.
    pub fn next(&self, cursor: &Cursor) -> Result<Option<Cursor>> {
        let mut next = cursor.clone();
        next.path[0].1 += 1;
        let next = self.settle(next)?;
        let (at, entry) = next.leaf();
        Ok((entry < self.len(at)?).then_some(next))
    }

    /// A place behind the last record of a block becomes that of the first record of the next block, if there is one.
    pub fn settle(&self, cursor: Cursor) -> Result<Cursor> {
        let (at, entry) = cursor.leaf();
        if entry < self.len(at)? {
            return Ok(cursor);
        }
        Ok(self.neighbour(&cursor, 0, true)?.unwrap_or(cursor))
    }

    /// Overwrites the record at a place.
    pub fn set(&mut self, cursor: &Cursor, record: &[u8]) -> Result<()> {
        let (at, entry) = cursor.leaf();
        let range = self.record_range(entry);
        self.block_mut(at)?.get_mut(range).ok_or_else(damaged)?.copy_from_slice(record);
        if self.kind.overlaps() || entry == 0 {
            self.update_keys(cursor, 0)?;
        }
        Ok(())
    }

    /// Removes the record at a place.
    pub fn remove(&mut self, cursor: &Cursor) -> Result<()> {
        let (at, entry) = cursor.leaf();
        let len = self.len(at)?;
        self.shift_records(at, entry + 1, len, false)?;
        self.set_len(at, len - 1)?;
        if self.levels > 1 && len - 1 < self.capacity(0) / 2 {
            return Err(Error::Internal("making a filesystem: a block of a btree becomes too empty".to_string()));
        }
        if self.kind.overlaps() || entry == 0 {
            self.update_keys(cursor, 0)?;
        }
        Ok(())
    }

    /// Inserts a record at a place.
    pub fn insert(&mut self, cursor: Cursor, record: &[u8], supply: &mut dyn Supply) -> Result<()> {
        let mut cursor = cursor;
        let mut entry = record.to_vec();
        let mut child = None;
        for level in 0.. {
            if level >= usize::try_from(self.levels).map_err(|_| damaged())? {
                return self.new_root(&cursor, supply);
            }
            match self.insert_at(level, &mut cursor, &entry, child, supply)? {
                None => break,
                Some(split) => {
                    entry = split.key;
                    child = Some(split.block);
                    cursor = split.cursor;
                }
            }
        }
        Ok(())
    }

    fn insert_at(
        &mut self,
        level: usize,
        cursor: &mut Cursor,
        entry: &[u8],
        child: Option<u32>,
        supply: &mut dyn Supply,
    ) -> Result<Option<Split>> {
        let (before, mut asked) = cursor.path[level];
        let mut split = None;
        if self.len(before)? == self.capacity(level) && !self.shift_right(level, cursor)? {
            if self.shift_left(level, cursor)? {
                asked = cursor.path[level].1;
            } else {
                split = Some(self.split(level, cursor, supply)?);
            }
        }
        let (at, index) = cursor.path[level];
        let len = self.len(at)?;
        match child {
            None => {
                self.shift_records(at, index, len, true)?;
                let range = self.record_range(index);
                self.block_mut(at)?.get_mut(range).ok_or_else(damaged)?.copy_from_slice(entry);
            }
            Some(child) => {
                self.shift_entries(at, index, len, true)?;
                self.put_entry(at, index, entry, child)?;
            }
        }
        self.set_len(at, len + 1)?;
        if at != before {
            let key = self.keys(at, level)?;
            if let Some(split) = &mut split {
                split.key = key;
            }
        } else if self.kind.overlaps() || asked == 0 {
            self.update_keys(cursor, level)?;
        }
        Ok(split)
    }

    /// Moves the last entry of a full block to its right neighbour; `false` if that is full, or the entry is the one in
    /// question.
    fn shift_right(&mut self, level: usize, cursor: &Cursor) -> Result<bool> {
        let (at, index) = cursor.path[level];
        let len = self.len(at)?;
        let right = self.head(at)?.rightsib.get();
        if right == NULL || index + 1 >= len {
            return Ok(false);
        }
        let room = self.len(right)?;
        if room == self.capacity(level) {
            return Ok(false);
        }
        let moved = self.take(at, level, len - 1, 1)?;
        if level > 0 {
            self.shift_entries(right, 0, room, true)?;
        } else {
            self.shift_records(right, 0, room, true)?;
        }
        self.place(right, level, 0, &moved)?;
        self.set_len(at, len - 1)?;
        self.set_len(right, room + 1)?;
        let neighbour = self.neighbour(cursor, level, true)?.ok_or_else(damaged)?;
        if self.kind.overlaps() {
            self.update_keys(cursor, level)?;
        }
        self.update_keys(&neighbour, level)?;
        Ok(true)
    }

    /// Moves the first entry of a full block to its left neighbour; `false` if that is full, or the entry is the one in
    /// question.
    fn shift_left(&mut self, level: usize, cursor: &mut Cursor) -> Result<bool> {
        let (at, index) = cursor.path[level];
        let len = self.len(at)?;
        let left = self.head(at)?.leftsib.get();
        if left == NULL || index == 0 {
            return Ok(false);
        }
        let room = self.len(left)?;
        if room == self.capacity(level) {
            return Ok(false);
        }
        let moved = self.take(at, level, 0, 1)?;
        self.place(left, level, room, &moved)?;
        self.set_len(left, room + 1)?;
        self.set_len(at, len - 1)?;
        if level > 0 {
            self.shift_entries(at, 1, len, false)?;
        } else {
            self.shift_records(at, 1, len, false)?;
        }
        if self.kind.overlaps() {
            let neighbour = self.neighbour(cursor, level, false)?.ok_or_else(damaged)?;
            self.update_keys(&neighbour, level)?;
        }
        self.update_keys(cursor, level)?;
        cursor.path[level].1 -= 1;
        Ok(true)
    }

    /// Moves half of a full block to a new one behind it.
    fn split(&mut self, level: usize, cursor: &mut Cursor, supply: &mut dyn Supply) -> Result<Split> {
        let (left, index) = cursor.path[level];
        let right = supply.block(left)?;
        self.blocks.insert(right, supply.empty(right));
        let mut len = self.len(left)?;
        let mut moved = len / 2;
        if len & 1 == 1 && index <= moved {
            moved += 1;
        }
        len -= moved;
        let entries = self.take(left, level, len, moved)?;
        self.place(right, level, 0, &entries)?;
        self.set_len(left, len)?;
        self.set_len(right, moved)?;
        let behind = self.head(left)?.rightsib.get();
        let head = self.head_mut(right)?;
        head.level.set(u16::try_from(level).map_err(|_| damaged())?);
        head.rightsib.set(behind);
        head.leftsib.set(left);
        self.head_mut(left)?.rightsib.set(right);
        if behind != NULL {
            self.head_mut(behind)?.leftsib.set(right);
        }
        let key = self.keys(right, level)?;
        if self.kind.overlaps() {
            self.update_keys(cursor, level)?;
        }
        if index > len {
            cursor.path[level] = (right, index - len);
        }
        let mut above = cursor.clone();
        if let Some(parent) = above.path.get_mut(level + 1) {
            parent.1 += 1;
        }
        Ok(Split { key, block: right, cursor: above })
    }

    /// Puts a new root over the two blocks that the old one has become.
    fn new_root(&mut self, cursor: &Cursor, supply: &mut dyn Supply) -> Result<()> {
        let root = supply.block(self.root)?;
        let level = usize::try_from(self.levels).map_err(|_| damaged())?;
        let (at, _) = cursor.path[level - 1];
        let head = self.head(at)?;
        let (left, right) = match head.rightsib.get() {
            NULL => (head.leftsib.get(), at),
            right => (at, right),
        };
        self.blocks.insert(root, supply.empty(root));
        self.head_mut(root)?.level.set(u16::try_from(level).map_err(|_| damaged())?);
        for (index, child) in [left, right].into_iter().enumerate() {
            let key = self.keys(child, level - 1)?;
            self.put_entry(root, index, &key, child)?;
        }
        self.set_len(root, 2)?;
        self.root = root;
        self.levels += 1;
        Ok(())
    }

    /// Makes the keys above a block say what it holds.
    fn update_keys(&mut self, cursor: &Cursor, level: usize) -> Result<()> {
        let overlaps = self.kind.overlaps();
        if cursor.path.len() <= level + 1 {
            return Ok(());
        }
        let mut key = self.keys(cursor.path[level].0, level)?;
        for (above, &(at, entry)) in cursor.path.iter().enumerate().skip(level + 1) {
            let range = self.key_range(entry);
            let slot = self.block_mut(at)?.get_mut(range).ok_or_else(damaged)?;
            if slot == key && overlaps {
                break;
            }
            slot.copy_from_slice(&key);
            if overlaps {
                key = self.keys(at, above)?;
            } else if entry > 0 {
                break;
            }
        }
        Ok(())
    }

    /// The same level of the block beside; its entry is the first one.
    fn neighbour(&self, cursor: &Cursor, level: usize, right: bool) -> Result<Option<Cursor>> {
        let mut cursor = cursor.clone();
        let mut turn = level + 1;
        loop {
            let Some(&(at, entry)) = cursor.path.get(turn) else { return Ok(None) };
            let next = if right { Some(entry + 1) } else { entry.checked_sub(1) };
            if let Some(next) = next.filter(|&next| next < self.len(at).unwrap_or(0)) {
                cursor.path[turn].1 = next;
                break;
            }
            turn += 1;
        }
        for below in (level..turn).rev() {
            let (at, entry) = cursor.path[below + 1];
            let child = self.pointer(at, entry)?;
            let entry = if right || below == level { 0 } else { self.len(child)?.saturating_sub(1) };
            cursor.path[below] = (child, entry);
        }
        Ok(Some(cursor))
    }
}

impl Cursor {
    fn leaf(&self) -> (u32, usize) {
        self.path[0]
    }
}

/// An invariant of the tree's own blocks does not hold.
pub(super) fn damaged() -> Error {
    Error::Internal("making a filesystem: a btree is not what it was made to be".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::{Be32, Be64};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const HEADER: usize = 56;

    /// Blocks of 512 bytes, numbered as they are asked for.
    struct Counter(u32);

    impl Supply for Counter {
        fn block(&mut self, _near: u32) -> Result<u32> {
            self.0 += 1;
            Ok(self.0)
        }

        fn empty(&self, _at: u32) -> Vec<u8> {
            empty()
        }
    }

    fn empty() -> Vec<u8> {
        let mut block = vec![0; 512];
        let (head, _) = crate::ondisk::RawShortBlock::prefix_mut(&mut block).expect("larger");
        head.leftsib.set(NULL);
        head.rightsib.set(NULL);
        block
    }

    fn rmap(start: u32) -> RawRmapRecord {
        RawRmapRecord {
            startblock: Be32::new(start),
            blockcount: Be32::new(1 + start % 7),
            owner: Be64::new(u64::from(start) + 100),
            offset: Be64::new(0),
        }
    }

    /// All records in order, and a check of the keys above them.
    fn starts(tree: &Tree) -> Vec<u32> {
        let mut found = Vec::new();
        let mut at = Some(tree.seek([0; 3]).expect("sound"));
        while let Some(cursor) = at {
            match tree.record::<RawRmapRecord>(&cursor).expect("sound") {
                Some(record) => found.push(record.startblock.get()),
                None => break,
            }
            for level in 1..cursor.path.len() {
                let (parent, entry) = cursor.path[level];
                let (child, _) = cursor.path[level - 1];
                assert_eq!(tree.pointer(parent, entry).expect("sound"), child);
                let key = tree.keys(child, level - 1).expect("sound");
                assert_eq!(tree.key(parent, level, entry).expect("sound"), key);
            }
            at = tree.next(&cursor).expect("sound");
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn records_come_back_in_order(list in proptest::collection::vec(1u32..4000, 1..600), ascending in any::<bool>()) {
            let mut list = list;
            if ascending {
                list.sort_unstable();
            }
            let mut tree = Tree::new(Kind::Rmap, HEADER, 0, empty());
            let mut supply = Counter(0);
            let mut model = BTreeSet::new();
            for start in list {
                if model.insert(start) {
                    let record = rmap(start);
                    let at = tree.seek(sort_of_rmap(&record.low_key())).expect("sound");
                    let at = tree.settle(at).expect("sound");
                    tree.insert(at, record.as_bytes(), &mut supply).expect("sound");
                }
            }
            prop_assert_eq!(starts(&tree), model.iter().copied().collect::<Vec<_>>());
            let mut at = tree.seek([u64::from(u32::MAX), 0, 0]).expect("sound");
            for &start in model.iter().rev() {
                at = tree.previous(&at).expect("sound").expect("there is one more");
                let record = tree.record::<RawRmapRecord>(&at).expect("sound").expect("a record");
                prop_assert_eq!(record.startblock.get(), start);
            }
            prop_assert_eq!(tree.previous(&at).expect("sound"), None);
        }
    }

    #[test]
    fn what_moves_leaves_its_bytes_behind() {
        let mut tree = Tree::new(Kind::Rmap, HEADER, 0, empty());
        for start in 1..=19 {
            let at = tree.seek([u64::from(start), u64::MAX, 0]).expect("sound");
            tree.insert(at, rmap(start).as_bytes(), &mut Counter(0)).expect("sound");
        }
        let full = tree.blocks[&0].clone();
        let at = tree.seek([20, u64::MAX, 0]).expect("sound");
        tree.insert(at, rmap(20).as_bytes(), &mut Counter(0)).expect("sound");
        assert_eq!(tree.levels, 2);
        let left = &tree.blocks[&0];
        assert_eq!(tree.len(0).expect("sound"), 10);
        assert_eq!(left[HEADER..], full[HEADER..]);
    }
}
