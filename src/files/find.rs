//! Which files are looked for.

use std::cmp::Ordering;

use super::glob::Glob;
use crate::forms::FileType;
use crate::ondisk::Timestamp;
use crate::tree::Stat;

/// A number that is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// How what is compared must stand to it.
    pub ordering: Ordering,
    /// The number.
    pub number: u64,
}

impl Comparison {
    /// Whether `value` stands so.
    pub fn holds(&self, value: u64) -> bool {
        value.cmp(&self.number) == self.ordering
    }
}

/// What files must fulfil, all of it.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Name: any of these; every one, where there is none.
    pub names: Vec<Glob>,
    /// Kind: any of these; every one, where there is none.
    pub kinds: Vec<FileType>,
    /// Size in bytes.
    pub sizes: Vec<Comparison>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Changed later than this.
    pub newer: Option<Timestamp>,
    /// Changed before this.
    pub older: Option<Timestamp>,
}

impl Filter {
    /// Whether a file called `name` fulfils it.
    pub fn accepts(&self, name: &[u8], stat: &Stat) -> bool {
        (self.names.is_empty() || self.names.iter().any(|glob| glob.matches(name)))
            && (self.kinds.is_empty() || self.kinds.contains(&stat.file_type))
            && self.sizes.iter().all(|size| size.holds(stat.size))
            && self.uid.is_none_or(|uid| uid == stat.uid)
            && self.gid.is_none_or(|gid| gid == stat.gid)
            && self.newer.is_none_or(|time| stat.mtime > time)
            && self.older.is_none_or(|time| stat.mtime < time)
    }
}
