//! Every file below a folder.

use std::collections::HashSet;

use super::folder::{Folder, Order};
use super::reader::Reader;
use crate::error::{Check, Error, Place, Rule};
use crate::forms::{FileType, Inode};

/// The longest path, in bytes, below which a walk goes no deeper: eight times what Linux takes in one call. A chain of
/// folders that is longer could be listed in no reasonable time, since each path repeats all names before it.
const LONGEST_PATH: usize = 32 * 1024;

/// The fewest bytes of an entry on disk: an image of so many bytes cannot have more entries than the quotient.
const SHORTEST_ENTRY: u64 = 8;

/// A file that a walk has come to.
#[derive(Clone, Copy, Debug)]
pub struct Visited<'w> {
    /// The way to it from where the walk began, names with slashes between; empty for the beginning itself.
    pub path: &'w [u8],
    /// The last name of the path; empty for the beginning.
    pub name: &'w [u8],
    /// How many names the path has.
    pub depth: usize,
    /// Whether no other entry of its folder comes behind it.
    pub is_last: bool,
    /// Its inode.
    pub inode: &'w Inode,
}

/// What a walk tells its visitor.
#[derive(Clone, Copy, Debug)]
pub enum Event<'w> {
    /// A file or folder; a folder comes before what it holds.
    Enter(Visited<'w>),
    /// A folder, after all that it holds.
    Leave(Visited<'w>),
}

/// What the visitor wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Go on, into the folder if it is one.
    Descend,
    /// Go on, not into the folder.
    Skip,
    /// End the walk.
    Stop,
}

/// A folder on the way.
struct Level {
    inode: Inode,
    folder: Folder,
    next: usize,
    /// Length of its path, and where its name begins in it.
    len: usize,
    name_at: usize,
    is_last: bool,
}

struct Walk<'a, 'r> {
    reader: &'a Reader<'r>,
    order: Order,
    path: Vec<u8>,
    levels: Vec<Level>,
    visited: HashSet<u64>,
    /// Entries that may still be visited.
    budget: u64,
}

/// Tells `visit` of `start` and of everything below it. What is damaged is reported to the reader, and left out. A folder is
/// entered once, so that a cycle ends.
///
/// # Errors
/// Those of `visit`.
pub fn walk<E>(
    reader: &Reader<'_>,
    start: &Inode,
    order: Order,
    visit: &mut dyn FnMut(Event<'_>) -> Result<Next, E>,
) -> Result<(), E> {
    let bytes = reader.geometry().blocks_to_bytes(reader.geometry().dblocks).unwrap_or(u64::MAX);
    let budget = (bytes / SHORTEST_ENTRY).max(1);
    let mut walk = Walk { reader, order, path: Vec::new(), levels: Vec::new(), visited: HashSet::new(), budget };
    if walk.enter(start.clone(), 0, true, visit)? == Next::Stop {
        return Ok(());
    }
    while let Some(level) = walk.levels.last_mut() {
        let Some(entry) = level.folder.get(level.next) else {
            if walk.leave(visit)? == Next::Stop {
                break;
            }
            continue;
        };
        level.next += 1;
        let is_last = level.next == level.folder.len();
        walk.path.truncate(level.len);
        if !walk.path.is_empty() {
            walk.path.push(b'/');
        }
        let name_at = walk.path.len();
        walk.path.extend_from_slice(entry.name);
        let ino = entry.ino;
        let Some(left) = walk.budget.checked_sub(1) else {
            walk.report_level("inumber", Rule::Count);
            // the folders that were entered are left all the same
            walk.levels.iter_mut().for_each(|level| level.next = level.folder.len());
            continue;
        };
        walk.budget = left;
        let Some(inode) = reader.inode(ino) else { continue };
        if walk.enter(inode, name_at, is_last, visit)? == Next::Stop {
            break;
        }
    }
    Ok(())
}

impl Walk<'_, '_> {
    /// Tells of a file whose path is the one that stands in `self.path`.
    fn enter<E>(
        &mut self,
        inode: Inode,
        name_at: usize,
        is_last: bool,
        visit: &mut dyn FnMut(Event<'_>) -> Result<Next, E>,
    ) -> Result<Next, E> {
        let is_folder = inode.file_type() == Some(FileType::Directory);
        if is_folder && self.visited.contains(&inode.ino.0) {
            let place = Place { inode: Some(inode.ino.0), ..inode.place };
            self.reader.report(&Error::corrupt(Check::new("dirent", "inumber", Rule::Cycle), place));
            return Ok(Next::Skip);
        }
        let depth = self.levels.len();
        let (path, name) = (&self.path[..], &self.path[name_at..]);
        let next = visit(Event::Enter(Visited { path, name, depth, is_last, inode: &inode }))?;
        if !is_folder || next != Next::Descend {
            return Ok(next);
        }
        self.visited.insert(inode.ino.0);
        let folder = if self.path.len() > LONGEST_PATH {
            let place = Place { inode: Some(inode.ino.0), ..inode.place.clone() };
            self.reader.report(&Error::corrupt(Check::new("path", "length", Rule::Range), place));
            Folder::default()
        } else {
            Folder::read(self.reader, &inode, self.order)
        };
        self.levels.push(Level { inode, folder, next: 0, len: self.path.len(), name_at, is_last });
        Ok(Next::Descend)
    }

    fn leave<E>(&mut self, visit: &mut dyn FnMut(Event<'_>) -> Result<Next, E>) -> Result<Next, E> {
        let Some(level) = self.levels.pop() else { return Ok(Next::Stop) };
        self.path.truncate(level.len);
        let (path, name) = (&self.path[..], &self.path[level.name_at..]);
        let depth = self.levels.len();
        visit(Event::Leave(Visited { path, name, depth, is_last: level.is_last, inode: &level.inode }))
    }

    fn report_level(&self, field: &'static str, rule: Rule) {
        let place = self.levels.last().map(|level| level.inode.place.clone()).unwrap_or_default();
        self.reader.report(&Error::corrupt(Check::new("dirent", field, rule), place));
    }
}
