//! The entries of a directory, against which its index is held: hash and address of each, no names.

/// Entries that the data blocks have, and which of them the index names.
#[derive(Debug, Default)]
pub(super) struct DirHashes {
    entries: Vec<Entry>,
    sorted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    hash: u32,
    address: u32,
    seen: bool,
}

impl DirHashes {
    /// Notes an entry of a data block.
    pub fn add(&mut self, hash: u32, address: u32) {
        self.entries.push(Entry { hash, address, seen: false });
        self.sorted = false;
    }

    /// Notes an entry of the index; `false` if there is no such entry, or the index has named it before.
    pub fn see(&mut self, hash: u32, address: u32) -> bool {
        if !self.sorted {
            self.entries.sort_unstable();
            self.sorted = true;
        }
        let at = self.entries.partition_point(|entry| (entry.hash, entry.address) < (hash, address));
        match self.entries.get_mut(at) {
            Some(entry) if (entry.hash, entry.address, entry.seen) == (hash, address, false) => {
                entry.seen = true;
                true
            }
            _ => false,
        }
    }

    /// Hash and address of the entries that the index does not name, in the order in which xfs_db tells them: by the
    /// remainder of both, later addresses first.
    pub fn missing(&self) -> Vec<(u32, u32)> {
        let unseen = self.entries.iter().filter(|entry| !entry.seen);
        let mut missing: Vec<(u32, u32)> = unseen.map(|entry| (entry.hash, entry.address)).collect();
        missing.sort_by_key(|(hash, address)| ((hash ^ address) % 1024, std::cmp::Reverse(*address)));
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_is_seen_once() {
        let mut hashes = DirHashes::default();
        for (hash, address) in [(9, 3), (5, 8), (5, 2), (1024 + 5, 2)] {
            hashes.add(hash, address);
        }
        assert!(hashes.see(5, 2) && !hashes.see(5, 2) && !hashes.see(5, 3) && !hashes.see(6, 0));
        assert_eq!(hashes.missing(), [(1029, 2), (9, 3), (5, 8)]);
        assert!(hashes.see(9, 3));
        assert_eq!(hashes.missing(), [(1029, 2), (5, 8)]);
    }
}
