//! The ring of positions that were visited.

use super::position::Position;
use crate::geometry::Ino;

/// Places that the ring has.
pub const PLACES: usize = 20;

/// A position that was visited, and the inode that was current there.
#[derive(Clone, Debug)]
pub struct Visited {
    /// The position.
    pub position: Position,
    /// The inode.
    pub ino: Option<Ino>,
}

/// The last positions that were visited, and which of them one is at.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    places: Vec<Visited>,
    /// The newest one.
    head: usize,
    /// The oldest one.
    tail: usize,
    current: usize,
}

impl Ring {
    /// Notes a visit: behind the current place, which overwrites what was visited after it.
    pub fn add(&mut self, visited: Visited) {
        if self.places.is_empty() {
            self.places.push(visited);
            return;
        }
        let newest = self.current == self.head;
        self.current = (self.current + 1) % PLACES;
        if newest {
            self.head = self.current;
            if self.places.len() == PLACES && self.head == self.tail {
                self.tail = (self.tail + 1) % PLACES;
            }
        }
        match self.places.get_mut(self.current) {
            Some(place) => *place = visited,
            None => self.places.push(visited),
        }
    }

    /// The places from the newest to the oldest: index, whether one is there, and what was visited.
    pub fn newest_first(&self) -> impl Iterator<Item = (usize, bool, &Visited)> {
        let count = (self.head + PLACES - self.tail) % PLACES + usize::from(!self.places.is_empty());
        (0..count).filter_map(move |back| {
            let index = (self.head + PLACES - back) % PLACES;
            self.places.get(index).map(|visited| (index, index == self.current, visited))
        })
    }

    /// Goes to the place with this index.
    pub fn go(&mut self, index: usize) -> Option<&Visited> {
        let visited = self.places.get(index)?;
        self.current = index;
        Some(visited)
    }

    /// Goes to the place visited before; `None` at the oldest one.
    pub fn back(&mut self) -> Option<&Visited> {
        if self.places.is_empty() || self.current == self.tail {
            return None;
        }
        self.go((self.current + PLACES - 1) % PLACES)
    }

    /// Goes to the place visited after; `None` at the newest one.
    pub fn forward(&mut self) -> Option<&Visited> {
        if self.places.is_empty() || self.current == self.head {
            return None;
        }
        self.go((self.current + 1) % PLACES)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::db::crc_state::CrcState;
    use crate::db::types::TypeId;
    use crate::error::{DeviceRole, Verdict};
    use crate::geometry::Daddr;

    fn visited(number: u64) -> Visited {
        let position = Position {
            ty: TypeId::Data,
            device: DeviceRole::Data,
            daddr: Daddr(number),
            basic_blocks: 1,
            fragments: Vec::new(),
            buffer: Arc::from([0_u8; 512]),
            offset: 0,
            len: 512,
            crc: CrcState::Unchecked,
            verdict: Arc::new(Verdict::new()),
        };
        Visited { position, ino: None }
    }

    fn listed(ring: &Ring) -> Vec<(usize, u64)> {
        ring.newest_first().map(|(index, _, visited)| (index, visited.position.daddr.0)).collect()
    }

    #[test]
    fn one_goes_back_and_forward_between_the_ends() {
        let mut ring = Ring::default();
        assert!(ring.back().is_none() && ring.forward().is_none() && listed(&ring).is_empty());
        for number in 0..3 {
            ring.add(visited(number));
        }
        assert_eq!(listed(&ring), [(2, 2), (1, 1), (0, 0)]);
        assert!(ring.forward().is_none());
        assert!(ring.back().is_some_and(|visited| visited.position.daddr.0 == 1));
        assert!(ring.back().is_some_and(|visited| visited.position.daddr.0 == 0));
        assert!(ring.back().is_none());
        // a visit from here overwrites the next place, and leaves the newest one
        ring.add(visited(9));
        assert_eq!(listed(&ring), [(2, 2), (1, 9), (0, 0)]);
        assert!(ring.go(2).is_some() && ring.go(3).is_none());
    }

    #[test]
    fn the_oldest_places_are_forgotten() {
        let mut ring = Ring::default();
        for number in 0..45 {
            ring.add(visited(number));
        }
        let list = listed(&ring);
        assert_eq!(list.len(), PLACES);
        assert_eq!((list[0].1, list[PLACES - 1].1), (44, 25));
    }
}
