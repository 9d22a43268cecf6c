//! Tests of the walkers on blocks that point anywhere: every walk must end, and say what is wrong.

use std::ops::ControlFlow;
use std::sync::Arc;

use proptest::prelude::*;
use zerocopy::{FromZeros, IntoBytes};

use super::*;
use crate::buffer::{BlockCache, BlockKind, Verifier};
use crate::device::{Device, MemoryDevice};
use crate::error::{Error, Result, Rule};
use crate::geometry::{BtreeKind, FileBlock, FsBlock, Geometry, Ino};
use crate::ondisk::btree_block::magic;
use crate::ondisk::dinode::format;
use crate::ondisk::rt::RtWordForm;
use crate::ondisk::{
    Be64, Extent, OnDisk, RawBmbtKey, RawBmdrRoot, RawDinode, RawLongBlockV5, RawSuperblock, attr_leaf, da_block,
    dir_data, dir_leaf,
};

/// Blocks of the filesystem.
const BLOCKS: u32 = 2048;
/// The blocks that tests fill.
const USED: std::ops::Range<u64> = 64..128;
/// The inode whose forks are walked.
const INO: Ino = Ino(0x800);
const BLOCK: usize = 4096;

/// A filesystem of one group in memory.
struct Fixture {
    cache: BlockCache,
    device: Arc<MemoryDevice>,
}

impl Fixture {
    fn new() -> Self {
        let sample = include_bytes!("../../testdata/headers/default.bin");
        let (sb, _) = RawSuperblock::prefix(sample).expect("the sample has a superblock");
        let mut sb = *sb;
        sb.dblocks = u64::from(BLOCKS).into();
        sb.agblocks = BLOCKS.into();
        sb.agcount = 1.into();
        let geometry = Geometry::assume(&sb);
        assert_eq!((geometry.blocksize as usize, geometry.inodes.size), (BLOCK, 512));
        let device = Arc::new(MemoryDevice::new(u64::from(BLOCKS) * BLOCK as u64));
        let cache = BlockCache::new(Verifier::new(geometry), device.clone(), 0);
        Fixture { cache, device }
    }

    /// Puts `bytes` at block `at`, with the identity that a block of `kind` has there.
    fn put(&self, kind: BlockKind, at: u64, mut bytes: Vec<u8>) {
        bytes.resize(BLOCK, 0);
        let geometry = self.cache.geometry();
        let daddr = geometry.fsb_daddr(FsBlock(at)).expect("a block of the filesystem");
        match kind {
            BlockKind::Btree(_) => {
                let (head, _) = RawLongBlockV5::prefix_mut(&mut bytes).expect("a whole block");
                (head.blkno, head.uuid, head.owner) = (daddr.0.into(), geometry.meta_uuid, INO.0.into());
            }
            BlockKind::DirData | BlockKind::DirBlock | BlockKind::DirFree => {
                let (head, _) = dir_data::RawDir3BlkHdr::prefix_mut(&mut bytes).expect("a whole block");
                (head.blkno, head.uuid, head.owner) = (daddr.0.into(), geometry.meta_uuid, INO.0.into());
            }
            _ => {
                let (head, _) = da_block::RawDa3Blkinfo::prefix_mut(&mut bytes).expect("a whole block");
                (head.blkno, head.uuid, head.owner) = (daddr.0.into(), geometry.meta_uuid, INO.0.into());
            }
        }
        self.cache.verifier().stamp(kind, &mut bytes, None);
        self.device.write_at(daddr.0 * 512, &bytes).expect("memory takes all");
    }

    /// An inode of `mode` with these forks.
    fn inode(&self, mode: u16, size: u64, data: (u8, &[u8], u64), attr: (u8, &[u8], u32)) -> Inode {
        let mut raw = RawDinode::new_zeroed();
        raw.core.magic = RawDinode::MAGIC.into();
        raw.core.version = 3;
        raw.core.mode = mode.into();
        raw.core.format = data.0;
        raw.core.aformat = i8::from_ne_bytes([attr.0]);
        raw.core.forkoff = 24;
        raw.core.size = size.into();
        raw.flags2 = crate::ondisk::dinode::flags2::NREXT64.into();
        raw.set_extents(data.2, attr.2).expect("large counters take all");
        let mut bytes = raw.as_bytes().to_vec();
        bytes.extend(data.1.iter().chain(std::iter::repeat(&0)).take(192));
        bytes.extend_from_slice(attr.1);
        bytes.resize(512, 0);
        Inode::decode(&self.cache, INO, &bytes).expect("a whole inode")
    }
}

fn extents(list: &[(u64, u64, u32)]) -> Vec<u8> {
    let encode = |&(startoff, startblock, blockcount): &(u64, u64, u32)| {
        Extent { startoff, startblock, blockcount, unwritten: false }.encode().expect("small numbers")
    };
    list.iter().map(encode).flat_map(|raw| raw.as_bytes().to_vec()).collect()
}

/// Root of an extent btree in a fork of `size` bytes.
fn root(size: usize, level: u16, children: &[u64]) -> Vec<u8> {
    let count = u16::try_from(children.len()).expect("few children");
    let mut bytes = RawBmdrRoot { level: level.into(), numrecs: count.into() }.as_bytes().to_vec();
    put_children(&mut bytes, size, children);
    bytes
}

fn put_children(bytes: &mut Vec<u8>, size: usize, children: &[u64]) {
    let capacity = (size - bytes.len()) / (RawBmbtKey::SIZE + size_of::<Be64>());
    let pointers = bytes.len() + capacity * RawBmbtKey::SIZE;
    for at in 0..children.len() as u64 {
        bytes.extend_from_slice(RawBmbtKey { startoff: (at * 8).into() }.as_bytes());
    }
    bytes.resize(pointers, 0);
    bytes.extend(children.iter().flat_map(|child| child.to_be_bytes()));
}

fn bmbt(level: u16, count: u16) -> Vec<u8> {
    let mut head = RawLongBlockV5::new_zeroed();
    head.base.magic = magic::BMBT_V5.into();
    (head.base.level, head.base.numrecs) = (level.into(), count.into());
    (head.base.leftsib, head.base.rightsib) = (u64::MAX.into(), u64::MAX.into());
    head.as_bytes().to_vec()
}

fn bmbt_node(level: u16, children: &[u64]) -> Vec<u8> {
    let mut bytes = bmbt(level, u16::try_from(children.len()).expect("few children"));
    put_children(&mut bytes, BLOCK, children);
    bytes
}

fn bmbt_leaf(list: &[(u64, u64, u32)]) -> Vec<u8> {
    let mut bytes = bmbt(0, u16::try_from(list.len()).expect("few extents"));
    bytes.extend(extents(list));
    bytes
}

fn info(magic: u16, forw: u32) -> da_block::RawDa3Blkinfo {
    let mut info = da_block::RawDa3Blkinfo::new_zeroed();
    (info.hdr.magic, info.hdr.forw) = (magic.into(), forw.into());
    info
}

fn da_node(level: u16, children: &[(u32, u32)]) -> Vec<u8> {
    let count = u16::try_from(children.len()).expect("few children").into();
    let info = info(da_block::DA3_NODE_MAGIC, 0);
    let head = da_block::RawDa3NodeHdr { info, count, level: level.into(), pad32: 0.into() };
    let mut bytes = head.as_bytes().to_vec();
    for &(hash, before) in children {
        let entry = da_block::RawDaNodeEntry { hashval: hash.into(), before: before.into() };
        bytes.extend_from_slice(entry.as_bytes());
    }
    bytes
}

fn dir_leaf(magic: u16, forw: u32, entries: &[(u32, u32)]) -> Vec<u8> {
    let count = u16::try_from(entries.len()).expect("few entries").into();
    let info = info(magic, forw);
    let head = dir_leaf::RawDir3LeafHdr { info, count, stale: 0.into(), pad: 0.into() };
    let mut bytes = head.as_bytes().to_vec();
    for &(hash, address) in entries {
        let entry = dir_leaf::RawDirLeafEntry { hashval: hash.into(), address: address.into() };
        bytes.extend_from_slice(entry.as_bytes());
    }
    bytes
}

fn attr_leaf_of(forw: u32, entries: &[(u32, u16, u8)]) -> Vec<u8> {
    let mut head = attr_leaf::RawAttr3LeafHdr::new_zeroed();
    head.info = info(attr_leaf::ATTR3_LEAF_MAGIC, forw);
    head.count = u16::try_from(entries.len()).expect("few entries").into();
    head.firstused = 2048.into();
    let mut bytes = head.as_bytes().to_vec();
    for &(hash, nameidx, flags) in entries {
        let entry = attr_leaf::RawAttrLeafEntry { hashval: hash.into(), nameidx: nameidx.into(), flags, pad2: 0 };
        bytes.extend_from_slice(entry.as_bytes());
    }
    bytes.resize(BLOCK, 0x11);
    bytes
}

fn dir_data_of(magic: u32, names: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK];
    bytes[..4].copy_from_slice(&magic.to_be_bytes());
    let mut at = dir_data::header_len(true);
    for name in names {
        let offset = u16::try_from(at).expect("a small block");
        at += dir_data::put_entry(&mut bytes, offset, 0x801, name, Some(1)).expect("few names");
    }
    let (offset, length) = (at as u16, (BLOCK - at) as u16);
    dir_data::put_unused(&mut bytes, offset, length).expect("names do not fill the block");
    bytes
}

const DIRECTORY: u16 = 0o40755;
const NONE: (u8, &[u8], u32) = (format::EXTENTS, &[], 0);

fn rules(walk: impl IntoIterator<Item = Result<Extent>>) -> Vec<Rule> {
    let rule = |item| match item {
        Err(Error::Corrupt(failure)) => Some(failure.check.rule),
        _ => None,
    };
    walk.into_iter().filter_map(rule).collect()
}

#[test]
fn a_btree_that_comes_back_to_itself_ends() {
    let fixture = Fixture::new();
    let kind = BlockKind::Btree(BtreeKind::Bmbt);
    fixture.put(kind, 64, bmbt_node(1, &[65, 66, 65]));
    fixture.put(kind, 65, bmbt_leaf(&[(0, 100, 2), (5, 110, 1)]));
    fixture.put(kind, 66, bmbt_leaf(&[(8, 120, 1), (8, 121, 1), (16, 3000, 1)]));
    let data = root(192, 2, &[64, 64]);
    let inode = fixture.inode(0o100644, 0, (format::BTREE, &data, 3), NONE);
    let fork = inode.fork(ForkKind::Data).expect("a sound root").expect("a fork");
    let walk: Vec<_> = fork.extents(&fixture.cache).collect();
    let found: Vec<_> = walk.iter().flatten().map(|extent| extent.startoff).collect();
    assert_eq!(found, [0, 5, 8]);
    // an extent twice, one outside the filesystem, a leaf twice, a node twice, and five extents instead of three
    assert_eq!(rules(walk), [Rule::Order, Rule::Range, Rule::Cycle, Rule::Cycle, Rule::Mismatch]);
    let find = |at| find_extent(&fixture.cache, &fork, FileBlock(at)).expect("a sound way down");
    assert_eq!(find(6), None);
    assert_eq!(find(1).map(|extent| extent.startblock), Some(100));
}

#[test]
fn a_chain_of_leaves_that_comes_back_ends() {
    let fixture = Fixture::new();
    let start = fixture.cache.geometry().directory.leaf_start.0;
    let first = u32::try_from(start).expect("a small number");
    fixture.put(BlockKind::DirData, 64, dir_data_of(dir_data::DIR3_DATA_MAGIC, &[b".".to_vec(), b"..".to_vec()]));
    let children = [(5, first + 1), (5, first + 2)];
    fixture.put(BlockKind::DirHash, 65, da_node(1, &children));
    let hash = crate::ondisk::name_hash::hash_name(b"x");
    fixture.put(BlockKind::DirHash, 66, dir_leaf(dir_leaf::DIR3_LEAFN_MAGIC, first + 2, &[(hash, 0)]));
    fixture.put(BlockKind::DirHash, 67, dir_leaf(dir_leaf::DIR3_LEAFN_MAGIC, first + 1, &[(hash, 0)]));
    let free = fixture.cache.geometry().directory.free_start.0;
    let list = extents(&[(0, 64, 1), (start, 65, 3), (free, 68, 1)]);
    let inode = fixture.inode(DIRECTORY, 2 * BLOCK as u64, (format::EXTENTS, &list, 3), NONE);
    let directory = Directory::open(&fixture.cache, &inode).expect("a directory");
    assert!(directory.lookup(b"x").is_err());
    let mut names = Vec::new();
    directory.for_each(&mut |entry| {
        names.extend(entry.ok().map(|entry| entry.name.to_vec()));
        ControlFlow::Continue(())
    });
    assert_eq!(names, [b".".to_vec(), b"..".to_vec()]);
}

#[test]
fn an_extent_list_beyond_its_fork_is_refused() {
    let fixture = Fixture::new();
    for (count, fits) in [(0, true), (12, true), (13, false), (u64::MAX, false)] {
        let inode = fixture.inode(0o100644, 0, (format::EXTENTS, &[], count), NONE);
        assert_eq!(inode.fork(ForkKind::Data).is_ok(), fits, "{count}");
    }
}

/// A block that could stand anywhere in a damaged filesystem.
fn any_block() -> impl Strategy<Value = (BlockKind, Vec<u8>)> {
    let file_block = || prop_oneof![0u32..20, (0u32..20).prop_map(|at| 0x80_0000 + at)];
    let hashes = || proptest::collection::vec((0u32..9, file_block()), 1..20);
    let list = proptest::collection::vec((0u64..40, USED, 1u32..40), 1..30);
    let names = proptest::collection::vec(proptest::collection::vec(b'a'..b'd', 1..3), 1..30);
    let btree = BlockKind::Btree(BtreeKind::Bmbt);
    prop_oneof![
        (1u16..4, proptest::collection::vec(USED, 1..20)).prop_map(move |(l, c)| (btree, bmbt_node(l, &c))),
        list.prop_map(move |list| (btree, bmbt_leaf(&list))),
        (1u16..5, hashes()).prop_map(|(level, list)| (BlockKind::DirHash, da_node(level, &list))),
        (file_block(), hashes())
            .prop_map(|(forw, list)| (BlockKind::DirHash, dir_leaf(dir_leaf::DIR3_LEAFN_MAGIC, forw, &list))),
        (file_block(), proptest::collection::vec((0u32..9, 2000u16..4096, any::<u8>()), 1..20))
            .prop_map(|(forw, list)| (BlockKind::AttrHash, attr_leaf_of(forw, &list))),
        names.prop_map(|names| (BlockKind::DirData, dir_data_of(dir_data::DIR3_DATA_MAGIC, &names))),
        proptest::collection::vec(any::<u8>(), BLOCK).prop_map(|bytes| (BlockKind::DirHash, bytes)),
    ]
}

fn any_fork() -> impl Strategy<Value = (u8, Vec<u8>, u64)> {
    let start = prop_oneof![0u64..20, (0u64..20).prop_map(|at| 0x80_0000 + at)];
    let list = proptest::collection::vec((start, USED, 1u32..40), 0..7);
    prop_oneof![
        list.prop_map(|mut list| {
            list.sort_unstable();
            (format::EXTENTS, extents(&list), list.len() as u64)
        }),
        (1u16..4, proptest::collection::vec(USED, 1..6)).prop_map(|(level, children)| (
            format::BTREE,
            root(144, level, &children),
            9
        )),
        (proptest::collection::vec(any::<u8>(), 0..140), 0u64..9).prop_map(|(bytes, n)| (format::LOCAL, bytes, n)),
        (any::<u8>(), proptest::collection::vec(any::<u8>(), 0..140), any::<u64>()),
    ]
}

/// Everything that can be walked from an inode; how often something came out.
fn walk_all(source: &dyn BlockSource, inode: &Inode) -> usize {
    let mut count = 0;
    for kind in [ForkKind::Data, ForkKind::Attr] {
        if let Ok(Some(fork)) = inode.fork(kind) {
            count += fork.extents(source).count();
            count += (0..20).filter(|&at| find_extent(source, &fork, FileBlock(at)).is_ok()).count();
        }
    }
    if let Ok(directory) = Directory::open(source, inode) {
        directory.for_each(&mut |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        for name in [&b"a"[..], b"bb", b".."] {
            count += usize::from(directory.lookup(name).is_ok());
        }
        let _ = directory.form();
    }
    if let Ok(Some(attributes)) = Attributes::open(source, inode) {
        attributes.for_each(&mut |attribute| {
            count += 1;
            if let Ok(attribute) = attribute {
                let _ = attributes.value(&attribute.value);
            }
            ControlFlow::Continue(())
        });
        let _ = attributes.form();
    }
    let _ = (read_symlink(source, inode), for_each_parent(source, inode, &mut |_| ControlFlow::Continue(())));
    let _ = for_each_dquot(source, inode, QuotaKind::User, &mut |_| ControlFlow::Continue(()));
    let (kind, form) = (RtFileKind::Bitmap, RtWordForm::Groups);
    let _ = for_each_rt_words(source, inode, kind, form, &mut |_| ControlFlow::Continue(()));
    count
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_walk_ends(
        blocks in proptest::collection::vec(any_block(), 64),
        data in any_fork(),
        attr in any_fork(),
        directory in 0u8..4,
        size in prop_oneof![Just(4096u64), 0u64..9000, any::<u64>()],
    ) {
        let fixture = Fixture::new();
        for (at, (kind, bytes)) in USED.zip(blocks) {
            fixture.put(kind, at, bytes);
        }
        let mode = [DIRECTORY, DIRECTORY, 0o120777, 0o100644][usize::from(directory)];
        let extents = u32::try_from(attr.2).unwrap_or(u32::MAX);
        let inode = fixture.inode(mode, size, (data.0, &data.1, data.2), (attr.0, &attr.1, extents));
        // all blocks that were filled have fewer than 64 * 400 things in them, and mappings can repeat each block 40 times
        prop_assert!(walk_all(&fixture.cache, &inode) < 64 * 400 * 40);
    }

    #[test]
    fn random_inodes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 512), version in 0u8..5) {
        let fixture = Fixture::new();
        let mut bytes = bytes;
        bytes[4] = version;
        let inode = Inode::decode(&fixture.cache, INO, &bytes).expect("a whole inode");
        prop_assert!(!inode.verdict.is_sound());
        walk_all(&fixture.cache, &inode);
    }
}
