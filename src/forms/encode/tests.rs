//! What is made here is what the decoders read.

use super::*;
use crate::geometry::samples::superblock;
use crate::geometry::{Daddr, Geometry, Ino};
use crate::ondisk::OnDisk;
use crate::ondisk::attr_leaf::{AttrLeaf, AttrLeafName, AttrLeafValue};
use crate::ondisk::da_block::{DaNode, RawDa3Blkinfo, RawDaNodeEntry};
use crate::ondisk::dir_data::{DataKind, DirData, DirDataItem, RawDir3BlkHdr};
use crate::ondisk::dir_leaf::{DirFree, DirLeaf, LeafKind, RawDirLeafEntry};
use crate::ondisk::remote::{RawAttr3RmtHdr, RawDsymlinkHdr};

fn geometry() -> Geometry {
    Geometry::assume(&superblock("default"))
}

fn owner(geometry: &Geometry) -> BlockOwner {
    BlockOwner::new(geometry, Ino(131))
}

fn entry(hash: u32, address: u32) -> RawDirLeafEntry {
    RawDirLeafEntry { hashval: hash.into(), address: address.into() }
}

#[test]
fn a_data_block_is_full_when_nothing_fits() {
    let geometry = geometry();
    let mut data = DirDataBuilder::new(&geometry);
    let mut names = Vec::new();
    while let Some(at) = data.push(Ino(200), format!("name-{}", names.len()).as_bytes(), 1) {
        names.push(at);
    }
    let room = data.room();
    let (mut block, best) = data.into_data(&owner(&geometry));
    assert_eq!(usize::from(best), room);
    owner(&geometry).seal(Header::DirData, &mut block, Daddr(80));
    let read = DirData::decode(&block, true, true).expect("decodes");
    assert_eq!(read.kind, DataKind::Data);
    assert_eq!(read.verify(), []);
    let found = read.items().filter(|item| matches!(item, Ok(DirDataItem::Entry(_)))).count();
    assert_eq!(found, names.len());
    let (head, _) = RawDir3BlkHdr::prefix(&block).expect("long enough");
    assert_eq!((head.blkno.get(), head.owner.get()), (80, 131));
}

#[test]
fn the_only_block_has_the_index() {
    let geometry = geometry();
    let mut data = DirDataBuilder::new(&geometry);
    let at = data.push(Ino(131), b".", 2).expect("fits");
    let block = data.clone().into_only(&owner(&geometry), &[entry(46, u32::from(at) / 8)]).expect("fits");
    let read = DirData::decode(&block, true, true).expect("decodes");
    assert_eq!((read.kind, read.leaf.len(), read.verify()), (DataKind::Block, 1, vec![]));
    let many = vec![entry(1, 8); 600];
    assert_eq!(data.into_only(&owner(&geometry), &many), None);
}

#[test]
fn leaves_and_nodes_read_back() {
    let geometry = geometry();
    let owner = owner(&geometry);
    let entries = [entry(1, 8), entry(2, 16)];
    let block = encode_only_dir_leaf(&geometry, &owner, &entries, &[24, 0]).expect("fits");
    let leaf = DirLeaf::decode(&block, true).expect("decodes");
    assert_eq!((leaf.kind, leaf.entries, leaf.bests.len()), (LeafKind::Leaf1, &entries[..], 2));
    let siblings = Siblings { forw: 7, back: 6 };
    let block = encode_dir_leaf(&geometry, &owner, siblings, &entries).expect("fits");
    let leaf = DirLeaf::decode(&block, true).expect("decodes");
    assert_eq!((leaf.kind, leaf.entries, leaf.forw, leaf.back), (LeafKind::LeafN, &entries[..], 7, 6));
    assert_eq!(encode_dir_leaf(&geometry, &owner, siblings, &[entry(1, 8); 505]), None);
    let children = [RawDaNodeEntry { hashval: 9.into(), before: 3.into() }];
    let mut block = encode_da_node(4096, &owner, Siblings::default(), 2, &children).expect("fits");
    owner.seal(Header::DaBlock, &mut block, Daddr(16));
    let node = DaNode::decode(&block, true).expect("decodes");
    assert_eq!((node.level, node.entries), (2, &children[..]));
    assert!(crate::ondisk::crc::matches(&block, RawDa3Blkinfo::CRC_OFFSET));
    let block = encode_dir_free(&geometry, &owner, 5, &[24, 0xffff, 0]).expect("fits");
    let free = DirFree::decode(&block, true).expect("decodes");
    assert_eq!((free.firstdb, free.nused, free.bests.len(), free.verify()), (5, 2, 3, vec![]));
}

#[test]
fn an_attribute_leaf_reads_back() {
    let geometry = geometry();
    let mut leaf = AttrLeafBuilder::new(&geometry);
    let local = AttrLeafName { name: b"color", value: AttrLeafValue::Local(b"blue") };
    let remote = AttrLeafName { name: b"picture", value: AttrLeafValue::Remote { valueblk: 3, valuelen: 9000 } };
    assert!(leaf.push(5, 2, &local) && leaf.push(6, 0, &remote));
    let large = AttrLeafName { name: b"large", value: AttrLeafValue::Local(&[0; 4000]) };
    assert!(!leaf.push(7, 0, &large));
    assert_eq!((leaf.len(), leaf.last_hash()), (2, Some(6)));
    let block = leaf.into_leaf(&owner(&geometry), Siblings::default());
    let read = AttrLeaf::decode(&block, true).expect("decodes");
    assert_eq!(read.verify(), []);
    assert_eq!(read.name(&read.entries[0]), Ok(local));
    assert_eq!(read.name(&read.entries[1]), Ok(remote));
    assert_eq!(read.entries[0].flags, 2 | crate::ondisk::attr_short::ATTR_LOCAL);
}

#[test]
fn bytes_of_their_own_are_cut_into_blocks() {
    let geometry = geometry();
    let blocks = encode_attr_value(&geometry, &owner(&geometry), &[7; 5000]);
    let heads: Vec<_> = blocks.iter().map(|block| *RawAttr3RmtHdr::prefix(block).expect("long enough").0).collect();
    assert_eq!(
        heads.iter().map(|head| (head.offset.get(), head.bytes.get())).collect::<Vec<_>>(),
        [(0, 4040), (4040, 960)]
    );
    let (piece, held) = encode_symlink_target(&geometry, &owner(&geometry), &[b'x'; 1000], 100, 1);
    let (head, rest) = RawDsymlinkHdr::prefix(&piece).expect("long enough");
    assert_eq!((held, head.offset.get(), head.bytes.get()), (900, 100, 900));
    assert_eq!(rest[..900], [b'x'; 900]);
}

#[test]
fn the_attribute_fork_leaves_room_for_the_data_fork() {
    let geometry = geometry();
    let area = usize::try_from(geometry.inodes.literal_size).expect("small");
    for attributes in 1..=area {
        for data in (0..area).map(DataForkSize::Local).chain((0..21).map(DataForkSize::Extents)) {
            let Some(units) = short_attr_fork_offset(&geometry, data, attributes) else { continue };
            let room = usize::from(units) * 8;
            assert!(area - room >= attributes, "{data:?} {attributes}");
            match data {
                DataForkSize::Local(bytes) => assert!(bytes <= room),
                _ => assert!(room >= root_in_inode_len(3)),
            }
        }
    }
    assert_eq!(short_attr_fork_offset(&geometry, DataForkSize::Device, 100), Some(1));
    assert_eq!(block_attr_fork_offset(&geometry, DataForkSize::Local(area)), None);
}
