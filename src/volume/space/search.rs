//! Which free extent is taken (Linux `xfs_alloc_ag_vextent_exact`, `xfs_alloc_ag_vextent_near`, `xfs_alloc_ag_vextent_size`).

use super::group_tree::GroupTree;
use super::header::corrupt;
use crate::btree::{Position, SortKey};
use crate::error::{Result, Rule};
use crate::geometry::{AgBlock, AgNumber, BtreeKind};
use crate::ondisk::alloc_record::FreeExtent;
use crate::ondisk::{OnDisk, RawAllocRecord};
use crate::transaction::Transaction;

/// What is looked for in one group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) align: u32,
    pub(super) multiple: u32,
    pub(super) modulo: u32,
    /// First and last block at which the extent may start.
    pub(super) range: (u32, u32),
    pub(super) user_data: bool,
    /// Whether extents are left out whose contents must stay for now.
    pub(super) avoid_busy: bool,
}

/// An extent to be taken out of a free one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) free: FreeExtent,
    pub(super) start: u32,
    pub(super) len: u32,
}

/// What a search found; with nothing, whether all that was there was busy.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    pub(super) choice: Option<Choice>,
    pub(super) busy: bool,
}

type Records<'t> = Position<'t, GroupTree<'t>>;

fn by_start(start: u32) -> SortKey {
    SortKey([u64::from(start), 0, 0])
}

fn by_len(len: u32, start: u32) -> SortKey {
    SortKey([u64::from(len), u64::from(start), 0])
}

/// The free space of a group, with the wish.
pub(super) struct Search<'t, 's> {
    tx: &'t Transaction<'s>,
    agno: AgNumber,
    wish: Wish,
    by_start: GroupTree<'t>,
    by_len: GroupTree<'t>,
}

/// A free extent without what is busy of it, aligned.
struct Usable {
    start: u32,
    len: u32,
    trimmed: bool,
}

impl<'t, 's> Search<'t, 's> {
    pub(super) fn new(tx: &'t Transaction<'s>, agno: AgNumber, wish: Wish) -> Result<Self> {
        let by_start = GroupTree::of(tx.store(), agno, BtreeKind::Bnobt)?;
        let by_len = GroupTree::of(tx.store(), agno, BtreeKind::Cntbt)?;
        Ok(Search { tx, agno, wish, by_start, by_len })
    }

    /// The record at a position; `None` behind the last.
    fn record(&self, position: &Records<'_>) -> Result<Option<FreeExtent>> {
        let Some(record) = position.record()? else { return Ok(None) };
        let (raw, _) = RawAllocRecord::prefix(record).ok_or_else(|| self.damaged())?;
        let extent = raw.decode();
        let geometry = self.tx.store().geometry();
        let last = extent.blockcount.checked_sub(1).and_then(|more| extent.startblock.checked_add(more));
        let inside = |block: u32| geometry.is_usable_agbno(self.agno, AgBlock(block));
        if inside(extent.startblock) && last.is_some_and(inside) { Ok(Some(extent)) } else { Err(self.damaged()) }
    }

    fn damaged(&self) -> crate::error::Error {
        corrupt("bnobt", "startblock", Rule::Range, self.agno)
    }

    /// Leaves out what is busy (`xfs_extent_busy_trim`); length 0 when too little is left.
    fn trim_busy(&self, extent: FreeExtent) -> (u32, u32) {
        let (mut start, mut end) = (extent.startblock, extent.startblock + extent.blockcount);
        let (min, max) = (self.wish.min, self.wish.max);
        while self.wish.avoid_busy && end - start >= min.max(1) {
            let Some((first, count)) = self.tx.busy_in(self.agno, AgBlock(start), end - start) else { break };
            let (busy, busy_end) = (first.0, first.0.saturating_add(count));
            if busy <= start {
                if busy_end >= end {
                    return (start, 0);
                }
                start = busy_end;
            } else if busy_end >= end || busy - start >= max {
                end = busy;
            } else if end - busy_end >= max.saturating_mul(4) {
                start = busy_end;
            } else if busy - start >= min {
                end = busy;
            } else {
                return (start, 0);
            }
        }
        (start, end - start)
    }

    /// What of a free extent can be had: not busy, in range, aligned (`xfs_alloc_compute_aligned`).
    fn usable(&self, extent: FreeExtent) -> Usable {
        let (mut start, mut len) = self.trim_busy(extent);
        let trimmed = (start, len) != (extent.startblock, extent.blockcount);
        let low = self.wish.range.0;
        if start < low && start + len > low {
            len -= low - start;
            start = low;
        }
        if self.wish.align > 1 && len >= self.wish.min {
            let aligned = start.checked_next_multiple_of(self.wish.align).unwrap_or(u32::MAX);
            len = len.saturating_sub(aligned - start);
            start = aligned;
        }
        Usable { start, len, trimmed }
    }

    /// A length of the form that is asked for, if there is one (`xfs_alloc_fix_len`).
    fn fix_len(&self, len: u32) -> u32 {
        let Wish { min, max, multiple, modulo, .. } = self.wish;
        if multiple <= 1 || len < modulo || len == max || modulo == 0 && len < multiple {
            return len;
        }
        let rest = len % multiple;
        let shorter =
            if rest >= modulo { len - (rest - modulo) } else { (len + modulo - rest).saturating_sub(multiple) };
        if shorter < min { len } else { shorter }
    }

    /// Exactly from block `start` on.
    pub(super) fn exact(&self, start: u32) -> Result<Found> {
        let Some(position) = Position::at_or_before(&self.by_start, by_start(start))? else {
            return Ok(Found::default());
        };
        let Some(free) = self.record(&position)? else { return Ok(Found::default()) };
        let (first, len) = self.trim_busy(free);
        let end = first + len;
        if first > start || len < self.wish.min || end < start.saturating_add(self.wish.min) {
            return Ok(Found { choice: None, busy: (first, len) != (free.startblock, free.blockcount) });
        }
        let len = self.fix_len(end.min(start.saturating_add(self.wish.max)) - start);
        Ok(Found { choice: Some(Choice { free, start, len }), busy: false })
    }

    /// Wherever an extent of the right size is: the smallest that holds the most that is asked for, else the largest.
    pub(super) fn by_size(&self) -> Result<Found> {
        let wanted = self.wish.max.saturating_add(self.wish.align - 1);
        let mut position = Position::at_or_after(&self.by_len, by_len(wanted, 0))?;
        let mut busy = false;
        while let Some(free) = self.record(&position)? {
            let usable = self.usable(free);
            busy |= usable.trimmed;
            if usable.len >= self.wish.max {
                let len = self.fix_len(self.wish.max);
                return Ok(Found { choice: Some(Choice { free, start: usable.start, len }), busy });
            }
            position.forward()?;
        }
        self.largest(position, busy)
    }

    /// The largest extent before a position.
    fn largest(&self, mut position: Records<'_>, mut busy: bool) -> Result<Found> {
        let mut best: Option<Choice> = None;
        while position.back()? {
            let Some(free) = self.record(&position)? else { break };
            let most = best.map_or(0, |best| best.len);
            if free.blockcount <= most {
                break;
            }
            let usable = self.usable(free);
            busy |= usable.trimmed;
            let len = usable.len.min(self.wish.max);
            if len > most {
                best = Some(Choice { free, start: usable.start, len });
                if len == self.wish.max {
                    break;
                }
            }
        }
        let choice = best.filter(|best| best.len >= self.wish.min);
        Ok(Found { choice: choice.map(|choice| Choice { len: self.fix_len(choice.len), ..choice }), busy })
    }

    /// As near to block `target` as can be, with the most blocks that can be had there.
    pub(super) fn near(&self, target: u32) -> Result<Found> {
        let target = target.clamp(self.wish.range.0, self.wish.range.1);
        let mut candidate = Candidate::new(self, target);
        let mut by_size = Position::at_or_after(&self.by_len, by_len(self.wish.max, 0))?;
        if self.record(&by_size)?.is_none() {
            // nothing is that large: the search starts from the largest there is
            if !by_size.back()? {
                return Ok(Found::default());
            }
            if self.record(&by_size)?.is_none_or(|largest| largest.blockcount < self.wish.min) {
                return Ok(Found::default());
            }
        }
        if by_size.in_last_leaf() && candidate.look_through_last_leaf(&mut by_size)? {
            return Ok(candidate.found());
        }
        candidate.look_around()?;
        Ok(candidate.found())
    }
}

/// The best extent so far of a search for the nearest.
struct Candidate<'a, 't, 's> {
    search: &'a Search<'t, 's>,
    target: u32,
    best: Option<Choice>,
    distance: u32,
    busy: bool,
}

/// What a record means for a search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looked {
    /// It is the best so far.
    Better,
    /// It is not.
    Worse,
    /// It is not, or is perfect, and there is nothing better in that direction.
    Enough {
        /// It is the best so far.
        better: bool,
    },
}

impl<'a, 't, 's> Candidate<'a, 't, 's> {
    fn new(search: &'a Search<'t, 's>, target: u32) -> Self {
        Candidate { search, target, best: None, distance: u32::MAX, busy: false }
    }

    fn found(&self) -> Found {
        Found { choice: self.best, busy: self.busy }
    }

    /// Holds a record against the best so far (`xfs_alloc_cur_check`).
    fn look(&mut self, free: FreeExtent, in_order_of_place: bool) -> Looked {
        let wish = &self.search.wish;
        let stop = |stops: bool| if stops { Looked::Enough { better: false } } else { Looked::Worse };
        if free.blockcount < wish.min {
            return stop(!in_order_of_place);
        }
        let usable = self.search.usable(free);
        self.busy |= usable.trimmed;
        if usable.start < wish.range.0 || usable.start > wish.range.1 {
            return stop(in_order_of_place);
        }
        if usable.len < wish.min {
            return Looked::Worse;
        }
        let len = self.search.fix_len(usable.len.min(wish.max));
        let most = self.best.map_or(0, |best| best.len);
        if len < most {
            return Looked::Worse;
        }
        let Some((start, distance)) = self.nearest(&usable, len) else { return Looked::Worse };
        if distance > self.distance {
            return stop(in_order_of_place);
        }
        self.best = Some(Choice { free, start, len });
        self.distance = distance;
        if distance == 0 && len == wish.max { Looked::Enough { better: true } } else { Looked::Better }
    }

    /// Where in a free extent `len` blocks are best taken, and how far from the target that is (`xfs_alloc_compute_diff`).
    fn nearest(&self, free: &Usable, len: u32) -> Option<(u32, u32)> {
        let (want, align) = (self.target, self.search.wish.align.max(1));
        let (free_end, want_end) = (free.start + free.len, want.saturating_add(len));
        let up = |block: u32| block.checked_next_multiple_of(align).unwrap_or(u32::MAX);
        let start = if free.start >= want || self.search.wish.user_data && free_end < want_end {
            Some(up(free.start)).filter(|start| *start < free_end)
        } else if free_end >= want_end && align > 1 {
            let above = up(want);
            let below = above.checked_sub(align).filter(|below| *below >= free.start);
            let fits = |start: u32| len.min(free_end - start);
            match (Some(above).filter(|above| *above < free_end), below) {
                (Some(above), Some(below)) => {
                    let worse = fits(above) < fits(below)
                        || fits(above) == fits(below) && above.abs_diff(want) > below.abs_diff(want);
                    Some(if worse { below } else { above })
                }
                (above, below) => above.or(below),
            }
        } else if free_end >= want_end {
            Some(want)
        } else {
            let last = free_end - len;
            let start = up(last);
            let down = start.checked_sub(align).filter(|down| start > last && *down >= free.start);
            down.or(Some(start).filter(|start| *start < free_end))
        };
        start.map(|start| (start, start.abs_diff(want)))
    }

    /// All records of the last leaf by size from a position on, or all of it that are long enough
    /// (`xfs_alloc_ag_vextent_lastblock`). Whether one of them will do.
    fn look_through_last_leaf(&mut self, position: &mut Records<'_>) -> Result<bool> {
        let wish = &self.search.wish;
        let short = self.search.record(position)?.is_none_or(|free| free.blockcount < wish.max);
        if short || wish.align > 1 {
            position.to_start_of_leaf();
            while self.search.record(position)?.is_some_and(|free| free.blockcount < wish.min) {
                position.forward()?;
            }
        }
        while let Some(free) = self.search.record(position)? {
            if let Looked::Enough { .. } = self.look(free, false) {
                break;
            }
            position.forward()?;
        }
        Ok(self.best.is_some())
    }

    /// To the left and to the right of the target, and by size, at the same time (`xfs_alloc_ag_vextent_locality`).
    fn look_around(&mut self) -> Result<()> {
        let mut left = Position::at_or_before(&self.search.by_start, by_start(self.target))?;
        let right = Position::at_or_after(&self.search.by_start, by_start(self.target))?;
        let mut right = right.record()?.is_some().then_some(right);
        let mut len = Some(self.search.wish.max);
        while left.is_some() || right.is_some() || len.is_some() {
            if self.step(&mut left, false)? {
                return self.walk(right, true);
            }
            if self.step(&mut right, true)? {
                return self.walk(left, false);
            }
            if let Some(wanted) = len {
                len = self.look_at_size(wanted)?;
                if len.is_none() {
                    break;
                }
            }
        }
        if self.best.is_none() && !self.busy {
            let largest = Position::last(&self.search.by_len)?;
            self.walk_sizes(largest)?;
        }
        Ok(())
    }

    /// Looks at one record and goes on; a position that leads nowhere is dropped. Whether the record is the best so far.
    fn step(&mut self, position: &mut Option<Records<'_>>, up: bool) -> Result<bool> {
        let Some(at) = position.as_mut() else { return Ok(false) };
        let Some(free) = self.search.record(at)? else {
            *position = None;
            return Ok(false);
        };
        let looked = self.look(free, true);
        if matches!(looked, Looked::Better | Looked::Enough { better: true }) {
            return Ok(true);
        }
        let more = looked == Looked::Worse && if up { at.forward()? } else { at.back()? };
        if !more {
            *position = None;
        }
        Ok(false)
    }

    /// On from a position until one is better than the best so far, or none can be.
    fn walk(&mut self, mut position: Option<Records<'_>>, up: bool) -> Result<()> {
        while position.is_some() {
            if self.step(&mut position, up)? {
                break;
            }
        }
        Ok(())
    }

    /// From the largest down to the first that will do.
    fn walk_sizes(&mut self, mut position: Option<Records<'_>>) -> Result<()> {
        while let Some(at) = position.as_mut() {
            let Some(free) = self.search.record(at)? else { break };
            if self.look(free, false) != Looked::Worse || !at.back()? {
                break;
            }
        }
        Ok(())
    }

    /// The nearest of the extents that have `wanted` blocks or the next size above (`xfs_alloc_cntbt_iter`). The next size to
    /// look for; `None` when there is nothing larger.
    fn look_at_size(&mut self, wanted: u32) -> Result<Option<u32>> {
        let mut position = Position::at_or_after(&self.search.by_len, by_len(wanted, self.target))?;
        let Some(free) = self.search.record(&position)? else { return Ok(None) };
        let mut ended = matches!(self.look(free, false), Looked::Enough { .. });
        let size = free.blockcount;
        if free.startblock > self.target
            && position.back()?
            && let Some(before) = self.search.record(&position)?.filter(|before| before.blockcount == size)
        {
            ended |= matches!(self.look(before, false), Looked::Enough { .. });
        }
        if ended {
            return Ok(None);
        }
        let doubled = wanted.saturating_mul(2);
        Ok(Some(if self.best.is_none() || size >= doubled { size.saturating_add(1) } else { doubled }))
    }
}
