//! The btrees of a group's inodes: all of them, and the chunks with free ones (Linux `libxfs/xfs_ialloc_btree.c`).

use zerocopy::IntoBytes;

use crate::btree::SortKey;
use crate::error::{Check, Error, Place, Result, Rule};
use crate::geometry::{AgNumber, BtreeKind};
use crate::ondisk::{InodeChunk, OnDisk, RawInobtRecord, RawSparseInobtRecord};
use crate::transaction::Transaction;
use crate::volume::space::{GroupTree, edit_tree};

/// One of the inode btrees of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InodeTree {
    agno: AgNumber,
    kind: BtreeKind,
}

impl InodeTree {
    /// The btree of all chunks.
    pub(super) fn all(agno: AgNumber) -> Self {
        InodeTree { agno, kind: BtreeKind::Inobt }
    }

    /// The btree of the chunks with free inodes, where the filesystem has it.
    pub(super) fn free(tx: &Transaction<'_>, agno: AgNumber) -> Option<Self> {
        tx.store().geometry().features.has_finobt().then_some(InodeTree { agno, kind: BtreeKind::Finobt })
    }

    pub(super) fn corrupt(self, field: &'static str, rule: Rule) -> Error {
        let place = Place { agno: Some(self.agno.0), ..Place::default() };
        Error::corrupt(Check::new(self.kind.name(), field, rule), place)
    }

    fn decode(tx: &Transaction<'_>, record: &[u8]) -> Option<InodeChunk> {
        if tx.store().geometry().features.has_sparseinodes() {
            RawSparseInobtRecord::prefix(record).map(|(raw, _)| raw.decode())
        } else {
            RawInobtRecord::prefix(record).map(|(raw, _)| raw.decode())
        }
    }

    fn encode(self, tx: &Transaction<'_>, chunk: &InodeChunk) -> Result<Vec<u8>> {
        let bytes = if tx.store().geometry().features.has_sparseinodes() {
            chunk.encode_sparse().map(|raw| raw.as_bytes().to_vec())
        } else {
            chunk.encode_full().map(|raw| raw.as_bytes().to_vec())
        };
        bytes.ok_or_else(|| self.corrupt("freecount", Rule::Range))
    }

    /// The records from the last one that begins at or before `agino` on, else from the first, at most `most`.
    fn records(self, tx: &Transaction<'_>, agino: u32, most: usize) -> Result<Vec<InodeChunk>> {
        let tree = GroupTree::of(tx.store(), self.agno, self.kind)?;
        let (mut cursor, mut records) = (tree.from(key(agino))?, Vec::new());
        while records.len() < most
            && let Some(record) = cursor.next_record()?
        {
            records.push(record);
        }
        let truncated = || self.corrupt("rec", Rule::Truncated);
        records.iter().map(|record| self.checked(Self::decode(tx, record).ok_or_else(truncated)?)).collect()
    }

    /// A record that counts right.
    fn checked(self, chunk: InodeChunk) -> Result<InodeChunk> {
        let free = chunk.free & chunk.allocated_mask();
        if free.count_ones() != chunk.freecount || u32::from(chunk.count) != chunk.allocated_mask().count_ones() {
            return Err(self.corrupt("freecount", Rule::Mismatch));
        }
        Ok(chunk)
    }

    /// The last record that begins at or before `agino`.
    pub(super) fn at_or_before(self, tx: &Transaction<'_>, agino: u32) -> Result<Option<InodeChunk>> {
        let found = self.records(tx, agino, 1)?.first().copied();
        Ok(found.filter(|chunk| chunk.startino <= agino))
    }

    /// The first record that begins at or behind `agino`.
    pub(super) fn at_or_after(self, tx: &Transaction<'_>, agino: u32) -> Result<Option<InodeChunk>> {
        Ok(self.records(tx, agino, 2)?.into_iter().find(|chunk| chunk.startino >= agino))
    }

    /// The record that begins with `startino`.
    pub(super) fn get(self, tx: &Transaction<'_>, startino: u32) -> Result<Option<InodeChunk>> {
        Ok(self.at_or_before(tx, startino)?.filter(|chunk| chunk.startino == startino))
    }

    pub(super) fn insert(self, tx: &mut Transaction<'_>, chunk: &InodeChunk) -> Result<()> {
        let record = self.encode(tx, chunk)?;
        edit_tree(tx, self.agno, self.kind, |editor| editor.insert(&record)).map_err(|error| match error {
            Error::Usage(_) => self.corrupt("startino", Rule::Order),
            other => other,
        })
    }

    pub(super) fn replace(self, tx: &mut Transaction<'_>, chunk: &InodeChunk) -> Result<()> {
        let record = self.encode(tx, chunk)?;
        self.must(edit_tree(tx, self.agno, self.kind, |editor| editor.replace(key(chunk.startino), &record))?)
    }

    pub(super) fn delete(self, tx: &mut Transaction<'_>, startino: u32) -> Result<()> {
        self.must(edit_tree(tx, self.agno, self.kind, |editor| editor.delete(key(startino)))?)
    }

    fn must(self, found: bool) -> Result<()> {
        if found { Ok(()) } else { Err(self.corrupt("startino", Rule::Mismatch)) }
    }
}

fn key(agino: u32) -> SortKey {
    SortKey([u64::from(agino), 0, 0])
}
