//! A layer on top of what is there. What comes later takes the place of what was there before; a folder that comes again
//! keeps what is in it.

use std::collections::VecDeque;
use std::collections::{BTreeMap, HashMap};

use super::acl_text::{self, Names, accounts};
use super::member::{Member, MemberKind, Members};
use super::path;
use super::stream::Stream;
use super::whiteout::{Marker, Touched};
use super::xattr::{Recorded, recorded};
use crate::error::{Error, Result};
use crate::ondisk::dinode::flags;
use crate::populate::content::{Attributes, Kind, Node, NodeId};
use crate::populate::data::{Bytes, Data};
use crate::populate::filling::{Filling, symlink};
use crate::report::name::escape;
use crate::tree::{ACCESS_XATTR, DEFAULT_XATTR};

/// Symbolic links that are followed on the way to a file.
const MOST_LINKS: u32 = 40;
/// Folders in folders.
const MOST_FOLDERS: usize = 4096;
/// Most bytes of a list of users or groups that is looked at.
const MOST_ACCOUNTS: u64 = 1 << 20;
/// Access bits of folders that no member describes.
const FOLDER_MODE: u16 = 0o755;

/// The lists of a member, as text.
struct Lists {
    path: Vec<u8>,
    /// Each, and whether it is the default one.
    texts: Vec<(bool, Vec<u8>)>,
}

struct Layer<'l, 'f> {
    filling: &'l mut Filling<'f>,
    /// The archive's name, as it is shown.
    name: &'l str,
    touched: Touched,
    /// Numbers of users and groups that members have told.
    names: Names,
    /// Numbers that `/etc/passwd` and `/etc/group` in the tree tell.
    accounts: &'l mut Names,
    /// Lists that are read when all names are known.
    lists: HashMap<NodeId, Lists>,
}

/// What is known of users and groups across layers.
#[derive(Default)]
pub(in super::super) struct Accounts(Names);

/// Adds an archive to a tree. `name` is its name in errors.
///
/// # Errors
/// `Source`, for what is no archive, or is cut off, and for members that cannot be in an image. Those of the sink.
pub(in super::super) fn read(
    name: &str,
    reader: Box<dyn std::io::Read + '_>,
    accounts: &mut Accounts,
    filling: &mut Filling<'_>,
) -> Result<()> {
    let mut members = Members::new(Stream::new(reader, name.to_owned())?);
    let (touched, names, lists) = (Touched::default(), Names::default(), HashMap::new());
    let mut layer = Layer { filling, name, touched, names, accounts: &mut accounts.0, lists };
    while let Some(member) = members.next()? {
        layer.add(&member, &mut members)?;
    }
    if !members.finish()? {
        let problem = "what follows the end of the archive is left out";
        layer.filling.observer.warn(&members.error(problem));
    }
    layer.finish()
}

impl Layer<'_, '_> {
    fn error(&self, path: &[u8], problem: impl std::fmt::Display) -> Error {
        Error::source(format!("{}: {}", self.name, escape(path)), problem)
    }

    fn add(&mut self, member: &Member, members: &mut Members<'_>) -> Result<()> {
        for (name, id, numbers) in
            [(&member.user, member.uid, &mut self.names.users), (&member.group, member.gid, &mut self.names.groups)]
        {
            if !name.is_empty() {
                numbers.insert(name.clone(), id);
            }
        }
        let names = path::names(&member.path).map_err(|problem| self.error(&member.path, problem))?;
        let is_folder = member.kind == MemberKind::Directory;
        if self.filling.exclude.matches_any_of(&names.join(&b'/'), is_folder) || Marker::is_internal(&names) {
            return Ok(());
        }
        let Some((name, above)) = names.split_last() else { return self.root(member) };
        match Marker::of(name) {
            Some(marker) => self.take_away(above, &marker, member),
            None => self.put(above, name, member, members),
        }
    }

    fn take_away(&mut self, above: &[&[u8]], marker: &Marker<'_>, member: &Member) -> Result<()> {
        let make = *marker == Marker::Folder;
        let Some(folder) = self.folder(above, make, member)? else { return Ok(()) };
        match marker {
            Marker::File(name) => self.touched.remove(self.filling, folder, name),
            Marker::Folder => self.touched.clear(self.filling, folder),
            Marker::Internal => Ok(()),
        }
    }

    fn root(&mut self, member: &Member) -> Result<()> {
        if member.kind != MemberKind::Directory {
            return Err(self.error(&member.path, "is no folder, where the root of the tree should be"));
        }
        self.describe(NodeId::ROOT, member)
    }

    fn put(&mut self, above: &[&[u8]], name: &[u8], member: &Member, members: &mut Members<'_>) -> Result<()> {
        let folder = self.folder(above, true, member)?;
        let folder = folder.ok_or_else(|| Error::Internal("a folder was not made".into()))?;
        let there = self.filling.content.lookup(folder, name);
        let archive = self.name;
        let shown = || format!("{archive}: {}", escape(&member.path));
        self.touched.insert(folder, name);
        match member.kind {
            MemberKind::HardLink => {
                let target = self.target(member)?;
                if there != Some(target) {
                    self.filling.name(folder, name, target, &shown)?;
                }
                return Ok(());
            }
            MemberKind::Directory => {
                if let Some(id) = there.filter(|id| matches!(self.filling.content.node(*id).kind, Kind::Directory(_))) {
                    return self.describe(id, member);
                }
            }
            _ => {}
        }
        let kind = match member.kind {
            MemberKind::Regular => Kind::Regular(self.contents(above, name, member, members)?),
            MemberKind::Symlink => symlink(&member.link).map_err(|problem| self.error(&member.path, problem))?,
            MemberKind::CharDevice(number) => Kind::CharDevice(number),
            MemberKind::BlockDevice(number) => Kind::BlockDevice(number),
            MemberKind::Fifo => Kind::Fifo,
            MemberKind::Directory | MemberKind::HardLink => Kind::Directory(BTreeMap::new()),
        };
        let id = self.filling.put(folder, name, Node { kind, attributes: Attributes::default() }, &shown)?;
        self.describe(id, member)
    }

    fn contents(&mut self, above: &[&[u8]], name: &[u8], member: &Member, members: &mut Members<'_>) -> Result<Data> {
        if let Some(sparse) = &member.sparse {
            return Data::store(sparse.size, &sparse.segments, members, self.filling.sink);
        }
        if member.stored == 0 {
            return Ok(Data::default());
        }
        let segments = [(0, member.stored)];
        let known = match (above, name) {
            (&[b"etc"], b"passwd") => &mut self.accounts.users,
            (&[b"etc"], b"group") => &mut self.accounts.groups,
            _ => return Data::store(member.stored, &segments, members, self.filling.sink),
        };
        if member.stored > MOST_ACCOUNTS {
            return Data::store(member.stored, &segments, members, self.filling.sink);
        }
        let mut text = vec![0; usize::try_from(member.stored).unwrap_or(0)];
        members.fill(&mut text)?;
        *known = accounts(&text);
        Data::store(member.stored, &segments, &mut &text[..], self.filling.sink)
    }

    /// Gives a node what the member has besides its contents.
    fn describe(&mut self, id: NodeId, member: &Member) -> Result<()> {
        let mut attributes = Attributes {
            permissions: member.permissions,
            uid: member.uid,
            gid: member.gid,
            mtime: Some(member.mtime),
            atime: member.atime,
            ..Attributes::default()
        };
        attributes.flags = member.records.last("SCHILY.fflags").map_or(0, inode_flags);
        let shown = || format!("{}: {}", self.name, escape(&member.path));
        let mut lists = Vec::new();
        for (key, value) in member.records.iter() {
            match recorded(key, value).map_err(|problem| self.error(&member.path, problem))? {
                None => {}
                Some(Recorded::List(default, text)) => lists.push((default, text.to_vec())),
                Some(Recorded::Attribute(name, value)) => {
                    let kind = &self.filling.content.node(id).kind;
                    self.filling.set_xattr(&mut attributes, kind, (&name, &value), &shown)?;
                }
                Some(Recorded::Foreign) => {
                    let problem = "its access control list of NFSv4 is left out: XFS has none of this kind";
                    self.filling.observer.warn(&self.error(&member.path, problem));
                }
            }
        }
        self.filling.content.node_mut(id).attributes = attributes;
        if lists.is_empty() {
            self.lists.remove(&id);
        } else {
            self.lists.insert(id, Lists { path: member.path.clone(), texts: lists });
        }
        Ok(())
    }

    /// The file that a hard link is to.
    fn target(&mut self, member: &Member) -> Result<NodeId> {
        let names = path::names(&member.link).map_err(|problem| self.error(&member.path, problem))?;
        let found = match names.split_last() {
            Some((name, above)) => {
                self.folder(above, false, member)?.and_then(|folder| self.filling.content.lookup(folder, name))
            }
            None => Some(NodeId::ROOT),
        };
        let target = escape(&member.link);
        let id =
            found.ok_or_else(|| self.error(&member.path, format!("is a hard link to {target}, which is not there")))?;
        if matches!(self.filling.content.node(id).kind, Kind::Directory(_)) {
            return Err(self.error(&member.path, format!("is a hard link to {target}, which is a folder")));
        }
        Ok(id)
    }

    /// The folder at a path, whose symbolic links are followed within the tree. What is missing on the way is made, if it is
    /// to be; if not, there is none.
    fn folder(&mut self, names: &[&[u8]], make: bool, member: &Member) -> Result<Option<NodeId>> {
        let mut left: VecDeque<Box<[u8]>> = names.iter().map(|name| Box::from(*name)).collect();
        let mut way = vec![NodeId::ROOT];
        let mut links = 0;
        while let Some(name) = left.pop_front() {
            let here = *way.last().expect("invariant: the root stays");
            if way.len() > MOST_FOLDERS {
                return Err(self.error(&member.path, "is in too many folders, one in the other"));
            }
            if *name == *b".." {
                way.truncate(way.len().saturating_sub(1).max(1));
                continue;
            }
            let found = self.filling.content.lookup(here, &name);
            match found.map(|id| (id, &self.filling.content.node(id).kind)) {
                Some((id, Kind::Directory(_))) => way.push(id),
                Some((_, Kind::Symlink(target))) => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(self.error(&member.path, "there are too many symbolic links on the way to it"));
                    }
                    if target.starts_with(b"/") {
                        way.truncate(1);
                    }
                    let steps = target.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".");
                    let steps: Vec<Box<[u8]>> = steps.map(Box::from).collect();
                    steps.into_iter().rev().for_each(|step| left.push_front(step));
                }
                Some(_) => {
                    let problem = format!("{} on the way to it is no folder", escape(&name));
                    return Err(self.error(&member.path, problem));
                }
                None if make => {
                    let attributes = Attributes { permissions: FOLDER_MODE, ..Attributes::default() };
                    let node = Node { kind: Kind::Directory(BTreeMap::new()), attributes };
                    let shown = || format!("{}: {}", self.name, escape(&member.path));
                    way.push(self.filling.put(here, &name, node, &shown)?);
                    self.touched.insert(here, &name);
                }
                None => return Ok(None),
            }
        }
        Ok(way.last().copied())
    }

    /// Reads the lists of files, in the order of the nodes.
    fn finish(self) -> Result<()> {
        let mut described: Vec<_> = self.lists.into_iter().collect();
        described.sort_by_key(|(id, _)| *id);
        let mut names = self.accounts.clone();
        names.users.extend(self.names.users);
        names.groups.extend(self.names.groups);
        for (id, Lists { path, texts }) in described {
            if self.filling.content.names(id) == 0 && id != NodeId::ROOT {
                continue;
            }
            let shown = || format!("{}: {}", self.name, escape(&path));
            for (default, text) in texts {
                let list = acl_text::parse(&text, &names).or_else(|problem| {
                    let list = acl_text::parse(&text, &of_this_machine(&names)).map_err(|_| problem)?;
                    let problem = "the users and groups of its access control list have the numbers of this machine";
                    self.filling.observer.warn(&Error::source(shown(), problem));
                    Ok(list)
                });
                let failed = |problem: String| Error::source(shown(), format!("its access control list: {problem}"));
                let list = list.map_err(failed)?;
                let name = if default { DEFAULT_XATTR } else { ACCESS_XATTR };
                let node = self.filling.content.node(id);
                let mut attributes = node.attributes.clone();
                self.filling.set_xattr(&mut attributes, &node.kind, (name.as_bytes(), &list.to_xattr()), &shown)?;
                self.filling.content.node_mut(id).attributes = attributes;
            }
        }
        Ok(())
    }
}

/// What is known, and what else this machine knows.
fn of_this_machine(names: &Names) -> Names {
    let read = |path: &str| std::fs::read(path).map(|text| accounts(&text)).unwrap_or_default();
    let mut all = Names { users: read("/etc/passwd"), groups: read("/etc/group") };
    all.users.extend(names.users.clone());
    all.groups.extend(names.groups.clone());
    all
}

/// The flags that libarchive names, of those that can be set.
fn inode_flags(names: &[u8]) -> u16 {
    let flag = |name: &[u8]| match name {
        b"schg" | b"simmutable" | b"immutable" => flags::IMMUTABLE,
        b"sappnd" | b"sappend" | b"append" => flags::APPEND,
        b"nodump" => flags::NODUMP,
        b"noatime" => flags::NOATIME,
        b"sync" => flags::SYNC,
        _ => 0,
    };
    names.split(|byte| *byte == b',').fold(0, |set, name| set | flag(name.trim_ascii()))
}
