//! Space: random allocations, mappings, shares and frees against a plain model, on small and full volumes.

use std::collections::{BTreeMap, BTreeSet};

use xfskit::btree::Cursor;
use xfskit::error::{Error, Result};
use xfskit::forms::ForkKind;
use xfskit::geometry::{AgBlock, AgNumber, BtreeKind, FsBlock, Ino};
use xfskit::ondisk::rmap_record::owner;
use xfskit::ondisk::{Extent, OnDisk, RawAgfl, RawAllocRecord, RawRefcountRecord, RawRmapRecord};
use xfskit::transaction::{Store, Transaction};
use xfskit::volume::finish::finish;
use xfskit::volume::space::{self, AllocationRequest, GroupTree, MappingOwner, Purpose, RmapOwner, Target};

use crate::image::Image;
use crate::random::Random;
use crate::reference::reference;

/// One block of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Placed {
    block: u64,
    unwritten: bool,
}

/// Files, as far as space knows them: which blocks they have.
struct Model {
    store: Store,
    random: Random,
    files: BTreeMap<u64, BTreeMap<u64, Placed>>,
    /// Files whose blocks may be shared.
    shared: BTreeSet<u64>,
    /// Blocks held for copy on write.
    cow: BTreeMap<u64, u32>,
    /// How long extents are at most.
    longest: u64,
    /// Log that a step may take; `None` is what Linux reserves for a truncation.
    log: Option<u32>,
}

impl Model {
    fn new(image: &Image, seed: u64, longest: u64) -> Self {
        let mut store = image.store();
        space::hold_reserves(&mut store).expect("sound headers");
        let first = store.superblock().rootino.get();
        let files = (first + 10..first + 16).map(|ino| (ino, BTreeMap::new())).collect();
        Model {
            store,
            random: Random::new(seed),
            files,
            shared: BTreeSet::new(),
            cow: BTreeMap::new(),
            longest,
            log: None,
        }
    }

    /// Runs a transaction and what it defers.
    fn transact(&mut self, blocks: u64, change: impl FnOnce(&mut Transaction<'_>) -> Result<()>) -> Result<()> {
        let mut reservation = self.store.reservations().itruncate;
        reservation.logres = self.log.unwrap_or(reservation.logres);
        let mut tx = self.store.begin(reservation, blocks)?;
        change(&mut tx)?;
        finish(tx)
    }

    fn owner(&self, ino: u64) -> MappingOwner {
        MappingOwner { ino: Ino(ino), fork: ForkKind::Data, shared: self.shared.contains(&ino) }
    }

    fn any_file(&mut self) -> u64 {
        let files: Vec<u64> = self.files.keys().copied().collect();
        files[self.random.index(files.len())]
    }

    /// A range of a file without blocks.
    fn hole(&mut self, ino: u64, len: u64) -> u64 {
        let start = self.random.below(3000);
        let file = &self.files[&ino];
        let taken = |start: u64| file.range(start..start + len).next_back().map(|(at, _)| at + 1);
        let mut at = start;
        while let Some(next) = taken(at) {
            at = next;
        }
        at
    }

    /// A run of blocks of a file that one extent maps.
    fn run(&mut self, ino: u64) -> Option<Extent> {
        let starts: Vec<u64> = self.files[&ino].keys().copied().collect();
        if starts.is_empty() {
            return None;
        }
        let start = starts[self.random.index(starts.len())];
        let len = 1 + self.random.below(2 * self.longest);
        let file = &self.files[&ino];
        let first = file[&start];
        let fits = |step: &u64| {
            file.get(&(start + step)) == Some(&Placed { block: first.block + step, unwritten: first.unwritten })
        };
        let count = (0..len).take_while(fits).count();
        let blockcount = u32::try_from(count).expect("small");
        Some(Extent { startoff: start, startblock: first.block, blockcount, unwritten: first.unwritten })
    }

    fn note(&mut self, ino: u64, extent: &Extent) {
        let file = self.files.get_mut(&ino).expect("a file");
        for step in 0..u64::from(extent.blockcount) {
            let placed = Placed { block: extent.startblock + step, unwritten: extent.unwritten };
            assert_eq!(file.insert(extent.startoff + step, placed), None);
        }
    }

    fn target(&mut self) -> Target {
        let geometry = self.store.geometry();
        let (agcount, agblocks) = (geometry.agcount, geometry.agblocks);
        let agno = AgNumber(u32::try_from(self.random.below(u64::from(agcount))).expect("small"));
        let blocks = u64::from(self.store.geometry().ag_blocks(agno).unwrap_or(agblocks));
        let agbno = AgBlock(u32::try_from(self.random.below(blocks)).expect("small"));
        let block = self.store.geometry().fsb(agno, agbno).expect("a block of the group");
        match self.random.below(8) {
            0 => Target::InGroup(agno),
            1 => Target::Near(block),
            2 => Target::Exact(block),
            _ => Target::StartingAt(block),
        }
    }

    fn allocate(&mut self) -> Result<bool> {
        let ino = self.any_file();
        let max = u32::try_from(1 + self.random.below(self.longest)).expect("small");
        let mut request = AllocationRequest::new(self.target(), 1, max, RmapOwner::SKIP, Purpose::UserData);
        if !matches!(request.target, Target::Exact(_)) && self.random.below(4) == 0 {
            request.align = 1 << self.random.below(4);
        }
        let startoff = self.hole(ino, u64::from(max));
        let unwritten = self.random.below(3) == 0;
        let owner = self.owner(ino);
        let mut got = None;
        self.transact(u64::from(max), |tx| {
            let Some((start, len)) = space::allocate(tx, &request)? else { return Ok(()) };
            assert!((1..=max).contains(&len), "{request:?} gives {len}");
            let extent = Extent { startoff, startblock: start.0, blockcount: len, unwritten };
            space::rmap_map(tx, &owner, &extent);
            got = Some(extent);
            Ok(())
        })?;
        let Some(extent) = got else { return Ok(false) };
        let (_, agbno) = self.store.geometry().fsb_parts(FsBlock(extent.startblock)).expect("a block");
        assert_eq!(agbno.0 % request.align, 0, "{request:?}");
        self.note(ino, &extent);
        Ok(true)
    }

    fn unmap(&mut self, ino: u64, extent: &Extent) -> Result<()> {
        let owner = self.owner(ino);
        let extent = *extent;
        self.transact(0, |tx| {
            space::rmap_unmap(tx, &owner, &extent);
            if owner.shared {
                space::refcount_decrease(tx, FsBlock(extent.startblock), extent.blockcount);
            } else {
                space::free_later(tx, FsBlock(extent.startblock), extent.blockcount, &RmapOwner::SKIP);
            }
            Ok(())
        })?;
        let file = self.files.get_mut(&ino).expect("a file");
        for step in 0..u64::from(extent.blockcount) {
            file.remove(&(extent.startoff + step)).expect("mapped");
        }
        Ok(())
    }

    fn convert(&mut self) -> Result<()> {
        let ino = self.any_file();
        let Some(extent) = self.run(ino) else { return Ok(()) };
        let after = Extent { unwritten: !extent.unwritten, ..extent };
        let owner = self.owner(ino);
        self.transact(0, |tx| {
            space::rmap_convert(tx, &owner, &after);
            Ok(())
        })?;
        let file = self.files.get_mut(&ino).expect("a file");
        for step in 0..u64::from(extent.blockcount) {
            file.get_mut(&(extent.startoff + step)).expect("mapped").unwritten = after.unwritten;
        }
        Ok(())
    }

    fn share(&mut self) -> Result<()> {
        let (from, to) = (self.any_file(), self.any_file());
        let Some(extent) = self.run(from).filter(|extent| !extent.unwritten) else { return Ok(()) };
        self.shared.extend([from, to]);
        let copy = Extent { startoff: self.hole(to, u64::from(extent.blockcount)), ..extent };
        let owner = self.owner(to);
        self.transact(0, |tx| {
            space::refcount_increase(tx, FsBlock(copy.startblock), copy.blockcount);
            space::rmap_map(tx, &owner, &copy);
            Ok(())
        })?;
        self.note(to, &copy);
        Ok(())
    }

    fn hold_for_copy(&mut self) -> Result<()> {
        let max = u32::try_from(1 + self.random.below(self.longest)).expect("small");
        let request = AllocationRequest::new(self.target(), 1, max, RmapOwner::SKIP, Purpose::UserData);
        let mut got = None;
        self.transact(u64::from(max), |tx| {
            got = space::allocate(tx, &request)?;
            if let Some((start, len)) = got {
                space::cow_alloc(tx, start, len);
            }
            Ok(())
        })?;
        if let Some((start, len)) = got {
            self.cow.insert(start.0, len);
        }
        Ok(())
    }

    fn drop_copy(&mut self, start: u64) -> Result<()> {
        let len = self.cow[&start];
        self.transact(0, |tx| {
            space::cow_free(tx, FsBlock(start), len);
            space::free_later(tx, FsBlock(start), len, &RmapOwner::SKIP);
            Ok(())
        })?;
        self.cow.remove(&start);
        Ok(())
    }

    /// One operation; `false` when there was no room for it.
    fn step(&mut self) -> Result<bool> {
        let reflink = self.store.geometry().features.has_reflink();
        match self.random.below(12) {
            0..=4 => return self.allocate(),
            5..=7 => {
                let ino = self.any_file();
                if let Some(extent) = self.run(ino) {
                    self.unmap(ino, &extent)?;
                }
            }
            8 => self.convert()?,
            9 if reflink => self.share()?,
            10 if reflink => self.hold_for_copy()?,
            11 if reflink => {
                let starts: Vec<u64> = self.cow.keys().copied().collect();
                if !starts.is_empty() {
                    let start = starts[self.random.index(starts.len())];
                    self.drop_copy(start)?;
                }
            }
            _ => {}
        }
        Ok(true)
    }

    /// Operations; without room the journal is pushed, so that what was freed can be had again.
    fn run_steps(&mut self, count: usize) {
        for step in 0..count {
            match self.step() {
                Ok(true) => {}
                Ok(false) | Err(Error::NoSpace(_)) => self.store.push().expect("written"),
                Err(error) => panic!("step {step}: {error}"),
            }
        }
    }

    /// Allocates until nothing is left.
    fn fill(&mut self) {
        loop {
            let ino = self.any_file();
            let most = u32::try_from(self.store.available_blocks().min(self.longest)).expect("small");
            let origin = FsBlock(0);
            let request =
                AllocationRequest::new(Target::StartingAt(origin), 1, most.max(1), RmapOwner::SKIP, Purpose::UserData);
            let startoff = self.files[&ino].last_key_value().map_or(0, |(last, _)| last + 1);
            let owner = self.owner(ino);
            let mut got = None;
            let result = self.transact(u64::from(most.max(1)), |tx| {
                let Some((start, len)) = space::allocate(tx, &request)? else { return Ok(()) };
                let extent = Extent { startoff, startblock: start.0, blockcount: len, unwritten: false };
                space::rmap_map(tx, &owner, &extent);
                got = Some(extent);
                Ok(())
            });
            match (result, got) {
                (Ok(()), Some(extent)) => self.note(ino, &extent),
                (Ok(()), None) | (Err(Error::NoSpace(_)), _) => return,
                (Err(error), _) => panic!("{error}"),
            }
        }
    }

    fn free_all(&mut self) {
        let files: Vec<u64> = self.files.keys().copied().collect();
        for ino in files {
            while let Some(extent) = self.run(ino) {
                self.unmap(ino, &extent).expect("mapped");
            }
        }
        let held: Vec<u64> = self.cow.keys().copied().collect();
        held.into_iter().for_each(|start| self.drop_copy(start).expect("held"));
    }

    fn records<T: OnDisk + Copy>(&self, agno: AgNumber, kind: BtreeKind) -> Vec<T> {
        let tree = GroupTree::of(&self.store, agno, kind).expect("a tree");
        let mut cursor = Cursor::first(&tree).expect("a root");
        std::iter::from_fn(|| cursor.next_record().expect("sound"))
            .map(|record| *T::prefix(&record).expect("a record").0)
            .collect()
    }

    /// Everything that the model says about a group stands in its btrees, and nothing else.
    fn check(&self) {
        for agno in self.store.geometry().ag_numbers() {
            let free = self.check_free_space(agno);
            if self.store.geometry().features.has_rmapbt() {
                self.check_owners(agno, &free);
            }
            if self.store.geometry().features.has_reflink() {
                self.check_counts(agno);
            }
        }
    }

    fn check_free_space(&self, agno: AgNumber) -> BTreeSet<u32> {
        let geometry = self.store.geometry();
        let by_start: Vec<RawAllocRecord> = self.records(agno, BtreeKind::Bnobt);
        let mut by_len: Vec<RawAllocRecord> = self.records(agno, BtreeKind::Cntbt);
        by_len.sort_by_key(|record| record.startblock.get());
        assert_eq!(by_start, by_len, "group {agno}");
        let gap = by_start
            .windows(2)
            .all(|pair| pair[0].startblock.get() + pair[0].blockcount.get() < pair[1].startblock.get());
        assert!(gap, "free extents that touch in group {agno}");
        let agf = space::agf(&self.store, agno).expect("a header");
        let blocks: BTreeSet<u32> = (by_start.iter())
            .flat_map(|record| record.startblock.get()..record.startblock.get() + record.blockcount.get())
            .collect();
        assert_eq!(agf.freeblks.get(), u32::try_from(blocks.len()).expect("small"));
        let longest = by_start.iter().map(|record| record.blockcount.get()).max().unwrap_or(0);
        assert_eq!(agf.longest.get(), longest, "group {agno}");
        for placed in self.files.values().flat_map(BTreeMap::values) {
            let (group, agbno) = geometry.fsb_parts(FsBlock(placed.block)).expect("a block");
            assert!(group != agno || !blocks.contains(&agbno.0), "block {agbno} of group {agno} is used and free");
        }
        let trees = [BtreeKind::Bnobt, BtreeKind::Cntbt];
        let count = |kind| GroupTree::of(&self.store, agno, kind).expect("a tree").count_blocks().expect("sound") - 1;
        let mut below_roots: u64 = trees.into_iter().map(count).sum();
        if geometry.features.has_rmapbt() {
            below_roots += count(BtreeKind::Rmapbt);
            assert_eq!(u64::from(agf.rmap_blocks.get()), count(BtreeKind::Rmapbt) + 1);
        }
        if geometry.features.has_reflink() {
            assert_eq!(u64::from(agf.refcount_blocks.get()), count(BtreeKind::Refcountbt) + 1);
        }
        assert_eq!(u64::from(agf.btreeblks.get()), below_roots, "group {agno}");
        blocks
    }

    /// All blocks of files in a group with their owners: block, file, place in it, whether unwritten.
    fn owned(&self, agno: AgNumber) -> Vec<(u32, u64, u64, bool)> {
        let parts = |block| self.store.geometry().fsb_parts(FsBlock(block)).expect("a block");
        let mut owned: Vec<_> = (self.files.iter())
            .flat_map(|(ino, file)| file.iter().map(move |(offset, placed)| (*ino, *offset, *placed)))
            .filter(|(_, _, placed)| parts(placed.block).0 == agno)
            .map(|(ino, offset, placed)| (parts(placed.block).1.0, ino, offset, placed.unwritten))
            .collect();
        owned.sort_unstable();
        owned
    }

    fn check_owners(&self, agno: AgNumber, free: &BTreeSet<u32>) {
        let records: Vec<_> = self.records::<RawRmapRecord>(agno, BtreeKind::Rmapbt);
        let records: Vec<_> = records.iter().map(|raw| raw.decode().expect("a mapping")).collect();
        let mut found = Vec::new();
        let mut covered = BTreeSet::new();
        for record in &records {
            for step in 0..record.blockcount {
                let block = record.startblock + step;
                if self.files.contains_key(&record.owner) {
                    found.push((block, record.owner, record.offset + u64::from(step), record.unwritten));
                    covered.insert(block);
                } else {
                    assert!(covered.insert(block), "block {block} of group {agno} has two owners");
                }
            }
        }
        found.sort_unstable();
        assert_eq!(found, self.owned(agno), "group {agno}");
        assert!(covered.is_disjoint(free), "group {agno}: owned and free");
        let blocks = self.store.geometry().ag_blocks(agno).expect("a group");
        assert_eq!(covered.len() + free.len(), usize::try_from(blocks).expect("small"), "group {agno}");
        let unjoined = records.iter().any(|left| {
            records.iter().any(|right| {
                left.startblock + left.blockcount == right.startblock
                    && (left.owner, left.unwritten, left.attr_fork) == (right.owner, right.unwritten, right.attr_fork)
                    && (owner::is_special(left.owner) || left.offset + u64::from(left.blockcount) == right.offset)
            })
        });
        assert!(!unjoined, "group {agno}: mappings that should be one");
        self.check_free_list(
            agno,
            &records
                .iter()
                .filter(|record| record.owner == owner::AG)
                .flat_map(|record| record.startblock..record.startblock + record.blockcount)
                .collect(),
        );
    }

    /// Blocks of the free list belong to the group.
    fn check_free_list(&self, agno: AgNumber, of_group: &BTreeSet<u32>) {
        let geometry = self.store.geometry();
        let agf = space::agf(&self.store, agno).expect("a header");
        let daddr = geometry.ag_header_daddr(agno, RawAgfl::SECTOR).expect("a group");
        let request = xfskit::buffer::Request::new(geometry, xfskit::buffer::BlockKind::Agfl, daddr);
        let bytes = self.store.bytes_of(&request).expect("a list");
        let entries = RawAgfl::entries(&bytes, geometry.features.has_crc());
        let (first, count) = (agf.flfirst.get(), agf.flcount.get());
        for index in first..first + count {
            let at = usize::try_from(index % geometry.agfl_capacity).expect("small");
            assert!(of_group.contains(&entries[at].get()), "group {agno}: {}", entries[at]);
        }
    }

    fn check_counts(&self, agno: AgNumber) {
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        for (block, ..) in self.owned(agno) {
            *counts.entry(block).or_default() += 1;
        }
        counts.retain(|_, count| *count > 1);
        let mut held = BTreeSet::new();
        for (start, len) in &self.cow {
            let (group, agbno) = self.store.geometry().fsb_parts(FsBlock(*start)).expect("a block");
            if group == agno {
                held.extend(agbno.0..agbno.0 + len);
            }
        }
        let (mut found, mut found_held) = (BTreeMap::new(), BTreeSet::new());
        let records: Vec<_> = self.records::<RawRefcountRecord>(agno, BtreeKind::Refcountbt);
        let records: Vec<_> = records.iter().map(RawRefcountRecord::decode).collect();
        for record in &records {
            for block in record.startblock..record.startblock + record.blockcount {
                if record.cow {
                    assert!(found_held.insert(block));
                } else {
                    assert_eq!(found.insert(block, record.refcount), None);
                }
            }
        }
        assert_eq!(found, counts, "group {agno}");
        assert_eq!(found_held, held, "group {agno}");
        let unjoined = records.windows(2).any(|pair| {
            pair[0].startblock + pair[0].blockcount == pair[1].startblock
                && (pair[0].refcount, pair[0].cow) == (pair[1].refcount, pair[1].cow)
        });
        assert!(!unjoined, "group {agno}: counts that should be one");
    }
}

struct Kind {
    megabytes: u64,
    arguments: &'static [&'static str],
    longest: u64,
}

const KINDS: [Kind; 7] = [
    Kind { megabytes: 64, arguments: &["-d", "agcount=3"], longest: 40 },
    Kind { megabytes: 32, arguments: &["-b", "size=1k", "-d", "agcount=2"], longest: 12 },
    Kind { megabytes: 32, arguments: &["-b", "size=1k", "-m", "rmapbt=0,reflink=1", "-d", "agcount=2"], longest: 20 },
    Kind { megabytes: 300, arguments: &["-b", "size=65536", "-d", "agcount=2"], longest: 20 },
    Kind { megabytes: 32, arguments: &["-m", "crc=0", "-b", "size=1k", "-d", "agcount=2"], longest: 12 },
    Kind { megabytes: 64, arguments: &["-m", "crc=0", "-l", "version=1,size=10m", "-d", "agcount=2"], longest: 40 },
    Kind {
        megabytes: 32,
        arguments: &["-m", "rmapbt=0,reflink=0,finobt=0", "-d", "agcount=2", "-b", "size=1k"],
        longest: 12,
    },
];

#[test]
fn random_changes_are_those_of_the_model() {
    let Some(reference) = reference() else { return };
    let rounds = if std::env::var_os("XFSKIT_FULL").is_some() { 20 } else { 3 };
    for (kind, seed) in KINDS.iter().zip(1..) {
        let image = Image::new(kind.megabytes, kind.arguments);
        let mut model = Model::new(&image, 0x9e37_79b9_7f4a_7c15 ^ seed, kind.longest);
        for _ in 0..rounds {
            model.run_steps(400);
            model.check();
        }
        model.free_all();
        model.check();
        model.store.close().expect("written");
        image.assert_repaired(reference);
    }
}

/// Volumes without room: what was freed can be had again, and what the groups hold stays theirs.
#[test]
fn full_volumes_stay_sound() {
    let Some(reference) = reference() else { return };
    for (kind, seed) in KINDS.iter().zip(77..) {
        let image = Image::new(kind.megabytes, kind.arguments);
        let mut model = Model::new(&image, seed, 8 * kind.longest);
        model.fill();
        let left = model.store.available_blocks();
        assert!(left < 64, "{left} blocks are left of a full volume");
        model.longest = kind.longest;
        for _ in 0..2 {
            model.run_steps(300);
            model.check();
        }
        model.free_all();
        model.check();
        model.store.close().expect("written");
        image.assert_repaired(reference);
    }
}

/// A volume that Linux fills from file to file and one filled here have as much room.
#[test]
fn a_volume_is_as_full_as_for_linux() {
    let Some(_) = reference() else { return };
    for arguments in [&["-d", "agcount=3"][..], &["-b", "size=1k"], &["-m", "rmapbt=0"], &["-m", "reflink=0,rmapbt=1"]]
    {
        let image = Image::new(300, arguments);
        let mut store = image.store();
        space::hold_reserves(&mut store).expect("sound headers");
        let available = store.available_blocks();
        let blocksize = store.geometry().blocksize;
        drop(store);
        let seen = image.mounted(|folder| {
            let output = std::process::Command::new("stat").args(["-f", "-c", "%a %S"]).arg(folder).output();
            String::from_utf8_lossy(&output.expect("stat runs").stdout).trim().to_owned()
        });
        if let Some(seen) = seen {
            assert_eq!(seen, format!("{available} {blocksize}"), "{arguments:?}");
        }
    }
}

/// Changes of counts that are too many for one transaction go on in others.
#[test]
fn counts_change_in_several_transactions() {
    let Some(reference) = reference() else { return };
    let image = Image::new(64, &["-d", "agcount=2", "-b", "size=1k"]);
    let mut model = Model::new(&image, 4711, 100);
    // as if there were log for two changed records
    let levels = model.store.geometry().btree(BtreeKind::Refcountbt).max_levels;
    model.log = Some(levels * 1024 + 65);
    for _ in 0..2 {
        model.run_steps(400);
        model.check();
    }
    model.free_all();
    model.check();
    model.store.close().expect("written");
    image.assert_repaired(reference);
}
