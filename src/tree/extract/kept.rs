//! What could not be kept.

use std::collections::BTreeMap;
use std::io;

/// Paths that are remembered for each kind of loss.
const MOST_PATHS: usize = 100;

/// What a file may lose on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Property {
    /// The file itself.
    File,
    /// Being one file with several names.
    HardLink,
    /// Owner or group; set-user-ID and set-group-ID bits go with them.
    Owner,
    /// Access bits.
    Mode,
    /// An extended attribute.
    Xattr,
    /// An access control list.
    Acl,
    /// Times.
    Times,
}

impl Property {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Property::File => "file",
            Property::HardLink => "hard link",
            Property::Owner => "owner",
            Property::Mode => "mode",
            Property::Xattr => "attribute",
            Property::Acl => "access control list",
            Property::Times => "times",
        }
    }
}

/// Files that lost the same for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// What they lost.
    pub property: Property,
    /// What the system said.
    pub reason: String,
    /// How many times.
    pub count: u64,
    /// The first of them: paths below the folder, for attributes with the name behind a blank.
    pub paths: Vec<Vec<u8>>,
}

/// Everything that could not be kept.
#[derive(Clone, Debug, Default)]
pub struct NotKept {
    lost: BTreeMap<(Property, String), Lost>,
}

impl NotKept {
    /// Notes that the file at `path` lost `property`.
    pub(super) fn note(&mut self, property: Property, path: &[u8], reason: &io::Error) {
        let reason = reason.to_string();
        let lost = self.lost.entry((property, reason.clone()));
        let lost = lost.or_insert(Lost { property, reason, count: 0, paths: Vec::new() });
        lost.count += 1;
        if lost.paths.len() < MOST_PATHS {
            lost.paths.push(path.to_vec());
        }
    }

    /// Whether everything was kept.
    pub fn is_empty(&self) -> bool {
        self.lost.is_empty()
    }

    /// All of it, by property.
    pub fn iter(&self) -> impl Iterator<Item = &Lost> {
        self.lost.values()
    }
}
