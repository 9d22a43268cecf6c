use super::*;
use crate::error::DeviceRole;
use crate::geometry::{Daddr, Ino, samples};
use crate::ondisk::log_item::LogItemType::{self, Attrd, Attri, Buf, Cud, Cui, Efd, Efi, Icreate, Inode};

fn cil(whiteouts: bool) -> Cil {
    let geometry = crate::geometry::Geometry::assume(&samples::superblock("default"));
    Cil::new(CilOptions { whiteouts, ..CilOptions::of(&geometry) })
}

fn buffer(daddr: u64) -> ItemKey {
    ItemKey::Buffer(BufferKey { device: DeviceRole::Data, daddr: Daddr(daddr), len: 4096 })
}

fn size(regions: u32, bytes: u64) -> ItemSize {
    ItemSize { regions, bytes }
}

fn intent(kind: LogItemType, id: u64) -> LoggedIntent {
    LoggedIntent { id, kind, regions: vec![vec![0; 40], vec![0; 6]] }
}

fn done(kind: LogItemType, intent_id: u64) -> LoggedDone {
    LoggedDone { intent_id, kind, regions: vec![vec![0; 16]] }
}

fn kinds(taken: &TakenCheckpoint) -> Vec<LogItemType> {
    taken.items.iter().map(|(item, _)| item.kind()).collect()
}

#[test]
fn what_is_logged_again_replaces_what_was_there() {
    let mut cil = cil(true);
    let relogged = vec![(buffer(8), size(2, 100)), (ItemKey::Inode(Ino(3)), size(3, 200))];
    let committed = cil.commit(Commit { relogged, ..Commit::default() }).expect("sound");
    assert_eq!((committed.growth, cil.used()), (100 + 200 + 5 * 12, 360));
    let relogged = vec![(buffer(16), size(2, 8)), (buffer(8), size(1, 24))];
    let committed = cil.commit(Commit { relogged, ..Commit::default() }).expect("sound");
    assert_eq!((committed.sequence, committed.growth), (1, (8 + 24) + (24 + 12) - (100 + 24)));
    assert!(cil.contains(&buffer(8)) && !cil.contains(&buffer(24)));
    let taken = cil.take().expect("not empty");
    // by their last commits; within one, what was there before comes first
    let keys: Vec<_> = taken.items.iter().map(|(item, size)| (item.clone(), size.regions)).collect();
    let expected = [(ItemKey::Inode(Ino(3)), 3), (buffer(8), 1), (buffer(16), 2)];
    assert_eq!(keys, expected.map(|(key, regions)| (CheckpointItem::Relogged(key), regions)));
    assert_eq!((taken.regions(), taken.bytes()), (6, 200 + 24 + 8 + 6 * 12));
    assert_eq!(taken.totals.of(Buf), ItemTotal { items: 2, regions: 3, bytes: 32 + 36 });
    assert_eq!((cil.used(), cil.is_empty(), cil.sequence()), (0, true, 2));
}

#[test]
fn an_intent_and_its_answer_are_left_out() {
    let mut cil = cil(true);
    let inode = (ItemKey::Inode(Ino(3)), size(2, 232));
    let first = Commit { relogged: vec![inode], intents: vec![intent(Efi, 1), intent(Cui, 1)], ..Commit::default() };
    cil.commit(first).expect("sound");
    assert!(cil.contains_intent(Efi, 1) && !cil.contains_intent(Attri, 1));
    let used = cil.used();
    let committed = cil.commit(Commit { dones: vec![done(Efd, 1)], ..Commit::default() }).expect("sound");
    // 40 + 8 bytes and two headers
    assert_eq!((committed.whiteouts, committed.growth, cil.used()), (1, -72, used - 72));
    assert!(!cil.contains_intent(Efi, 1) && cil.contains_intent(Cui, 1));
    let counters = WhiteoutCounters { marked: 1, skipped: 0, released_bytes: 72 };
    assert_eq!(cil.counters(), counters);
    assert_eq!(kinds(&cil.take().expect("not empty")), [Inode, Cui]);
    assert_eq!(cil.counters(), WhiteoutCounters { skipped: 1, ..counters });
    // its intent is in the checkpoint before
    let committed = cil.commit(Commit { dones: vec![done(Cud, 1)], ..Commit::default() }).expect("sound");
    assert_eq!((committed.sequence, committed.whiteouts), (2, 0));
    assert_eq!(kinds(&cil.take().expect("not empty")), [Cud]);
}

/// A done item that comes with the intent for the rest of the work, as for relogging.
#[test]
fn chains_of_intents() {
    let mut cil = cil(true);
    cil.commit(Commit { intents: vec![intent(Attri, 1)], ..Commit::default() }).expect("sound");
    for id in 1..4 {
        let commit = Commit { dones: vec![done(Attrd, id)], intents: vec![intent(Attri, id + 1)], ..Commit::default() };
        assert_eq!(cil.commit(commit).expect("sound").whiteouts, 1);
    }
    assert_eq!(kinds(&cil.take().expect("not empty")), [Attri]);
    assert_eq!(cil.counters().marked, 3);
    cil.commit(Commit { dones: vec![done(Attrd, 4)], intents: vec![intent(Attri, 5)], ..Commit::default() })
        .expect("sound");
    assert_eq!(kinds(&cil.take().expect("not empty")), [Attrd, Attri]);
}

#[test]
fn nothing_is_left_of_some_checkpoints() {
    let mut cil = cil(true);
    cil.commit(Commit { intents: vec![intent(Efi, 9)], ..Commit::default() }).expect("sound");
    cil.commit(Commit { dones: vec![done(Efd, 9)], ..Commit::default() }).expect("sound");
    assert!(cil.is_empty() && cil.used() == 0);
    assert!(cil.take().is_none());
    assert_eq!(cil.counters(), WhiteoutCounters { marked: 1, skipped: 1, released_bytes: 72 });
}

#[test]
fn without_whiteouts_everything_is_written() {
    let mut cil = cil(false);
    let icreates = vec![vec![0; 28]];
    cil.commit(Commit { icreates, intents: vec![intent(Efi, 1)], ..Commit::default() }).expect("sound");
    cil.commit(Commit { dones: vec![done(Efd, 1)], ..Commit::default() }).expect("sound");
    assert_eq!(kinds(&cil.take().expect("not empty")), [Icreate, Efi, Efd]);
    assert_eq!(cil.counters(), WhiteoutCounters::default());
}

#[test]
fn what_makes_no_sense_is_an_error() {
    let mut cil = cil(true);
    cil.commit(Commit { intents: vec![intent(Efi, 1)], ..Commit::default() }).expect("sound");
    assert!(cil.commit(Commit { intents: vec![intent(Efi, 1)], ..Commit::default() }).is_err());
    assert!(cil.commit(Commit { dones: vec![done(Buf, 1)], ..Commit::default() }).is_err());
    assert!(cil.commit(Commit { intents: vec![intent(Efd, 1)], ..Commit::default() }).is_err());
}

#[test]
fn the_limit_is_that_of_linux() {
    let geometry = |blocks: u32, v2: bool| {
        let mut sb = samples::superblock("default");
        sb.logblocks = blocks.into();
        let mut geometry = crate::geometry::Geometry::assume(&sb);
        geometry.log.version = if v2 { 2 } else { 1 };
        CilOptions::of(&geometry).push_at
    };
    assert_eq!(geometry(16_384, true), 8 << 20);
    assert_eq!(geometry(1 << 19, true), 32 << 20);
    assert_eq!(geometry(1 << 19, false), 4 << 20);
}
