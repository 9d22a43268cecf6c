//! Where the data that came in lie.

use std::collections::HashMap;

use super::space::Piece;
use crate::populate::data::Stored;

/// The pieces of all that was stored, by where that begins in the sink's own count.
#[derive(Default)]
pub(super) struct StoredPieces {
    pieces: HashMap<u64, Vec<Piece>>,
}

impl StoredPieces {
    /// Notes where `stored` lies; `false` when something else begins there.
    pub fn insert(&mut self, stored: Stored, pieces: Vec<Piece>) -> bool {
        self.pieces.insert(stored.start, pieces).is_none()
    }

    /// Where `stored` lies.
    pub fn get(&self, stored: Stored) -> Option<&[Piece]> {
        let pieces = self.pieces.get(&stored.start)?;
        (blocks(pieces) == stored.blocks).then_some(pieces)
    }

    /// Forgets it: where it lay.
    pub fn remove(&mut self, stored: Stored) -> Option<Vec<Piece>> {
        self.get(stored)?;
        self.pieces.remove(&stored.start)
    }

    /// How much is stored.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }
}

fn blocks(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| u64::from(piece.len)).sum()
}
