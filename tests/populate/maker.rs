//! Trees that have everything, from nothing but a number.

use xfskit::error::Result;
use xfskit::ondisk::Timestamp;
use xfskit::ondisk::attr_short::AttrNamespace;
use xfskit::ondisk::dinode::DeviceNumber;
use xfskit::populate::{Attributes, Bytes, Content, Data, DataSink, Kind, Node, NodeId, Piece, Range, Xattr};

/// Bytes that follow from a number.
pub struct Pattern(pub u64);

impl Bytes for Pattern {
    fn fill(&mut self, buf: &mut [u8]) -> Result<()> {
        for byte in buf {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (self.0 >> 40) as u8 | 1;
        }
        Ok(())
    }
}

/// A tree that is being made.
pub struct Maker<'s> {
    pub content: Content,
    pub sink: &'s mut dyn DataSink,
    number: u64,
}

impl<'s> Maker<'s> {
    pub fn new(sink: &'s mut dyn DataSink) -> Self {
        Maker { content: Content::new(attributes(0o755, 1)), sink, number: 1 }
    }

    pub fn add(&mut self, folder: NodeId, name: &[u8], kind: Kind, xattrs: Vec<Xattr>) -> Result<NodeId> {
        self.number += 1;
        let permissions = if matches!(kind, Kind::Symlink(_)) { 0o777 } else { 0o640 };
        let attributes = Attributes { xattrs, ..attributes(permissions, self.number) };
        let id = self.content.add(Node { kind, attributes })?;
        self.content.link(folder, name, id)?;
        Ok(id)
    }

    pub fn folder(&mut self, parent: NodeId, name: &str) -> Result<NodeId> {
        let id = self.add(parent, name.as_bytes(), Kind::Directory(Default::default()), Vec::new())?;
        self.content.node_mut(id).attributes.permissions = 0o2755;
        Ok(id)
    }

    pub fn file(&mut self, folder: NodeId, name: &[u8], size: u64, segments: &[(u64, u64)]) -> Result<NodeId> {
        let mut bytes = Pattern(self.number);
        let data = Data::store(size, segments, &mut bytes, self.sink)?;
        self.add(folder, name, Kind::Regular(data), Vec::new())
    }

    fn names(&mut self, parent: NodeId, name: &str, count: u32) -> Result<()> {
        let folder = self.folder(parent, name)?;
        for number in 0..count {
            let kind = if number % 3 == 0 { Kind::Fifo } else { Kind::Regular(Data::default()) };
            self.add(folder, format!("name-{number:06}").as_bytes(), kind, Vec::new())?;
        }
        Ok(())
    }
}

fn attributes(permissions: u16, number: u64) -> Attributes {
    let number32 = u32::try_from(number % 5).expect("small");
    let time = |seconds: u64| {
        Some(Timestamp { seconds: 1_600_000_000 + seconds as i64, nanoseconds: 123_000_000 + seconds as u32 })
    };
    Attributes {
        permissions,
        uid: 1000 + number32,
        gid: 2000 + number32,
        project: None,
        flags: 0,
        atime: time(number),
        mtime: time(number + 7),
        xattrs: Vec::new(),
    }
}

fn xattr(name: String, len: usize) -> Xattr {
    let value: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
    Xattr { namespace: AttrNamespace::User, name: name.into_bytes().into(), value: value.into() }
}

/// A tree with every kind of file and every form; `scale` sets how large folders and how many attributes become.
pub fn everything(sink: &mut dyn DataSink, scale: u32) -> Result<Content> {
    let unit = u64::from(sink.block_size());
    let mut maker = Maker::new(sink);
    let root = NodeId::ROOT;
    maker.folder(root, "empty")?;
    maker.names(root, "few", 5)?;
    for (name, count) in [("tens", 40), ("hundreds", 300), ("thousands", 30 * scale), ("more", 100 * scale)] {
        maker.names(root, name, count)?;
    }
    let deep = maker.folder(root, "deep")?;
    let mut at = deep;
    for level in 0..20 {
        at = maker.folder(at, &format!("level-{level}"))?;
        maker.file(at, b"file", 1000, &[(0, 1000)])?;
    }
    let files = maker.folder(root, "files")?;
    for (name, size) in [("none", 0), ("one", 1), ("block", unit), ("odd", 10 * unit + 17), ("large", 3_000_000)] {
        let segments: Vec<(u64, u64)> = if size > 0 { vec![(0, size)] } else { Vec::new() };
        let file = maker.file(files, name.as_bytes(), size, &segments)?;
        maker.content.link(deep, format!("link-to-{name}").as_bytes(), file)?;
    }
    maker.file(files, b"hole", 1 << 33, &[])?;
    for (name, count) in [("holes", 6), ("more-holes", 40), ("many-holes", 20 * u64::from(scale))] {
        let segments: Vec<(u64, u64)> = (0..count).map(|index| (index * 2 * unit, unit)).collect();
        maker.file(files, name.as_bytes(), (2 * count + 1) * unit, &segments)?;
    }
    let reserved = Range { block: 3, piece: Piece::Reserved { blocks: 5 } };
    maker.add(files, b"reserved", Kind::Regular(Data { size: 4 * unit, ranges: vec![reserved] }), Vec::new())?;
    maker.file(files, &[b'n'; 255], 5, &[(0, 5)])?;
    let special = maker.folder(root, "special")?;
    for len in [1, 60, 200, 400, 1023] {
        let target: Vec<u8> = vec![b'x'; len];
        maker.add(special, format!("symlink-{len}").as_bytes(), Kind::Symlink(target.into()), Vec::new())?;
        let target: Vec<u8> = vec![b'y'; len];
        let many = vec![xattr("with".into(), 100)];
        maker.add(special, format!("symlink-with-{len}").as_bytes(), Kind::Symlink(target.into()), many)?;
    }
    maker.add(special, b"char", Kind::CharDevice(DeviceNumber { major: 4, minor: 64 }), Vec::new())?;
    maker.add(
        special,
        b"block",
        Kind::BlockDevice(DeviceNumber { major: 8, minor: 300 }),
        vec![xattr("a".into(), 3)],
    )?;
    maker.add(special, b"pipe", Kind::Fifo, Vec::new())?;
    maker.add(special, b"socket", Kind::Socket, vec![xattr("long".into(), 3000)])?;
    with_attributes(&mut maker, scale)?;
    Ok(maker.content)
}

fn with_attributes(maker: &mut Maker<'_>, scale: u32) -> Result<()> {
    let folder = maker.folder(NodeId::ROOT, "attributes")?;
    let few = [0, 1, 10, 40, 60, 100, 200, 255, 256, 1000, 3000, 10_000, 65_536];
    for len in few {
        let name = format!("one-of-{len}");
        maker.add(folder, name.as_bytes(), Kind::Regular(Data::default()), vec![xattr("value".into(), len)])?;
        let name = format!("folder-{len}");
        let id =
            maker.add(folder, name.as_bytes(), Kind::Directory(Default::default()), vec![xattr("v".into(), len)])?;
        for number in 0..12 {
            let name = format!("entry-{number}");
            maker.add(id, name.as_bytes(), Kind::Socket, Vec::new())?;
        }
    }
    for count in [2, 5, 20, 10 * scale] {
        let mut list: Vec<Xattr> = (0..count).map(|number| xattr(format!("name-{number:05}"), 30)).collect();
        list.push(xattr("zz-large".into(), 9000));
        list.sort_by(|one, other| one.name.cmp(&other.name));
        maker.add(folder, format!("many-{count}").as_bytes(), Kind::Regular(Data::default()), list)?;
    }
    let unit = u64::from(maker.sink.block_size());
    let segments: Vec<(u64, u64)> = (0..15).map(|index| (index * 2 * unit, unit)).collect();
    let file = maker.file(folder, b"extents-and-attributes", 40 * unit, &segments)?;
    maker.content.node_mut(file).attributes.xattrs = vec![xattr("beside".into(), 120)];
    let linked = maker.add(folder, b"many-links", Kind::Fifo, Vec::new())?;
    for number in 0..3 * scale {
        maker.content.link(folder, format!("link-{number:05}-{}", "n".repeat(100)).as_bytes(), linked)?;
    }
    Ok(())
}
