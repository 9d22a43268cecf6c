//! The tree that is to be in an image, in memory.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::data::{Data, DataSink};
use crate::error::{Error, Result};
use crate::ondisk::Timestamp;
use crate::ondisk::attr_short::AttrNamespace;
use crate::ondisk::dinode::{DeviceNumber, flags};

/// Longest name, in bytes.
pub const MAX_NAME: usize = 255;
/// Longest target of a symbolic link, in bytes (`XFS_SYMLINK_MAXLEN` less its zero byte).
pub const MAX_SYMLINK: usize = 1023;
/// Longest value of an extended attribute, in bytes.
pub const MAX_XATTR_VALUE: usize = 65_536;
/// The inode flags that a source can ask for; all others follow from what the file is.
pub const FLAGS: u16 =
    flags::IMMUTABLE | flags::APPEND | flags::SYNC | flags::NOATIME | flags::NODUMP | flags::PREALLOC;

/// A node of a [`Content`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

impl NodeId {
    /// The root directory.
    pub const ROOT: NodeId = NodeId(0);

    /// Its place in a table with one entry for each of [`Content::len`] nodes.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A folder: its names in the order of their bytes, without `.` and `..`. No directory has two names.
    Directory(BTreeMap<Box<[u8]>, NodeId>),
    /// A regular file.
    Regular(Data),
    /// A symbolic link, to a target of 1 to [`MAX_SYMLINK`] bytes.
    Symlink(Box<[u8]>),
    /// A character device, whose number can be encoded.
    CharDevice(DeviceNumber),
    /// A block device, whose number can be encoded.
    BlockDevice(DeviceNumber),
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
}

/// An extended attribute. Access control lists are here in the form in which they are stored ([`crate::ondisk::acl`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xattr {
    /// The namespace of the name; never that of parent pointers.
    pub namespace: AttrNamespace,
    /// The name without namespace, of 1 to [`MAX_NAME`] bytes.
    pub name: Box<[u8]>,
    /// The value, of at most [`MAX_XATTR_VALUE`] bytes.
    pub value: Box<[u8]>,
}

/// What every kind of file has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The lowest 12 bits of the mode.
    pub permissions: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Project number; `None`: what the folder hands down.
    pub project: Option<u32>,
    /// Bits of [`FLAGS`].
    pub flags: u16,
    /// Last access; `None`: when the filesystem is made. It may be out of the range that the filesystem can hold.
    pub atime: Option<Timestamp>,
    /// Last change of the contents; as for the last access.
    pub mtime: Option<Timestamp>,
    /// Extended attributes in the order of namespace and name, each once.
    pub xattrs: Vec<Xattr>,
}

/// A file of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// What it has besides.
    pub attributes: Attributes,
}

/// A tree of files. A file with several names is one node; the number of links follows from the names. Nodes that no name
/// leads to are not in the tree: they stood there once and hold nothing.
#[derive(Clone, Debug)]
pub struct Content {
    nodes: Vec<Node>,
    /// How many names lead to each node.
    names: Vec<u32>,
}

impl Content {
    /// A tree of an empty root directory.
    pub fn new(root: Attributes) -> Self {
        Content { nodes: vec![Node { kind: Kind::Directory(BTreeMap::new()), attributes: root }], names: vec![0] }
    }

    /// How many nodes there are, those that no name leads to among them.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Never: there is a root.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// A node to be changed.
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    /// All nodes, those that no name leads to among them.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// The names in a directory; none in anything else.
    pub fn entries(&self, id: NodeId) -> impl Iterator<Item = (&[u8], NodeId)> {
        let entries = match &self.node(id).kind {
            Kind::Directory(entries) => Some(entries),
            _ => None,
        };
        entries.into_iter().flatten().map(|(name, child)| (&**name, *child))
    }

    /// What a name in a directory stands for.
    pub fn lookup(&self, directory: NodeId, name: &[u8]) -> Option<NodeId> {
        match &self.node(directory).kind {
            Kind::Directory(entries) => entries.get(name).copied(),
            _ => None,
        }
    }

    /// How many names lead to a node; none to the root, and to nodes that are no longer in the tree.
    pub fn names(&self, id: NodeId) -> u32 {
        self.names[id.index()]
    }

    /// Adds a node that no name leads to yet.
    ///
    /// # Errors
    /// `Usage`, when there are 2^32 already.
    pub fn add(&mut self, node: Node) -> Result<NodeId> {
        let id = u32::try_from(self.nodes.len()).map_err(|_| Error::Usage("there are more than 2^32 files".into()))?;
        self.nodes.push(node);
        self.names.push(0);
        Ok(NodeId(id))
    }

    /// Gives a node, which is not the root, a name that is sound in a directory that has none of this name.
    ///
    /// # Errors
    /// `Internal`, when there is such a name, or no such directory.
    pub fn link(&mut self, directory: NodeId, name: &[u8], id: NodeId) -> Result<()> {
        let Kind::Directory(entries) = &mut self.node_mut(directory).kind else {
            return Err(Error::Internal("a name was put into what is no directory".into()));
        };
        match entries.entry(name.into()) {
            Entry::Vacant(entry) => entry.insert(id),
            Entry::Occupied(_) => return Err(Error::Internal("a name was put into a directory twice".into())),
        };
        self.names[id.index()] += 1;
        Ok(())
    }

    /// As [`Content::link`], in the place of what may have the name.
    ///
    /// # Errors
    /// `Internal`, when there is no such directory; those of the sink.
    pub(super) fn replace(
        &mut self,
        directory: NodeId,
        name: &[u8],
        id: NodeId,
        sink: &mut dyn DataSink,
    ) -> Result<()> {
        // what makes room may hold the only other name of the node
        self.names[id.index()] += 1;
        let made_room = self.remove(directory, name, sink).and_then(|()| self.link(directory, name, id));
        self.names[id.index()] -= 1;
        made_room
    }

    /// Takes a name out of a directory, and what was below it out of the tree when it was the last. A name that is not there
    /// is no error.
    ///
    /// # Errors
    /// Those of the sink, which gets back what it need not hold any more.
    pub(super) fn remove(&mut self, directory: NodeId, name: &[u8], sink: &mut dyn DataSink) -> Result<()> {
        let Kind::Directory(entries) = &mut self.node_mut(directory).kind else { return Ok(()) };
        let mut unnamed: Vec<NodeId> = entries.remove(name).into_iter().collect();
        while let Some(id) = unnamed.pop() {
            self.names[id.index()] -= 1;
            if self.names[id.index()] == 0 {
                match std::mem::replace(&mut self.node_mut(id).kind, Kind::Fifo) {
                    Kind::Directory(entries) => unnamed.extend(entries.into_values()),
                    Kind::Regular(data) => data.release(sink)?,
                    _ => {}
                }
                self.node_mut(id).attributes = Attributes::default();
            }
        }
        Ok(())
    }
}

/// Refuses what cannot be the name of a file.
///
/// # Errors
/// What is wrong with it.
pub fn check_name(name: &[u8]) -> std::result::Result<(), &'static str> {
    match name {
        b"" => Err("the name is empty"),
        b"." | b".." => Err("the name stands for a folder that is there already"),
        _ if name.contains(&0) => Err("there is a zero byte in the name"),
        _ if name.contains(&b'/') => Err("there is a slash in the name"),
        _ if name.len() > MAX_NAME => Err("the name is longer than 255 bytes"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::populate::memory_sink::MemorySink;

    fn regular(sink: &mut MemorySink) -> Node {
        let data = Data::store(3, &[(0, 3)], &mut &b"abc"[..], sink).expect("stored");
        Node { kind: Kind::Regular(data), attributes: Attributes::default() }
    }

    fn folder() -> Node {
        Node { kind: Kind::Directory(BTreeMap::new()), attributes: Attributes::default() }
    }

    #[test]
    fn the_last_name_takes_the_file_with_it() {
        let mut sink = MemorySink::new(1024);
        let mut content = Content::new(Attributes::default());
        let above = content.add(folder()).expect("few");
        let below = content.add(folder()).expect("few");
        let (file, other) =
            (content.add(regular(&mut sink)).expect("few"), content.add(regular(&mut sink)).expect("few"));
        content.link(NodeId::ROOT, b"above", above).expect("new");
        content.link(above, b"below", below).expect("new");
        content.link(below, b"file", file).expect("new");
        content.link(below, b"other", other).expect("new");
        content.link(NodeId::ROOT, b"file", file).expect("new");
        assert_eq!((content.names(file), content.names(NodeId::ROOT)), (2, 0));
        assert_eq!(content.entries(NodeId::ROOT).map(|entry| entry.0).collect::<Vec<_>>(), [&b"above"[..], b"file"]);
        assert!(content.link(NodeId::ROOT, b"file", other).is_err() && content.link(file, b"x", other).is_err());

        content.remove(NodeId::ROOT, b"above", &mut sink).expect("released");
        assert_eq!((content.names(file), content.names(other), content.names(below)), (1, 0, 0));
        assert_eq!(sink.held(), 1);
        content.remove(NodeId::ROOT, b"none", &mut sink).expect("nothing to do");
        content.remove(NodeId::ROOT, b"file", &mut sink).expect("released");
        assert_eq!((sink.held(), content.lookup(NodeId::ROOT, b"file")), (0, None));
    }

    #[test]
    fn names_that_no_file_has() {
        for name in [&b""[..], b".", b"..", b"a/b", b"a\0", &[b'x'; 256]] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in [&b"..."[..], b"a\nb", b"\xff\xfe", &[b'x'; 255]] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }
}
