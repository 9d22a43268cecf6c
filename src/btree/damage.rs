//! Trees with damage: each by the check that it must fail, and noise that must not stop a walk.

use proptest::prelude::*;

use super::model::{cache_of, device_of, geometry, load, record};
use super::*;
use crate::buffer::{BlockKind, Verifier};
use crate::device::Device;
use crate::error::{Check, Rule};
use crate::geometry::{AgBlock, AgNumber, BtreeKind};

/// A free space btree of three levels: its blocks, the root's pointer, and its levels.
fn tall_tree() -> (MemoryStore, u64, u32) {
    let (store, root) = load(BtreeKind::Bnobt, 12_000, Fill::Middle);
    let EditRoot::Block { pointer, levels } = root else { unreachable!("invariant: such roots lie in blocks") };
    assert_eq!(levels, 3);
    (store, pointer, levels)
}

/// The blocks of a level from left to right.
fn level(store: &MemoryStore, level: u32) -> Vec<u64> {
    let layout = Layout::of_block(&geometry(), BtreeKind::Bnobt);
    let node = |bytes: &[u8]| Node::decode(layout, bytes).map(|node| (node.level, node.left, node.right)).ok();
    let nodes: Vec<_> = store.blocks().iter().filter_map(|(at, bytes)| Some((*at, node(bytes)?))).collect();
    let mut next = nodes.iter().find(|(_, node)| node.0 == level && node.1.is_none()).map(|(at, _)| *at);
    let mut found = Vec::new();
    while let Some(at) = next {
        found.push(at);
        next = nodes.iter().find(|(other, _)| *other == at).and_then(|(_, node)| node.2);
    }
    found
}

fn tree(pointer: u64, levels: u32) -> Tree<'static> {
    Tree::of_group(BtreeKind::Bnobt, AgNumber(0), AgBlock(u32::try_from(pointer).expect("small")), levels)
}

/// Changes a node in the way of `change`, and walks; the checks that the tree fails.
fn after(at: impl Fn(&MemoryStore, u64) -> u64, change: impl Fn(&mut NodeBuf, &MemoryStore)) -> (Vec<Check>, Walked) {
    let (mut store, root, levels) = tall_tree();
    let at = at(&store, root);
    let layout = Layout::of_block(&geometry(), BtreeKind::Bnobt);
    let bytes = store.read(at).expect("a block of the tree");
    let mut node = NodeBuf::of(&Node::decode(layout, &bytes).expect("sound"));
    change(&mut node, &store);
    let identity = TreeIdentity::new(&geometry(), TreeOwner::Group(AgNumber(0)));
    let daddr = store.daddr(at);
    store.write(at, node.encode(&layout, &identity, daddr).expect("fits")).expect("a block of the tree");
    let cache = cache_of(device_of(&store));
    let walked = walk(&cache, &tree(root, levels), 10_000, &mut |_| Ok(Step::Continue)).expect("readable");
    let mut checks: Vec<Check> = walked.verdict.failures().iter().map(|failure| failure.check).collect();
    checks.dedup();
    (checks, walked)
}

fn second_leaf(store: &MemoryStore, _: u64) -> u64 {
    level(store, 0)[1]
}

fn root_of(_: &MemoryStore, root: u64) -> u64 {
    root
}

fn check(field: &'static str, rule: Rule) -> Check {
    Check::new("bnobt", field, rule)
}

#[test]
fn what_blocks_say_of_each_other_is_checked() {
    let (failed, _) = after(second_leaf, |node, store| node.left = Some(level(store, 0)[3]));
    assert_eq!(failed, [check("leftsib", Rule::Mismatch)]);
    let (failed, _) = after(second_leaf, |node, store| node.right = Some(level(store, 0)[5]));
    assert_eq!(failed, [check("rightsib", Rule::Mismatch)]);
    let last = |store: &MemoryStore, _| *level(store, 0).last().expect("leaves");
    let (failed, _) = after(last, |node, store| node.right = Some(level(store, 0)[0]));
    assert_eq!(failed, [check("rightsib", Rule::Mismatch)]);
    let first = |store: &MemoryStore, _| level(store, 0)[0];
    let (failed, _) = after(first, |node, store| node.left = Some(level(store, 0)[7]));
    assert_eq!(failed, [check("leftsib", Rule::Mismatch)]);
    let (failed, _) = after(second_leaf, |node, _| node.items.truncate(3));
    assert_eq!(failed, [check("numrecs", Rule::Range)]);
    let (failed, _) = after(second_leaf, |node, _| node.items.swap(4, 5));
    assert_eq!(failed, [check("rec", Rule::Order)]);
    let (failed, _) = after(second_leaf, |node, _| node.items[0] = Item::Record(vec![0, 0, 0, 8, 0, 0, 0, 1]));
    assert_eq!(failed, [check("key", Rule::Mismatch), check("rec", Rule::Order)]);
    let (failed, _) = after(second_leaf, |node, _| node.items[9] = Item::Record(vec![0xff; 8]));
    assert!(failed.contains(&check("startblock", Rule::Range)));
}

#[test]
fn lost_and_repeated_blocks_end_no_walk() {
    let swap_child = |node: &mut NodeBuf, to: u64| {
        if let Item::Child { pointer, .. } = &mut node.items[1] {
            *pointer = to;
        }
    };
    let (failed, walked) = after(root_of, |node, store| swap_child(node, level(store, 1)[0]));
    assert_eq!(failed[0], check("ptr", Rule::Cycle));
    assert!(!walked.complete && walked.records > 1000);
    let (failed, walked) = after(root_of, |node, _| swap_child(node, u64::from(u32::MAX - 1)));
    assert_eq!(failed[0], check("ptr", Rule::Range));
    assert!(!walked.complete && walked.records > 1000);
    // a leaf where a node should be: its level is wrong, and what hangs there is lost
    let (failed, walked) = after(root_of, |node, store| {
        swap_child(node, *level(store, 0).last().expect("leaves"));
    });
    assert!(failed.contains(&check("level", Rule::Mismatch)));
    assert!(!walked.complete);
    let (failed, _) = after(root_of, |node, _| node.items.swap(0, 1));
    assert!(failed.contains(&check("key", Rule::Order)));
}

#[test]
fn a_walk_ends_with_its_budget_and_when_it_is_told_to() {
    let (store, root, levels) = tall_tree();
    let cache = cache_of(device_of(&store));
    let walked = walk(&cache, &tree(root, levels), 5, &mut |_| Ok(Step::Continue)).expect("readable");
    assert_eq!((walked.blocks, walked.complete), (5, false));
    let mut left = 10;
    let walked = walk(&cache, &tree(root, levels), 10_000, &mut |visit| {
        left -= i32::from(matches!(visit, Visit::Record { .. }));
        Ok(if left == 0 { Step::Stop } else { Step::Continue })
    });
    assert_eq!(walked.expect("readable").records, 10);
    let walked = walk(&cache, &tree(root, 99), 10_000, &mut |_| Ok(Step::Continue)).expect("readable");
    assert!(walked.verdict.has_failed(check("level", Rule::Range)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn noise_stops_nothing(
        noise in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..1024, any::<u8>()), 1..60),
        stamped: bool,
    ) {
        for kind in [BtreeKind::Bnobt, BtreeKind::Rmapbt] {
            let (store, root) = load(kind, 3000, Fill::Middle);
            let EditRoot::Block { pointer, levels } = root else { unreachable!("invariant: such roots lie in blocks") };
            let device = device_of(&store);
            let verifier = Verifier::new(geometry());
            for (block, offset, byte) in &noise {
                let at = *store.blocks().keys().nth(block.index(store.blocks().len())).expect("invariant: in range");
                let mut bytes = vec![0; 1024];
                device.read_at(at * 1024, &mut bytes).expect("inside");
                bytes[*offset] = *byte;
                if stamped {
                    verifier.stamp(BlockKind::Btree(kind), &mut bytes, None);
                }
                device.write_at(at * 1024, &bytes).expect("inside");
            }
            let cache = cache_of(device);
            let tree = Tree::of_group(kind, AgNumber(0), AgBlock(u32::try_from(pointer).expect("small")), levels);
            let walked = walk(&cache, &tree, 1000, &mut |_| Ok(Step::Continue)).expect("readable");
            prop_assert!(walked.blocks <= 1000);
            let source = (&cache, tree);
            let mut found = 0;
            if let Ok(mut cursor) = Cursor::at_or_before(&source, SortKey::of_record(kind, &record(kind, 5, 0))) {
                while let Ok(Some(_)) = cursor.next_record() {
                    found += 1;
                    prop_assert!(found < 100_000);
                }
            }
            let _ = overlapping(&source, SortKey([0; 3]), SortKey([u64::MAX; 3]), &mut |_| Ok(()));
        }
    }
}
