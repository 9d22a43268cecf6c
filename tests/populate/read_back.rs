//! An image read through `forms` and compared with the tree that it was built from.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use xfskit::buffer::SearchEffort;
use xfskit::device::Device;
use xfskit::error::Result;
use xfskit::forms::{
    Attributes, BlockSource, DirEntry, Directory, FileType, ForkKind, Inode, StoredData, find_extent, for_each_parent,
    read_symlink,
};
use xfskit::geometry::{FileBlock, Ino};
use xfskit::image::{Image, ImageDevices};
use xfskit::ondisk::attr_short::AttrNamespace;
use xfskit::ondisk::dinode::flags;
use xfskit::populate::{Bytes, Content, DataSink, Kind, NodeId, Piece, Stored};

/// A sink that also keeps what it passes on.
pub struct Recording<'s> {
    pub sink: &'s mut dyn DataSink,
    pub bytes: &'s mut HashMap<u64, Vec<u8>>,
}

impl DataSink for Recording<'_> {
    fn block_size(&self) -> u32 {
        self.sink.block_size()
    }

    fn store(&mut self, len: u64, bytes: &mut dyn Bytes) -> Result<Stored> {
        let mut kept = vec![0; usize::try_from(len).expect("a file of a test")];
        bytes.fill(&mut kept)?;
        let stored = self.sink.store(len, &mut &kept[..])?;
        self.bytes.insert(stored.start, kept);
        Ok(stored)
    }

    fn release(&mut self, stored: Stored) -> Result<()> {
        self.bytes.remove(&stored.start);
        self.sink.release(stored)
    }
}

/// Opens the image on `device` and holds all that is in it against `content`.
pub fn compare(device: &Arc<dyn Device>, content: &Content, bytes: &HashMap<u64, Vec<u8>>) {
    let image = Image::open(ImageDevices::of_data(device.clone()), SearchEffort::Guesses).expect("an image");
    assert_eq!(image.superblock().primary.damage(), Vec::<String>::new());
    let mut reader = Reader { image: &image, content, bytes, inodes: HashMap::new(), parents: HashMap::new() };
    let root = image.geometry().rootino;
    reader.folder(NodeId::ROOT, root, root);
    reader.check_parents();
}

struct Reader<'r> {
    image: &'r Image,
    content: &'r Content,
    bytes: &'r HashMap<u64, Vec<u8>>,
    /// The inode of each node.
    inodes: HashMap<NodeId, Ino>,
    /// Names of each node: folder and name.
    parents: HashMap<NodeId, Vec<(Ino, Vec<u8>)>>,
}

impl Reader<'_> {
    fn source(&self) -> &dyn BlockSource {
        self.image.cache()
    }

    fn folder(&mut self, node: NodeId, ino: Ino, parent: Ino) {
        let inode = self.inode(node, ino);
        let mut found = BTreeMap::new();
        let mut last = 0;
        Directory::open(self.source(), &inode).expect("a folder").for_each(&mut |entry| {
            let DirEntry { name, ino, ftype, offset } = entry.expect("a sound entry");
            assert!(offset > last);
            last = offset;
            found.insert(name.to_vec(), (ino, ftype));
            ControlFlow::Continue(())
        });
        assert_eq!(found.remove(&b"."[..]).map(|entry| entry.0), Some(ino));
        assert_eq!(found.remove(&b".."[..]).map(|entry| entry.0), Some(parent));
        let expected: Vec<Vec<u8>> = self.content.entries(node).map(|(name, _)| name.to_vec()).collect();
        assert_eq!(found.keys().cloned().collect::<Vec<_>>(), expected);
        let mut folders = 0;
        let children: Vec<(Vec<u8>, NodeId)> =
            self.content.entries(node).map(|(name, child)| (name.to_vec(), child)).collect();
        for (name, child) in children {
            let (child_ino, ftype) = found[&name];
            let looked_up = Directory::open(self.source(), &inode).expect("a folder").lookup(&name);
            let looked_up = looked_up.expect("the index is sound");
            assert_eq!(looked_up.map(|found| found.ino), Some(child_ino), "{name:?}");
            self.parents.entry(child).or_default().push((ino, name));
            match self.inodes.insert(child, child_ino) {
                Some(known) => assert_eq!(known, child_ino),
                None if matches!(self.content.node(child).kind, Kind::Directory(_)) => {
                    folders += 1;
                    self.folder(child, child_ino, ino);
                }
                None => self.file(child, child_ino),
            }
            if self.image.geometry().features.has_ftype() {
                let kind = Inode::read(self.source(), child_ino).expect("read").file_type().expect("a type");
                assert_eq!(ftype, Some(kind.dir_ftype()));
            }
        }
        assert_eq!(inode.raw().core.nlink.get(), folders + 2);
    }

    /// What all files have.
    fn inode(&self, node: NodeId, ino: Ino) -> Inode {
        let inode = Inode::read(self.source(), ino).expect("read");
        assert!(inode.verdict.is_sound(), "{:?}", inode.verdict);
        let (core, expected) = (&inode.raw().core, &self.content.node(node).attributes);
        assert_eq!(core.mode.get() & 0o7777, expected.permissions);
        assert_eq!((core.uid.get(), core.gid.get()), (expected.uid, expected.gid));
        assert_eq!(Some(inode.raw().timestamp(core.atime)), expected.atime);
        assert_eq!(Some(inode.raw().timestamp(core.mtime)), expected.mtime);
        assert_eq!(core.flags.get() & flags::APPEND, expected.flags & flags::APPEND);
        let mut found = Vec::new();
        if let Some(attributes) = Attributes::open(self.source(), &inode).expect("attributes") {
            attributes.for_each(&mut |attribute| {
                let attribute = attribute.expect("a sound attribute");
                let namespace = attribute.namespace.expect("a namespace");
                if namespace != AttrNamespace::Parent && attribute.name != b"xfs:autofsck" {
                    let value = attributes.value(&attribute.value).expect("a value").into_owned();
                    found.push((namespace, attribute.name.to_vec(), value));
                }
                ControlFlow::Continue(())
            });
        }
        found.sort();
        let list = expected.xattrs.iter().map(|attr| (attr.namespace, attr.name.to_vec(), attr.value.to_vec()));
        assert_eq!(found, list.collect::<Vec<_>>());
        inode
    }

    fn file(&self, node: NodeId, ino: Ino) {
        let inode = self.inode(node, ino);
        assert_eq!(inode.raw().core.nlink.get(), self.content.names(node));
        match &self.content.node(node).kind {
            Kind::Directory(_) => unreachable!("a folder"),
            Kind::Regular(data) => {
                assert_eq!(inode.size(), data.size);
                let unit = u64::from(self.image.geometry().blocksize);
                let mut expected = BTreeMap::new();
                for range in &data.ranges {
                    let piece = match range.piece {
                        Piece::Stored(stored) => Some(&self.bytes[&stored.start]),
                        Piece::Reserved { .. } => None,
                    };
                    expected.insert(range.block, (range.piece.blocks(), piece));
                }
                self.data(&inode, unit, &expected);
                for (&block, &(blocks, _)) in &expected {
                    let fork = inode.fork(ForkKind::Data).expect("a fork").expect("a fork");
                    for at in [block, block + blocks - 1] {
                        assert!(find_extent(self.source(), &fork, FileBlock(at)).expect("looked up").is_some());
                    }
                }
            }
            Kind::Symlink(target) => {
                assert_eq!(read_symlink(self.source(), &inode).expect("a target"), target.to_vec());
            }
            Kind::CharDevice(number) | Kind::BlockDevice(number) => {
                let at = usize::try_from(self.image.geometry().inodes.core_size).expect("small");
                let bytes = inode.bytes()[at..at + 4].try_into().expect("four bytes");
                assert_eq!(Some(u32::from_be_bytes(bytes)), number.encode());
            }
            Kind::Fifo => assert_eq!(inode.file_type(), Some(FileType::Fifo)),
            Kind::Socket => assert_eq!(inode.file_type(), Some(FileType::Socket)),
        }
    }

    /// Ranges and bytes of a regular file.
    fn data(&self, inode: &Inode, unit: u64, expected: &BTreeMap<u64, (u64, Option<&Vec<u8>>)>) {
        let mut held = 0;
        for range in StoredData::open(self.source(), inode).expect("data") {
            let range = range.expect("a sound range");
            assert_eq!(range.offset % unit, 0);
            let mut read = vec![0; usize::try_from(range.len.next_multiple_of(unit)).expect("a file of a test")];
            self.image.data().read_at(range.at, &mut read).expect("read");
            for (block, bytes) in (range.offset / unit..).zip(read.chunks(usize::try_from(unit).expect("small"))) {
                let (first, (blocks, piece)) = expected.range(..=block).next_back().expect("no hole");
                assert!(block < first + blocks && piece.is_none() == range.unwritten);
                let Some(piece) = piece else { continue };
                let begin = usize::try_from((block - first) * unit).expect("small");
                let wanted = &piece[begin..piece.len().min(begin + bytes.len())];
                assert!(bytes[..wanted.len()] == *wanted, "inode {}, block {block}", inode.ino);
                assert!(bytes[wanted.len()..].iter().all(|byte| *byte == 0));
                held += wanted.len();
            }
        }
        let stored: usize = expected.values().filter_map(|(_, piece)| piece.map(Vec::len)).sum();
        assert_eq!(held, stored, "inode {}", inode.ino);
    }

    /// Every file knows its folders, where the filesystem keeps that.
    fn check_parents(&self) {
        if !self.image.geometry().features.has_parent() {
            return;
        }
        for (node, names) in &self.parents {
            let inode = Inode::read(self.source(), self.inodes[node]).expect("read");
            let mut found = Vec::new();
            for_each_parent(self.source(), &inode, &mut |parent| {
                let parent = parent.expect("a sound parent pointer");
                let folder = Inode::read(self.source(), parent.parent).expect("read");
                assert_eq!(folder.raw().core.generation.get(), parent.generation);
                found.push((parent.parent, parent.name.to_vec()));
                ControlFlow::Continue(())
            })
            .expect("attributes");
            found.sort();
            let mut names = names.clone();
            names.sort();
            assert_eq!(found, names);
        }
    }
}
