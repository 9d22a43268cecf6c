//! Every btree against a plain sorted map, under random changes; what comes out is read back through the cache and
//! walked with all checks.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use zerocopy::IntoBytes;

use super::*;
use crate::buffer::{BlockCache, Verifier};
use crate::device::{Device, MemoryDevice};
use crate::geometry::{AgBlock, AgNumber, BtreeKind, Geometry, Ino, samples};
use crate::ondisk::feature_bits::ro_compat;
use crate::ondisk::{Be16, Be32, Be64, Extent, FreeExtent, InodeChunk, Refcount, Rmap};

/// First block of the trees: behind the headers of the first group.
const FIRST: u64 = 64;
/// Bytes of the fork that holds a root.
const FORK: usize = 180;

/// A filesystem with all nine trees and small blocks, so that trees get tall.
pub(super) fn geometry() -> Geometry {
    let mut sb = samples::superblock("groups");
    sb.blocksize = Be32::new(1024);
    sb.blocklog = 10;
    sb.inopblock = Be16::new(2);
    sb.inopblog = 1;
    let all = ro_compat::FINOBT | ro_compat::RMAPBT | ro_compat::REFLINK;
    sb.features_ro_compat = Be32::new(sb.features_ro_compat.get() | all);
    sb.agblocks = Be32::new(1 << 20);
    sb.agblklog = 20;
    sb.agcount = Be32::new(4);
    sb.dblocks = Be64::new(4 << 20);
    Geometry::assume(&sb)
}

fn owner(kind: BtreeKind) -> TreeOwner {
    if kind.is_long() { TreeOwner::Inode(Ino(131)) } else { TreeOwner::Group(AgNumber(0)) }
}

/// Record number `n` of a tree, valid in [`geometry`]; numbers are in the order of the records, `variant` changes what
/// is not part of the key.
pub(super) fn record(kind: BtreeKind, n: u32, variant: u32) -> Vec<u8> {
    let fits = "invariant: the numbers fit";
    match kind {
        BtreeKind::Bnobt => {
            FreeExtent { startblock: 8 + n * 4, blockcount: 1 + variant % 4 }.encode().as_bytes().to_vec()
        }
        BtreeKind::Cntbt => {
            FreeExtent { startblock: 8 + n % 10 * 100, blockcount: 1 + n / 10 }.encode().as_bytes().to_vec()
        }
        BtreeKind::Inobt | BtreeKind::Finobt => {
            let chunk = InodeChunk {
                startino: 64 + n * 64,
                holemask: 0,
                count: 64,
                freecount: variant % 65,
                free: if variant % 65 == 64 { u64::MAX } else { (1 << (variant % 65)) - 1 },
            };
            chunk.encode_sparse().expect(fits).as_bytes().to_vec()
        }
        BtreeKind::Rmapbt | BtreeKind::Rtrmapbt => {
            let rmap = Rmap {
                startblock: 8 + n / 8,
                blockcount: 1 + (n * 7919) % 50,
                owner: 131 + u64::from(n % 8),
                offset: u64::from(n % 3),
                unwritten: variant % 2 == 1,
                ..Rmap::default()
            };
            rmap.encode().expect(fits).as_bytes().to_vec()
        }
        BtreeKind::Refcountbt | BtreeKind::Rtrefcountbt => {
            let count = Refcount { startblock: 8 + n * 4, blockcount: 1 + variant % 4, refcount: 2, cow: false };
            count.encode().expect(fits).as_bytes().to_vec()
        }
        BtreeKind::Bmbt => {
            let extent = Extent {
                startoff: u64::from(n) * 16,
                startblock: 64 + u64::from(n % 100),
                blockcount: 1 + variant % 16,
                unwritten: variant % 2 == 1,
            };
            extent.encode().expect(fits).as_bytes().to_vec()
        }
    }
}

type Model = BTreeMap<SortKey, Vec<u8>>;

fn new_editor(kind: BtreeKind, store: &mut MemoryStore) -> Editor<'_, MemoryStore> {
    let geometry = geometry();
    let layout = Layout::of_block(&geometry, kind);
    let identity = TreeIdentity::new(&geometry, owner(kind));
    let editor = if kind.is_long() {
        Editor::new_in_inode(store, layout, identity, FORK)
    } else {
        Editor::new_in_block(store, layout, identity)
    };
    editor.expect("an empty tree")
}

fn new_store() -> MemoryStore {
    MemoryStore::new(FIRST, u64::from(geometry().basic_blocks_per_block()))
}

/// A device with the blocks of a store.
pub(super) fn device_of(store: &MemoryStore) -> MemoryDevice {
    let device = MemoryDevice::new(4 << 30);
    for (pointer, bytes) in store.blocks() {
        device.write_at(pointer * u64::from(geometry().blocksize), bytes).expect("inside");
    }
    device
}

/// A small cache over a device.
pub(super) fn cache_of(device: MemoryDevice) -> BlockCache {
    BlockCache::new(Verifier::new(geometry()), Arc::new(device), 1 << 16)
}

/// A tree of `count` records.
pub(super) fn load(kind: BtreeKind, count: u32, fill: Fill) -> (MemoryStore, EditRoot) {
    let (mut store, geometry) = (new_store(), geometry());
    let mut records: Vec<_> = (0..count).map(|n| record(kind, n, n)).collect();
    records.sort_by_key(|record| SortKey::of_record(kind, record));
    let (layout, identity) = (Layout::of_block(&geometry, kind), TreeIdentity::new(&geometry, owner(kind)));
    let fork = kind.is_long().then_some(FORK);
    let editor = bulk_load(&mut store, layout, identity, fork, fill, records.len(), &mut records.into_iter());
    let root = editor.expect("records in order").root().clone();
    (store, root)
}

/// Reads the tree back as a filesystem's and compares.
fn compare(kind: BtreeKind, model: &Model, root: &EditRoot, fork: Option<&[u8]>, store: &MemoryStore) {
    let cache = cache_of(device_of(store));
    let tree = match root {
        EditRoot::Block { pointer, levels } => {
            Tree::of_group(kind, AgNumber(0), AgBlock(u32::try_from(*pointer).expect("small")), *levels)
        }
        EditRoot::Inode { .. } => Tree::of_fork(kind, Ino(131), ForkContents::Data, fork.expect("a root in an inode")),
    };
    let mut found = Vec::new();
    let walked = walk(&cache, &tree, 100_000, &mut |visit| {
        if let Visit::Record { record, .. } = visit {
            found.push(record.to_vec());
        }
        Ok(Step::Continue)
    })
    .expect("readable");
    assert_eq!(walked.verdict.failures(), [], "{kind:?}");
    assert!(walked.complete);
    assert!(found.iter().eq(model.values()), "{kind:?}");
    assert_eq!(walked.blocks, store.blocks().len() as u64, "{kind:?}: blocks are lost");
    let source = (&cache, tree);
    let mut cursor = Cursor::first(&source).expect("a root");
    let read = std::iter::from_fn(|| cursor.next_record().expect("sound"));
    assert!(read.eq(model.values().cloned()));
    for (low, high) in [(40, 60), (0, 0), (100, 2000)] {
        let (low, high) =
            (SortKey::of_record(kind, &record(kind, low, 0)), SortKey::of_record(kind, &record(kind, high, 0)));
        let mut found = Vec::new();
        overlapping(&source, low, high, &mut |record| {
            found.push(record.to_vec());
            Ok(())
        })
        .expect("sound");
        let covers = |record: &&Vec<u8>| {
            let highest = SortKey::of_key(kind, key::high_key(kind, record).as_bytes());
            SortKey::of_record(kind, record) <= high && highest >= low
        };
        assert!(found.iter().eq(model.values().filter(covers)), "{kind:?}");
    }
}

#[derive(Clone, Debug)]
enum Change {
    Insert(u32, u32),
    Delete(u32),
    Replace(u32, u32, u32),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    // the lower half of the numbers is mostly inserted, the upper mostly deleted, then the other way round
    let change = prop_oneof![
        4 => (0u32..600, any::<u32>()).prop_map(|(n, v)| Change::Insert(n, v)),
        2 => (0u32..600).prop_map(Change::Delete),
        1 => (0u32..600, 0u32..600, any::<u32>()).prop_map(|(n, m, v)| Change::Replace(n, m, v)),
    ];
    (proptest::collection::vec(change, 0..900), any::<bool>()).prop_map(|(mut changes, empty)| {
        if empty {
            changes.extend((0..600).map(Change::Delete));
        }
        changes
    })
}

fn apply(kind: BtreeKind, editor: &mut Editor<'_, MemoryStore>, model: &mut Model, change: &Change) {
    match *change {
        Change::Insert(n, variant) => {
            let record = record(kind, n, variant);
            let key = SortKey::of_record(kind, &record);
            let taken = model.contains_key(&key);
            assert_eq!(editor.insert(&record).is_err(), taken);
            model.entry(key).or_insert(record);
        }
        Change::Delete(n) => {
            let key = SortKey::of_record(kind, &record(kind, n, 0));
            assert_eq!(editor.get(key).expect("readable").as_ref(), model.get(&key));
            assert_eq!(editor.delete(key).expect("a sound tree"), model.remove(&key).is_some());
        }
        Change::Replace(n, m, variant) => {
            let (old, new) = (SortKey::of_record(kind, &record(kind, n, 0)), record(kind, m, variant));
            let new_key = SortKey::of_record(kind, &new);
            match editor.replace(old, &new) {
                Err(_) => assert!(old != new_key && model.contains_key(&new_key)),
                Ok(replaced) => {
                    assert_eq!(replaced, model.remove(&old).is_some());
                    if replaced {
                        model.insert(new_key, new);
                    }
                }
            }
        }
    }
}

fn run(cases: u32, strategy: impl Strategy<Value = Vec<Change>>, test: impl Fn(BtreeKind, Vec<Change>)) {
    let kinds = proptest::sample::select(&BtreeKind::ALL[..]);
    let mut runner = TestRunner::new_with_rng(
        Config { cases, ..Config::default() },
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    runner
        .run(&(kinds, strategy), |(kind, changes)| {
            test(kind, changes);
            Ok(())
        })
        .expect("every tree equals the map");
}

#[test]
fn changes_equal_those_of_a_map() {
    run(45, changes(), |kind, changes| {
        let (mut store, mut model) = (new_store(), Model::new());
        let mut editor = new_editor(kind, &mut store);
        for change in &changes {
            apply(kind, &mut editor, &mut model, change);
        }
        let (root, fork) = (editor.root().clone(), editor.inode_root_bytes());
        compare(kind, &model, &root, fork.as_deref(), &store);
    });
}

#[test]
fn loaded_trees_can_be_changed() {
    run(27, changes(), |kind, changes| {
        let mut store = new_store();
        let count = changes.len() * 3;
        let mut model: Model = (0..count as u32)
            .map(|n| record(kind, n, n))
            .map(|record| (SortKey::of_record(kind, &record), record))
            .collect();
        let geometry = geometry();
        let fill = if changes.len() % 2 == 0 { Fill::Full } else { Fill::Middle };
        let records: Vec<_> = model.values().cloned().collect();
        let mut editor = bulk_load(
            &mut store,
            Layout::of_block(&geometry, kind),
            TreeIdentity::new(&geometry, owner(kind)),
            kind.is_long().then_some(FORK),
            fill,
            records.len(),
            &mut records.into_iter(),
        )
        .expect("records in order");
        let (root, fork) = (editor.root().clone(), editor.inode_root_bytes());
        let loaded = editor.store.clone();
        compare(kind, &model, &root, fork.as_deref(), &loaded);
        for change in &changes {
            apply(kind, &mut editor, &mut model, change);
        }
        let (root, fork) = (editor.root().clone(), editor.inode_root_bytes());
        compare(kind, &model, &root, fork.as_deref(), &store);
    });
}

#[test]
fn bad_records_are_refused() {
    let (kind, geometry) = (BtreeKind::Bnobt, geometry());
    let layout = Layout::of_block(&geometry, kind);
    let identity = TreeIdentity::new(&geometry, owner(kind));
    let load = |count, records: Vec<Vec<u8>>| {
        bulk_load(&mut new_store(), layout, identity, None, Fill::Full, count, &mut records.into_iter()).is_ok()
    };
    let (a, b) = (record(kind, 1, 0), record(kind, 2, 0));
    assert!(load(2, vec![a.clone(), b.clone()]));
    assert!(!load(2, vec![b.clone(), a.clone()]));
    assert!(!load(2, vec![a.clone(), a.clone()]));
    assert!(!load(3, vec![a.clone(), b.clone()]));
    assert!(!load(1, vec![a.clone(), b]));
    assert!(!load(1, vec![vec![0; 7]]));
    let mut store = new_store();
    assert!(new_editor(kind, &mut store).insert(&a[1..]).is_err());
}
