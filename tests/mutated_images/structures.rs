//! Where the structures of an image are, and what they are: told by magic numbers, and places by the geometry.

use std::collections::BTreeMap;

use xfskit::device::Device;
use xfskit::geometry::Geometry;
use xfskit::ondisk::btree_block::magic as tree;
use xfskit::ondisk::da_block::{DA_NODE_MAGIC, DA3_NODE_MAGIC, RawDa3Blkinfo, RawDa3NodeHdr, RawDaNodeHdr};
use xfskit::ondisk::dir_data::{
    DIR2_BLOCK_MAGIC, DIR2_DATA_MAGIC, DIR3_BLOCK_MAGIC, DIR3_DATA_MAGIC, RawDir2DataHdr, RawDir3BlkHdr, RawDir3DataHdr,
};
use xfskit::ondisk::dir_leaf::{
    DIR2_FREE_MAGIC, DIR2_LEAF1_MAGIC, DIR2_LEAFN_MAGIC, DIR3_FREE_MAGIC, DIR3_LEAF1_MAGIC, DIR3_LEAFN_MAGIC,
    RawDir2FreeHdr, RawDir2LeafHdr, RawDir3FreeHdr, RawDir3LeafHdr,
};
use xfskit::ondisk::remote::{ATTR3_RMT_MAGIC, RawAttr3RmtHdr, RawDsymlinkHdr, SYMLINK_MAGIC};
use xfskit::ondisk::{
    Field, FieldKind, OnDisk, RawAgf, RawAgfl, RawAgi, RawDinode, RawDinodeCore, RawDquotBlock, RawLongBlock,
    RawLongBlockV5, RawRtBlockHeader, RawRtSuperblock, RawShortBlock, RawShortBlockV5, RawSuperblock,
    attr_leaf::{ATTR_LEAF_MAGIC, ATTR3_LEAF_MAGIC, RawAttr3LeafHdr, RawAttrLeafHdr},
};

/// How long a structure is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Sector,
    Block,
    DirectoryBlock,
    Inode,
    Dquot,
}

/// A kind of structure.
pub struct Form {
    /// What xfs_db calls the type.
    pub name: &'static str,
    /// Where the magic number is. how many bytes it has, and what it is.
    magic: (usize, usize, u32),
    pub fields: &'static [Field],
    /// Bytes of the header: what follows are records.
    pub header: usize,
    /// Where the CRC is, in version 5.
    pub crc: Option<usize>,
    pub unit: Unit,
}

const fn form<T: OnDisk>(name: &'static str, magic: (usize, usize, u32), crc: Option<usize>, unit: Unit) -> Form {
    Form { name, magic, fields: T::FIELDS, header: T::SIZE, crc, unit }
}

const fn short(name: &'static str, magic: u32) -> Form {
    form::<RawShortBlockV5>(name, (0, 4, magic), Some(RawShortBlockV5::CRC_OFFSET), Unit::Block)
}

const fn long(name: &'static str, magic: u32) -> Form {
    form::<RawLongBlockV5>(name, (0, 4, magic), Some(RawLongBlockV5::CRC_OFFSET), Unit::Block)
}

/// Of directories and attributes: the magic number stands in the ninth byte.
const fn hashed<T: OnDisk>(name: &'static str, magic: u16, crc: bool, unit: Unit) -> Form {
    let crc = if crc { Some(RawDa3Blkinfo::CRC_OFFSET) } else { None };
    form::<T>(name, (8, 2, magic as u32), crc, unit)
}

const fn directory<T: OnDisk>(magic: u32, crc: bool) -> Form {
    let crc = if crc { Some(RawDir3BlkHdr::CRC_OFFSET) } else { None };
    form::<T>("dir", (0, 4, magic), crc, Unit::DirectoryBlock)
}

/// The free list of groups of version 4, which has no magic number.
const BARE_FREE_LIST: Form =
    Form { name: "agfl", magic: (0, 0, 0), fields: &[], header: 0, crc: None, unit: Unit::Sector };

const OF_SECTORS: &[Form] = &[
    form::<RawSuperblock>("sb", (0, 4, RawSuperblock::MAGIC), Some(RawSuperblock::CRC_OFFSET), Unit::Sector),
    form::<RawAgf>("agf", (0, 4, RawAgf::MAGIC), Some(RawAgf::CRC_OFFSET), Unit::Sector),
    form::<RawAgi>("agi", (0, 4, RawAgi::MAGIC), Some(RawAgi::CRC_OFFSET), Unit::Sector),
    form::<RawAgfl>("agfl", (0, 4, RawAgfl::MAGIC), Some(RawAgfl::CRC_OFFSET), Unit::Sector),
];

const OF_BLOCKS: &[Form] = &[
    short("bnobt", tree::BNOBT_V5),
    short("cntbt", tree::CNTBT_V5),
    short("inobt", tree::INOBT_V5),
    short("finobt", tree::FINOBT_V5),
    short("rmapbt", tree::RMAPBT_V5),
    short("refcntbt", tree::REFCOUNTBT_V5),
    long("bmapbtd", tree::BMBT_V5),
    long("rtrmapbt", tree::RTRMAPBT_V5),
    long("rtrefcntbt", tree::RTREFCOUNTBT_V5),
    form::<RawShortBlock>("bnobt", (0, 4, tree::BNOBT), None, Unit::Block),
    form::<RawShortBlock>("cntbt", (0, 4, tree::CNTBT), None, Unit::Block),
    form::<RawShortBlock>("inobt", (0, 4, tree::INOBT), None, Unit::Block),
    form::<RawShortBlock>("finobt", (0, 4, tree::FINOBT), None, Unit::Block),
    form::<RawLongBlock>("bmapbtd", (0, 4, tree::BMBT), None, Unit::Block),
    directory::<RawDir3DataHdr>(DIR3_BLOCK_MAGIC, true),
    directory::<RawDir3DataHdr>(DIR3_DATA_MAGIC, true),
    directory::<RawDir2DataHdr>(DIR2_BLOCK_MAGIC, false),
    directory::<RawDir2DataHdr>(DIR2_DATA_MAGIC, false),
    directory::<RawDir3FreeHdr>(DIR3_FREE_MAGIC, true),
    directory::<RawDir2FreeHdr>(DIR2_FREE_MAGIC, false),
    hashed::<RawDir3LeafHdr>("dir", DIR3_LEAF1_MAGIC, true, Unit::DirectoryBlock),
    hashed::<RawDir3LeafHdr>("dir", DIR3_LEAFN_MAGIC, true, Unit::DirectoryBlock),
    hashed::<RawDir2LeafHdr>("dir", DIR2_LEAF1_MAGIC, false, Unit::DirectoryBlock),
    hashed::<RawDir2LeafHdr>("dir", DIR2_LEAFN_MAGIC, false, Unit::DirectoryBlock),
    hashed::<RawAttr3LeafHdr>("attr", ATTR3_LEAF_MAGIC, true, Unit::Block),
    hashed::<RawAttrLeafHdr>("attr", ATTR_LEAF_MAGIC, false, Unit::Block),
    hashed::<RawDa3NodeHdr>("attr", DA3_NODE_MAGIC, true, Unit::Block),
    hashed::<RawDaNodeHdr>("attr", DA_NODE_MAGIC, false, Unit::Block),
    form::<RawAttr3RmtHdr>("attr", (0, 4, ATTR3_RMT_MAGIC), Some(RawAttr3RmtHdr::CRC_OFFSET), Unit::Block),
    form::<RawDsymlinkHdr>("symlink", (0, 4, SYMLINK_MAGIC), Some(RawDsymlinkHdr::CRC_OFFSET), Unit::Block),
    form::<RawRtSuperblock>("rtsb", (0, 4, RawRtSuperblock::MAGIC), Some(RawRtSuperblock::CRC_OFFSET), Unit::Block),
    form::<RawRtBlockHeader>(
        "rgbitmap",
        (0, 4, RawRtBlockHeader::BITMAP_MAGIC),
        Some(RawRtBlockHeader::CRC_OFFSET),
        Unit::Block,
    ),
    form::<RawRtBlockHeader>(
        "rgsummary",
        (0, 4, RawRtBlockHeader::SUMMARY_MAGIC),
        Some(RawRtBlockHeader::CRC_OFFSET),
        Unit::Block,
    ),
    form::<RawDquotBlock>("dqblk", (0, 2, DQUOT_MAGIC), Some(RawDquotBlock::CRC_OFFSET), Unit::Dquot),
];

const DQUOT_MAGIC: u32 = xfskit::ondisk::RawDiskDquot::MAGIC as u32;

const INODE_V5: Form =
    form::<RawDinode>("inode", (0, 2, RawDinode::MAGIC as u32), Some(RawDinode::CRC_OFFSET), Unit::Inode);
const INODE_V4: Form = form::<RawDinodeCore>("inode", (0, 2, RawDinode::MAGIC as u32), None, Unit::Inode);

impl Form {
    fn matches(&self, bytes: &[u8]) -> bool {
        let (at, len, value) = self.magic;
        bytes.get(at..at + len).is_some_and(|found| *found == value.to_be_bytes()[4 - len..]) && len > 0
    }

    pub fn magic(&self) -> u32 {
        self.magic.2
    }

    /// Where the magic number is.
    pub fn magic_at(&self) -> usize {
        self.magic.0
    }
}

/// A structure of an image.
#[derive(Clone, Copy)]
pub struct Site {
    pub form: &'static Form,
    /// On the realtime device, not on the data device.
    pub realtime: bool,
    /// In bytes.
    pub offset: u64,
    pub len: usize,
}

/// The structures of an image, by their kind.
#[derive(Default)]
pub struct Sites {
    kinds: BTreeMap<(&'static str, usize, u32), Vec<Site>>,
}

impl Sites {
    /// Finds the structures on a data device, or on the realtime device that belongs to it.
    pub fn add(&mut self, device: &dyn Device, geometry: &Geometry, realtime: bool) {
        let block = geometry.blocksize as usize;
        let log = geometry
            .log_daddr()
            .filter(|_| geometry.log.start.is_some())
            .map_or(0..0, |daddr| daddr.0 * 512..(daddr.0 + geometry.log_basic_blocks()) * 512);
        let mut bytes = vec![0; block];
        for range in device.allocated_ranges() {
            let range = range.expect("memory knows what it holds");
            let first = range.start / block as u64 * block as u64;
            for offset in (first..range.end()).step_by(block) {
                if !realtime && log.contains(&offset) || offset + block as u64 > device.len() {
                    continue;
                }
                device.read_at(offset, &mut bytes).expect("memory can be read");
                if bytes.iter().any(|byte| *byte != 0) {
                    self.look(&bytes, geometry, realtime, offset, device.len());
                }
            }
        }
    }

    fn look(&mut self, bytes: &[u8], geometry: &Geometry, realtime: bool, offset: u64, end: u64) {
        let mut put = |form: &'static Form, within: usize, len: usize| {
            let site = Site { form, realtime, offset: offset + within as u64, len };
            if site.offset + len as u64 <= end {
                let list = self.kinds.entry((form.name, form.header, form.magic.2)).or_default();
                if list.last().is_none_or(|last| last.offset != site.offset) {
                    list.push(site);
                }
            }
        };
        if let Some(form) = OF_BLOCKS.iter().find(|form| form.matches(bytes)) {
            let len = match form.unit {
                Unit::DirectoryBlock => geometry.directory.blksize as usize,
                Unit::Dquot => RawDquotBlock::SIZE,
                _ => bytes.len(),
            };
            for record in 0..if form.unit == Unit::Dquot { bytes.len() / RawDquotBlock::SIZE } else { 1 } {
                put(form, record * RawDquotBlock::SIZE, len);
            }
            return;
        }
        let inode = if geometry.features.has_crc() { &INODE_V5 } else { &INODE_V4 };
        let size = geometry.inodes.size as usize;
        if !realtime && inode.matches(bytes) {
            (0..bytes.len())
                .step_by(size)
                .filter(|at| inode.matches(&bytes[*at..]))
                .for_each(|at| put(inode, at, size));
            return;
        }
        let sector = geometry.sectsize as usize;
        let group = u64::from(geometry.agblocks) * u64::from(geometry.blocksize);
        for at in (0..bytes.len()).step_by(sector) {
            let in_group = (offset + at as u64) % group;
            if realtime || in_group >= 4 * sector as u64 {
                continue;
            }
            if let Some(form) = OF_SECTORS.iter().find(|form| form.matches(&bytes[at..])) {
                put(form, at, sector);
            } else if in_group == 3 * sector as u64 {
                put(&BARE_FREE_LIST, at, sector);
            }
        }
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Site> {
        self.kinds.values().flatten()
    }

    pub fn len(&self) -> usize {
        self.kinds.values().map(Vec::len).sum()
    }

    /// A structure: of any kind, though there be many of one and few of another.
    pub fn pick(&self, random: &mut super::Random) -> Site {
        let kinds: Vec<&Vec<Site>> = self.kinds.values().collect();
        // inodes are of many kinds themselves
        if let Some(inodes) = self.kinds.iter().find(|(kind, _)| kind.0 == "inode").filter(|_| random.one_in(5)) {
            return *random.pick(inodes.1);
        }
        let kind = *random.pick(&kinds);
        *random.pick(kind)
    }

    /// Another structure of the kind of `site`.
    pub fn like(&self, site: &Site, random: &mut super::Random) -> Site {
        let form = site.form;
        *random.pick(&self.kinds[&(form.name, form.header, form.magic.2)])
    }
}

/// The integers of a structure: offset and size, those of structures in it too.
pub fn integers(fields: &[Field], start: usize, found: &mut Vec<(usize, usize)>) {
    for field in fields {
        let at = start + field.offset;
        match field.kind {
            FieldKind::Int(size) => found.push((at, size)),
            FieldKind::Array { size, count } => found.extend((0..count).map(|index| (at + index * size, size))),
            FieldKind::Struct(inner) => integers(inner, at, found),
            FieldKind::Bytes(_) => {}
        }
    }
}
