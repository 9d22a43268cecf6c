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
