//! How much space files take.

use std::collections::HashSet;

use crate::forms::{FileType, Inode};
use crate::tree::Order;
use crate::tree::Reader;
use crate::tree::Stat;
use crate::tree::{Event, Next, Visited, walk};

/// What files take together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of all their blocks.
    pub allocated: u64,
    /// Bytes of their sizes; of folders and other files without contents none.
    pub apparent: u64,
    /// How many they are.
    pub files: u64,
}

impl Usage {
    fn of(stat: &Stat) -> Self {
        let has_contents = matches!(stat.file_type, FileType::Regular | FileType::Symlink);
        Usage { allocated: stat.allocated, apparent: if has_contents { stat.size } else { 0 }, files: 1 }
    }

    fn add(&mut self, other: Usage) {
        self.allocated = self.allocated.saturating_add(other.allocated);
        self.apparent = self.apparent.saturating_add(other.apparent);
        self.files += other.files;
    }
}

/// Files that were counted: one with several links counts once.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    seen: HashSet<u64>,
}

impl Counted {
    /// Tells `visit` what `start` and every file below it takes; a folder, after all in it, with all in it.
    ///
    /// # Errors
    /// Those of `visit`.
    pub fn usage<E>(
        &mut self,
        reader: &Reader<'_>,
        start: &Inode,
        visit: &mut dyn FnMut(&Visited<'_>, Usage) -> Result<(), E>,
    ) -> Result<(), E> {
        // one for each folder that is entered, what was found in it so far
        let mut open: Vec<Usage> = Vec::new();
        walk(reader, start, Order::Name, &mut |event| {
            match event {
                Event::Enter(at) => {
                    let Some(stat) = Stat::of(reader, at.inode) else { return Ok(Next::Skip) };
                    if stat.file_type == FileType::Directory {
                        open.push(Usage::of(&stat));
                    } else if stat.nlink < 2 || self.seen.insert(stat.ino.0) {
                        let usage = Usage::of(&stat);
                        if let Some(folder) = open.last_mut() {
                            folder.add(usage);
                        }
                        visit(&at, usage)?;
                    }
                }
                Event::Leave(at) => {
                    let usage = open.pop().unwrap_or_default();
                    if let Some(folder) = open.last_mut() {
                        folder.add(usage);
                    }
                    visit(&at, usage)?;
                }
            }
            Ok(Next::Descend)
        })
    }
}
