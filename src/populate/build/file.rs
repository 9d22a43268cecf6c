//! One file: its forks in the form that they fit in, and its inode.

use super::attributes::{self, Attribute};
use super::builder::Image;
use super::dinode::{Fork, InodeImage};
use super::directory::{self, Entry};
use super::fork::{ExtentList, Owner};
use super::numbering::{Numbering, Placed};
use crate::error::{Error, Result};
use crate::forms::encode::{
    BlockOwner, DataForkSize, Header, block_attr_fork_offset, encode_symlink_target, short_attr_fork_offset,
};
use crate::forms::{FileType, ForkKind};
use crate::ondisk::OnDisk;
use crate::ondisk::dinode::{DeviceNumber, flags, flags2};
use crate::ondisk::remote::RawDsymlinkHdr;
use crate::populate::content::{Attributes, Content, Kind, MAX_SYMLINK};
use crate::populate::data::{Data, Piece};

/// Flags that folders hand down to folders.
const FOLDER_FLAGS: u16 = flags::PROJINHERIT | flags::EXTSZINHERIT;
/// Flags of version 3 that folders hand down.
const INHERITED_FLAGS2: u64 = flags2::COWEXTSIZE | flags2::DAX;

/// Where the attributes of a file go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttrForm {
    /// There are none.
    None,
    /// Into the inode, from this offset on.
    Short(u8),
    /// Into blocks that are listed from this offset on.
    Blocks(u8),
}

impl AttrForm {
    fn offset(self) -> Option<u8> {
        match self {
            AttrForm::None => None,
            AttrForm::Short(offset) | AttrForm::Blocks(offset) => Some(offset),
        }
    }
}

/// The data fork of a file before it is known how much room it has.
enum Contents {
    Device(u32),
    Local(Vec<u8>),
    Extents(ExtentList),
}

impl Contents {
    fn size(&self) -> DataForkSize {
        match self {
            Contents::Device(_) => DataForkSize::Device,
            Contents::Local(bytes) => DataForkSize::Local(bytes.len()),
            Contents::Extents(extents) => DataForkSize::Extents(extents.list.len()),
        }
    }
}

/// The kind of a file.
pub(super) fn file_type(kind: &Kind) -> FileType {
    match kind {
        Kind::Directory(_) => FileType::Directory,
        Kind::Regular(_) => FileType::Regular,
        Kind::Symlink(_) => FileType::Symlink,
        Kind::CharDevice(_) => FileType::CharDevice,
        Kind::BlockDevice(_) => FileType::BlockDevice,
        Kind::Fifo => FileType::Fifo,
        Kind::Socket => FileType::Socket,
    }
}

impl Image<'_> {
    /// Builds the file at place `at` of `numbering`: writes what is not in its inode, and returns that.
    pub(super) fn build_file(
        &mut self,
        content: &Content,
        numbering: &Numbering<'_>,
        generations: &[u32],
        at: usize,
    ) -> Result<InodeImage> {
        let placed = numbering.placed[at];
        let node = content.node(placed.node);
        let parts = self.geometry.ino_parts(placed.ino).ok_or_else(misplaced)?;
        let owner = Owner { ino: placed.ino, agno: parts.agno, attr: false };
        let existing = if at == 0 { self.root_attributes(&node.attributes)? } else { Vec::new() };
        let mut list: Vec<Attribute<'_>> =
            existing.iter().map(|(namespace, name, value)| Attribute::new(*namespace, name, value)).collect();
        list.extend(node.attributes.xattrs.iter().map(|attr| Attribute::new(attr.namespace, &attr.name, &attr.value)));
        for &(folder, name) in numbering.names.iter().flat_map(|names| &names[at]) {
            let folder = numbering.position(folder).ok_or_else(misplaced)?;
            let ino = numbering.placed[folder].ino;
            list.push(Attribute::parent(&self.geometry, ino, generations[folder], name));
        }
        attributes::sort(&mut list);
        if !list.is_empty() {
            self.note_attributes();
        }
        let (contents, size) = match &node.kind {
            Kind::Directory(_) => self.directory(content, numbering, placed, owner, &list)?,
            Kind::Regular(data) => (Contents::Extents(self.regular(owner, data)?), data.size),
            Kind::Symlink(target) => (self.symlink(owner, target, &list)?, target.len() as u64),
            Kind::CharDevice(number) | Kind::BlockDevice(number) => (device(*number)?, 0),
            Kind::Fifo | Kind::Socket => (Contents::Device(0), 0),
        };
        let form = self.attr_form(contents.size(), &list).ok_or_else(misplaced)?;
        let literal = usize::try_from(self.geometry.inodes.literal_size).map_err(|_| misplaced())?;
        let room = form.offset().map_or(literal, |offset| usize::from(offset) << 3);
        let (data, mut nblocks) = match contents {
            Contents::Device(number) => (Fork::Device(number), 0),
            Contents::Local(bytes) => (Fork::Local(bytes), 0),
            Contents::Extents(extents) => {
                let (fork, more) = self.extent_fork(owner, room, extents.list)?;
                (fork, extents.blocks + more)
            }
        };
        let attributes = match form {
            AttrForm::None => None,
            AttrForm::Short(offset) => Some((offset, Fork::Local(attributes::short(&list)?))),
            AttrForm::Blocks(offset) => {
                let owner = Owner { attr: true, ..owner };
                let blocks = attributes::blocks(&self.geometry, &BlockOwner::new(&self.geometry, owner.ino), &list)?;
                let extents = self.place(owner, "attributes", blocks)?;
                let (fork, more) = self.extent_fork(owner, literal - room, extents.list)?;
                nblocks += extents.blocks + more;
                Some((offset, fork))
            }
        };
        let inode = InodeImage { size, nblocks, data, attributes, ..self.core(content, placed, generations[at]) };
        Ok(inode)
    }

    /// What an inode has besides its forks.
    fn core(&self, content: &Content, placed: Placed, generation: u32) -> InodeImage {
        let node = content.node(placed.node);
        let kind = file_type(&node.kind);
        let root = self.root.raw();
        let mut inode = InodeImage {
            mode: kind.mode_bits() | node.attributes.permissions,
            uid: node.attributes.uid,
            gid: node.attributes.gid,
            projid: node.attributes.project.unwrap_or(0),
            nlink: placed.links,
            size: 0,
            nblocks: 0,
            extsize: [0; 2],
            flags: node.attributes.flags,
            flags2: 0,
            generation,
            times: [node.attributes.atime, node.attributes.mtime, None].map(|time| time.unwrap_or(self.time)),
            created: self.time,
            changecount: 1,
            data: Fork::Device(0),
            attributes: None,
        };
        let from_root = root.core.flags.get();
        if from_root & flags::PROJINHERIT != 0 && node.attributes.project.is_none() {
            inode.projid = root.core.projid();
        }
        match kind {
            _ if placed.ino == self.geometry.rootino => {
                inode.flags |= from_root;
                inode.extsize[0] = root.core.extsize.get();
            }
            FileType::Directory => {
                inode.flags |= from_root & FOLDER_FLAGS;
                inode.extsize[0] = root.core.extsize.get();
            }
            FileType::Regular if from_root & flags::EXTSZINHERIT != 0 => {
                inode.flags |= flags::EXTSIZE;
                inode.extsize[0] = root.core.extsize.get();
            }
            _ => {}
        }
        if matches!(kind, FileType::Directory | FileType::Regular) {
            inode.flags2 = root.flags2_or_zero() & INHERITED_FLAGS2;
            inode.extsize[1] = root.cowextsize.get();
        }
        inode
    }

    /// Where attributes go beside contents of this size; `None` when the contents must take another form first.
    fn attr_form(&self, data: DataForkSize, list: &[Attribute<'_>]) -> Option<AttrForm> {
        if list.is_empty() {
            let literal = usize::try_from(self.geometry.inodes.literal_size).ok()?;
            let fits = !matches!(data, DataForkSize::Local(bytes) if bytes > literal);
            return fits.then_some(AttrForm::None);
        }
        let short = attributes::short_len(list).and_then(|len| short_attr_fork_offset(&self.geometry, data, len));
        short.map(AttrForm::Short).or_else(|| block_attr_fork_offset(&self.geometry, data).map(AttrForm::Blocks))
    }

    fn directory(
        &mut self,
        content: &Content,
        numbering: &Numbering<'_>,
        placed: Placed,
        owner: Owner,
        list: &[Attribute<'_>],
    ) -> Result<(Contents, u64)> {
        let parent = numbering.ino(placed.parent).ok_or_else(misplaced)?;
        let mut entries = Vec::new();
        for (name, child) in content.entries(placed.node) {
            let ino = numbering.ino(child).ok_or_else(misplaced)?;
            entries.push(Entry { name, ino, kind: file_type(&content.node(child).kind) });
        }
        let short = directory::short(&self.geometry, parent, &entries);
        if let Some(bytes) = short.filter(|bytes| self.attr_form(DataForkSize::Local(bytes.len()), list).is_some()) {
            let size = bytes.len() as u64;
            return Ok((Contents::Local(bytes), size));
        }
        let seal = BlockOwner::new(&self.geometry, owner.ino);
        let built = directory::blocks(&self.geometry, &seal, parent, &entries)?;
        Ok((Contents::Extents(self.place(owner, "a folder", built.blocks)?), built.size))
    }

    /// The extents of a regular file, whose data have a place; what is reserved gets one.
    fn regular(&mut self, owner: Owner, data: &Data) -> Result<ExtentList> {
        let mut extents = ExtentList::default();
        for range in &data.ranges {
            let (pieces, unwritten) = match range.piece {
                Piece::Stored(stored) => (self.stored.remove(stored).ok_or_else(misplaced)?, false),
                Piece::Reserved { blocks } => (self.space.take_data(&self.geometry, blocks)?, true),
            };
            let mut at = range.block;
            for piece in pieces {
                extents.push(at, piece, unwritten);
                at += u64::from(piece.len);
            }
        }
        self.note_extents(owner, &extents.list)?;
        Ok(extents)
    }

    fn symlink(&mut self, owner: Owner, target: &[u8], list: &[Attribute<'_>]) -> Result<Contents> {
        if target.is_empty() || target.len() > MAX_SYMLINK {
            return Err(Error::Usage(format!(
                "a symbolic link of {} bytes; it can have 1 to {MAX_SYMLINK}",
                target.len()
            )));
        }
        if self.attr_form(DataForkSize::Local(target.len()), list).is_some() {
            return Ok(Contents::Local(target.to_vec()));
        }
        let seal = BlockOwner::new(&self.geometry, owner.ino);
        let header = if seal.crc { RawDsymlinkHdr::SIZE } else { 0 };
        let space = usize::try_from(self.geometry.blocksize).map_err(|_| misplaced())? - header;
        let count = target.len().div_ceil(space) as u64;
        let mut extents = ExtentList::default();
        let mut from = 0;
        for piece in self.space.take_near(&self.geometry, owner.agno, count, "a symbolic link")? {
            let (mut bytes, held) = encode_symlink_target(&self.geometry, &seal, target, from, piece.len);
            let daddr = self.geometry.fsb_daddr(piece.start).ok_or_else(misplaced)?;
            seal.seal(Header::Symlink, &mut bytes, daddr);
            let offset = self.geometry.daddr_offset(daddr).ok_or_else(misplaced)?;
            self.output.metadata(offset, bytes)?;
            extents.push(extents.blocks, piece, false);
            from += held;
        }
        self.note_extents(owner, &extents.list)?;
        Ok(Contents::Extents(extents))
    }

    /// The attributes that the root got when it was made and that `new` does not replace.
    fn root_attributes(&self, new: &Attributes) -> Result<Vec<RootAttribute>> {
        let mut found = Vec::new();
        if self.root.fork(ForkKind::Attr)?.is_none() {
            return Ok(found);
        }
        let Some(attributes) = crate::forms::Attributes::open(&self.cache, &self.root)? else { return Ok(found) };
        let mut failed = Ok(());
        attributes.for_each(&mut |attribute| {
            let read = attribute.and_then(|attribute| {
                let namespace = attribute.namespace.ok_or_else(misplaced)?;
                let value = attributes.value(&attribute.value)?.into_owned();
                Ok((namespace, attribute.name.to_vec(), value))
            });
            match read {
                Ok(read) => found.push(read),
                Err(error) => failed = Err(error),
            }
            std::ops::ControlFlow::Continue(())
        });
        failed?;
        found.retain(|(namespace, name, _)| {
            !new.xattrs.iter().any(|attr| attr.namespace == *namespace && *attr.name == name[..])
        });
        Ok(found)
    }
}

/// An attribute of the root as it was made: namespace, name, value.
type RootAttribute = (crate::ondisk::attr_short::AttrNamespace, Vec<u8>, Vec<u8>);

fn device(number: DeviceNumber) -> Result<Contents> {
    let encoded = number.encode().ok_or_else(|| {
        Error::Usage(format!("the number of a device is too large: {}:{}", number.major, number.minor))
    })?;
    Ok(Contents::Device(encoded))
}

fn misplaced() -> Error {
    Error::Internal("a file or its data have no place".into())
}
