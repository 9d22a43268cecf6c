//! Items of inodes (Linux `xfs_inode_item.c`, `xfs_inode_item_format`).

use zerocopy::IntoBytes;

use super::btree_root::CoreRoot;
use crate::error::{Check, Error, Place, Result, Rule};
use crate::geometry::limits::BASIC_BLOCK;
use crate::geometry::{BtreeKind, Daddr, Geometry, Ino};
use crate::journal::parse::in_order;
use crate::journal::{ItemSize, Regions};
use crate::ondisk::attr_short::RawAttrSfHdr;
use crate::ondisk::dinode::{format, metatype};
use crate::ondisk::log_inode::{
    InodeLogFormat, LOG_DINODE_V2_SIZE, RawInodeLogFormat32, RawInodeLogFormat64, RawLogDinode, Width, field,
};
use crate::ondisk::{LittleEndian, NULLAGINO, OnDisk, RawDinode, RawDinodeCore, RawExtent};

/// A changed inode.
#[derive(Clone, Copy, Debug)]
pub struct InodeChange<'a> {
    /// Its number.
    pub ino: Ino,
    /// Where its cluster lies.
    pub daddr: Daddr,
    /// Bytes of the cluster.
    pub cluster_len: u32,
    /// Where in the cluster the inode begins, in bytes.
    pub offset: u32,
    /// The inode as it is to stand on disk, forks included.
    pub bytes: &'a [u8],
    /// Which parts changed ([`field`]). The core is always logged; of the forks, only what fits their form and is there.
    pub fields: u32,
}

/// What is logged of a fork.
enum Part<'a> {
    Nothing,
    Device(u32),
    Bytes(&'a [u8]),
    Root(CoreRoot<'a>),
}

/// The flags of the forms of a fork.
struct ForkFields {
    local: u32,
    extents: u32,
    root: u32,
    device: u32,
}

const DATA: ForkFields =
    ForkFields { local: field::DDATA, extents: field::DEXT, root: field::DBROOT, device: field::DEV };
const ATTRIBUTES: ForkFields = ForkFields { local: field::ADATA, extents: field::AEXT, root: field::ABROOT, device: 0 };

/// The parts of an inode that are logged.
struct Parts<'a> {
    /// The core; of versions before 3 only its beginning has a meaning.
    core: RawDinode,
    fields: u32,
    data: Part<'a>,
    attributes: Part<'a>,
}

impl<'a> InodeChange<'a> {
    /// How much the item logs, if it is written by a 64-bit machine or not.
    ///
    /// # Errors
    /// `Corrupt` when the inode is not sound.
    pub fn size(&self, geometry: &Geometry, width: Width) -> Result<ItemSize> {
        let parts = self.parts(geometry)?;
        let format = match width {
            Width::Bits64 => RawInodeLogFormat64::<LittleEndian>::SIZE,
            Width::Bits32 => RawInodeLogFormat32::<LittleEndian>::SIZE,
        };
        let size = ItemSize::default().with(format).with(core_size(&parts.core));
        let forks = [&parts.data, &parts.attributes].into_iter().filter_map(Part::len);
        Ok(forks.fold(size, ItemSize::with))
    }

    /// Adds the item to `regions`.
    ///
    /// # Errors
    /// `Corrupt` when the inode is not sound.
    pub fn format(&self, geometry: &Geometry, regions: &mut Regions) -> Result<()> {
        let parts = self.parts(geometry)?;
        let layout = regions.layout();
        let len = |part: &Part<'_>| match part.len() {
            Some(len) => u16::try_from(len).map_err(|_| Error::Internal(format!("a fork of {len} bytes"))),
            None => Ok(0),
        };
        let forks = [&parts.data, &parts.attributes];
        let format = InodeLogFormat {
            size: 2 + u16::from(parts.data.len().is_some()) + u16::from(parts.attributes.len().is_some()),
            fields: parts.fields,
            asize: len(&parts.attributes)?,
            dsize: len(&parts.data)?,
            ino: self.ino.0,
            rdev: if let Part::Device(device) = parts.data { device } else { 0 },
            blkno: self.daddr.0,
            len: self.cluster_len / BASIC_BLOCK,
            boffset: self.offset,
        };
        regions.push(&in_order!(layout.order, O => format.encode::<O>(layout.width)));
        in_order!(layout.order, O => {
            let mut core = RawLogDinode::<O>::from_disk(&parts.core);
            // neither is replayed
            core.next_unlinked.set(NULLAGINO);
            core.crc.set(0);
            regions.push(&core.as_bytes()[..core_size(&parts.core)]);
        });
        for fork in forks {
            match fork {
                Part::Nothing | Part::Device(_) => {}
                Part::Bytes(bytes) => regions.push(bytes),
                Part::Root(root) => root.push(regions),
            }
        }
        Ok(())
    }

    fn parts(&self, geometry: &Geometry) -> Result<Parts<'a>> {
        let mut core = zerocopy::FromZeros::new_zeroed();
        let whole: &mut RawDinode = &mut core;
        let (old, _) = RawDinodeCore::prefix(self.bytes).ok_or_else(|| self.unsound("version", Rule::Truncated))?;
        if old.version >= 3 {
            *whole = *RawDinode::prefix(self.bytes).ok_or_else(|| self.unsound("version", Rule::Truncated))?.0;
        } else {
            whole.core = *old;
        }
        let literal = self.bytes.get(old.literal_offset()..).unwrap_or_default();
        let (data, attributes) = match old.fork_offset() {
            0 => (literal, None),
            start => {
                let both = literal.split_at_checked(start).ok_or_else(|| self.unsound("forkoff", Rule::Range))?;
                (both.0, Some(both.1))
            }
        };
        let mut fields = field::CORE | self.fields & (field::DOWNER | field::AOWNER);
        let root = self.root_kind(&core);
        let local = usize::try_from(old.size.get()).unwrap_or(usize::MAX);
        let data = Fork { bytes: data, format: old.format, extents: core.data_extents(), local, root };
        let data = self.part(geometry, &data, &DATA, &mut fields)?;
        let attributes = match attributes {
            Some(bytes) => {
                let local = RawAttrSfHdr::prefix(bytes).map_or(0, |(header, _)| usize::from(header.totsize.get()));
                let extents = u64::from(core.attr_extents());
                let format = old.aformat.to_be_bytes()[0];
                let fork = Fork { bytes, format, extents, local, root: BtreeKind::Bmbt };
                self.part(geometry, &fork, &ATTRIBUTES, &mut fields)?
            }
            None => Part::Nothing,
        };
        Ok(Parts { core, fields, data, attributes })
    }

    /// The btree whose root the data fork may hold.
    fn root_kind(&self, core: &RawDinode) -> BtreeKind {
        match core.core.metatype.get() {
            metatype::RTRMAP if core.core.format == format::META_BTREE => BtreeKind::Rtrmapbt,
            metatype::RTREFCOUNT if core.core.format == format::META_BTREE => BtreeKind::Rtrefcountbt,
            _ => BtreeKind::Bmbt,
        }
    }

    /// What is logged of a fork: what changed, if it fits the form that the fork has now.
    fn part(&self, geometry: &Geometry, fork: &Fork<'a>, names: &ForkFields, fields: &mut u32) -> Result<Part<'a>> {
        let truncated = |field| self.unsound(field, Rule::Count);
        let (flag, part) = match fork.format {
            format::LOCAL if self.fields & names.local != 0 && fork.local > 0 => {
                (names.local, Part::Bytes(fork.bytes.get(..fork.local).ok_or_else(|| truncated("size"))?))
            }
            format::EXTENTS if self.fields & names.extents != 0 && fork.extents > 0 => {
                let len = usize::try_from(fork.extents).ok().and_then(|count| count.checked_mul(RawExtent::SIZE));
                let bytes = len.and_then(|len| fork.bytes.get(..len)).ok_or_else(|| truncated("nextents"))?;
                (names.extents, Part::Bytes(bytes))
            }
            format::BTREE | format::META_BTREE if self.fields & names.root != 0 => {
                let root =
                    CoreRoot::new(geometry, fork.root, self.ino, fork.bytes).ok_or_else(|| truncated("format"))?;
                (names.root, Part::Root(root))
            }
            format::DEV if self.fields & names.device != 0 => {
                let device = fork.bytes.first_chunk().ok_or_else(|| truncated("format"))?;
                (names.device, Part::Device(u32::from_be_bytes(*device)))
            }
            _ => return Ok(Part::Nothing),
        };
        *fields |= flag;
        Ok(part)
    }

    fn unsound(&self, field: &'static str, rule: Rule) -> Error {
        let place = Place { inode: Some(self.ino.0), ..Place::at_daddr(self.daddr.0) };
        Error::corrupt(Check::new("dinode", field, rule), place)
    }
}

/// A fork as it stands in the inode.
struct Fork<'a> {
    bytes: &'a [u8],
    format: u8,
    extents: u64,
    /// Bytes of its contents, if it holds them itself.
    local: usize,
    root: BtreeKind,
}

impl Part<'_> {
    /// Bytes of the region; `None` when there is none.
    fn len(&self) -> Option<usize> {
        match self {
            Part::Nothing | Part::Device(_) => None,
            Part::Bytes(bytes) => Some(bytes.len()),
            Part::Root(root) => Some(root.len()),
        }
    }
}

/// Bytes of the core's region.
fn core_size(core: &RawDinode) -> usize {
    if core.core.version >= 3 { RawLogDinode::<LittleEndian>::SIZE } else { LOG_DINODE_V2_SIZE }
}
