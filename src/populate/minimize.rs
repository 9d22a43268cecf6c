//! The smallest image that holds a tree.
//!
//! Whether a size will do is found out by building the image without writing it. Larger is not always better: at some sizes mkfs
//! makes more groups or a larger log, and less room is left. Sizes with the same number of groups and the same log belong
//! together; within these, what holds the tree at one size holds it at any larger one.

use std::sync::Arc;

use super::build::{BuildOptions, Builder, Summary};
use super::content::{Content, Kind};
use super::data::Piece;
use super::spool::Spool;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::ondisk::RawSuperblock;

/// Doublings of the size after which no image is large enough.
const DOUBLINGS: u32 = 24;

/// A filesystem of some size that lacks its primary superblock, to be tried.
pub struct Candidate {
    /// The superblock.
    pub superblock: RawSuperblock,
    /// What it lies on; nothing is written there.
    pub device: Arc<dyn Device>,
}

/// What mkfs makes of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Regime {
    /// Allocation groups.
    pub groups: u32,
    /// Blocks of the log.
    pub log_blocks: u32,
}

/// Filesystems of any size.
pub trait Candidates {
    /// What a filesystem of `blocks` blocks would be like; `None` when there can be none of this size.
    ///
    /// # Errors
    /// When there can be none of any size.
    fn regime(&mut self, blocks: u64) -> Result<Option<Regime>>;

    /// Makes one.
    ///
    /// # Errors
    /// Those of mkfs.
    fn make(&mut self, blocks: u64) -> Result<Candidate>;
}

/// Space that is to be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headroom {
    /// Bytes.
    Bytes(u64),
    /// A share of the image, in percent, below 100.
    Percent(u8),
}

impl Headroom {
    /// Whether an image of `blocks` blocks has it.
    fn is_left(self, summary: &Summary, blocks: u64, block_size: u32) -> bool {
        match self {
            Headroom::Bytes(bytes) => summary.available >= bytes.div_ceil(u64::from(block_size)),
            Headroom::Percent(share) => u128::from(summary.available) * 100 >= u128::from(blocks) * u128::from(share),
        }
    }
}

/// The fewest blocks of a filesystem that holds `content`, whose data are in `spool`, and leaves `headroom`: one block less
/// does not.
///
/// # Errors
/// Those of `candidates`; `Usage` when no size will do.
pub fn smallest(content: &Content, spool: &Spool, headroom: Headroom, candidates: &mut dyn Candidates) -> Result<u64> {
    let mut search = Search { content, spool, headroom, candidates, refusal: None };
    let least = search.least_blocks();
    let mut from = least;
    let mut limit = least;
    for _ in 0..DOUBLINGS {
        limit = limit.saturating_mul(2);
        while from < limit {
            let regime = search.candidates.regime(from)?;
            let last = search.last_of(regime, from, limit)?;
            if regime.is_some() && search.holds(last)? {
                return search.first_that_holds(from, last);
            }
            from = last + 1;
        }
    }
    Err(search.refusal.unwrap_or_else(|| Error::Usage("no image is large enough for the tree".into())))
}

struct Search<'s> {
    content: &'s Content,
    spool: &'s Spool,
    headroom: Headroom,
    candidates: &'s mut dyn Candidates,
    /// Why the last size would not do.
    refusal: Option<Error>,
}

impl Search<'_> {
    /// Blocks below which the tree cannot be held: those of its data.
    fn least_blocks(&self) -> u64 {
        let nodes = self.content.nodes().filter_map(|node| match &node.kind {
            Kind::Regular(data) => Some(data),
            _ => None,
        });
        let reserved: u64 = nodes
            .flat_map(|data| &data.ranges)
            .map(|range| match range.piece {
                Piece::Reserved { blocks } => blocks,
                Piece::Stored(_) => 0,
            })
            .sum();
        (self.spool.blocks() + reserved).max(1)
    }

    /// The last size below `limit` that belongs to `from`.
    fn last_of(&mut self, regime: Option<Regime>, from: u64, limit: u64) -> Result<u64> {
        // sizes that differ enter from the right: what is between them is halved until one is found
        let (mut same, mut step) = (from, 1);
        let mut other = limit;
        while same + step < other {
            if self.candidates.regime(same + step)? == regime {
                same += step;
                step = step.saturating_mul(2);
            } else {
                other = same + step;
                step = 1;
            }
        }
        while same + 1 < other {
            let middle = same + (other - same) / 2;
            if self.candidates.regime(middle)? == regime { same = middle } else { other = middle }
        }
        Ok(same)
    }

    /// The first size from `from` to `last` that holds the tree, as `last` does.
    fn first_that_holds(&mut self, from: u64, last: u64) -> Result<u64> {
        let (mut below, mut holds) = (from, last);
        if self.holds(below)? {
            return Ok(below);
        }
        while below + 1 < holds {
            let middle = below + (holds - below) / 2;
            if self.holds(middle)? { holds = middle } else { below = middle }
        }
        Ok(holds)
    }

    fn holds(&mut self, blocks: u64) -> Result<bool> {
        let tried = self.attempt(blocks);
        match tried {
            Ok((summary, block_size)) => Ok(self.headroom.is_left(&summary, blocks, block_size)),
            Err(error @ Error::Usage(_)) => {
                self.refusal = Some(error);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn attempt(&mut self, blocks: u64) -> Result<(Summary, u32)> {
        let candidate = self.candidates.make(blocks)?;
        let options = BuildOptions { seed: Some(0), trial: true };
        let mut builder = Builder::new(candidate.superblock, &candidate.device, options)?;
        self.spool.copy_to(&mut builder)?;
        Ok((builder.finish(self.content)?, candidate.superblock.blocksize.get()))
    }
}
