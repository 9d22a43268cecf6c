//! What every block of a group is used for, in pages: runs where they are long; where they are short a number for each block
//! that stands for one of a few uses; an array where these are many. Memory goes with the number of extents, and never beyond
//! 8 bytes for each block that anybody uses.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::block_type::BlockType;
use super::palette::Palette;
use super::replay::Cell;

/// log2 of the blocks of a page.
const PAGE_LOG: u32 = 15;
const PAGE: u64 = 1 << PAGE_LOG;
/// More runs than this, and the page becomes a palette.
const MOST_RUNS: usize = 1024;

/// A cell in 8 bytes: 56 bits of inode number, a bit for shared blocks, the type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Packed(u64);

const REFLINK: u64 = 1 << 7;
/// The greatest inode number that fits.
const MOST_INO: u64 = (1 << 56) - 1;

impl Packed {
    fn new(cell: Cell) -> Option<Self> {
        let kind = u64::from(cell.kind as u8);
        (cell.ino <= MOST_INO).then_some(Packed(cell.ino << 8 | if cell.reflink { REFLINK } else { 0 } | kind))
    }

    fn cell(self) -> Cell {
        let kind = usize::try_from(self.0 & (REFLINK - 1)).ok().and_then(|kind| BlockType::ALL.get(kind));
        Cell { ino: self.0 >> 8, kind: kind.copied().unwrap_or_default(), reflink: self.0 & REFLINK != 0 }
    }
}

/// Blocks of a page from `start` to `last` that are used alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    packed: Packed,
    start: u16,
    last: u16,
}

#[derive(Debug)]
enum Page {
    /// Runs in order; what lies between them is not used.
    Runs(Vec<Run>),
    /// A few uses in any order.
    Palette(Palette<Packed>),
    Array(Box<[Packed]>),
}

/// What every block is used for.
#[derive(Debug)]
pub(super) struct PageMap {
    pages: Vec<Mutex<Page>>,
}

/// What a claim makes of a cell; `None` when they do not fit together.
pub(super) type Change<'c> = &'c dyn Fn(Cell) -> Option<Cell>;

fn apply(change: Change<'_>, packed: Packed) -> Option<Packed> {
    change(packed.cell()).and_then(Packed::new)
}

impl Page {
    /// Changes the cells from `start` to `last`. `None`, and some of them may have been changed, when one does not fit.
    fn change(&mut self, start: u16, last: u16, change: Change<'_>) -> Option<()> {
        match self {
            Page::Array(cells) => {
                for cell in &mut cells[usize::from(start)..=usize::from(last)] {
                    *cell = apply(change, *cell)?;
                }
            }
            Page::Palette(palette) => {
                for at in usize::from(start)..=usize::from(last) {
                    let packed = apply(change, palette.get(at))?;
                    if !palette.set(at, packed) {
                        // the cells from here on are changed in the array
                        *self = Page::Array((0..1 << PAGE_LOG).map(|at| palette.get(at)).collect());
                        return self.change(u16::try_from(at).ok()?, last, change);
                    }
                }
            }
            Page::Runs(runs) => {
                change_runs(runs, start, last, change)?;
                if runs.len() > MOST_RUNS {
                    *self = dense(runs);
                }
            }
        }
        Some(())
    }

    fn get(&self, at: u16) -> Packed {
        match self {
            Page::Array(cells) => cells.get(usize::from(at)).copied().unwrap_or_default(),
            Page::Palette(palette) => palette.get(usize::from(at)),
            Page::Runs(runs) => {
                let run = runs.get(runs.partition_point(|run| run.last < at));
                run.filter(|run| run.start <= at).map_or(Packed::default(), |run| run.packed)
            }
        }
    }
}

/// The page of these runs, as a palette if their uses are few.
fn dense(runs: &[Run]) -> Page {
    let mut palette = Palette::new(1 << PAGE_LOG);
    let mut cells = runs.iter().flat_map(|run| (run.start..=run.last).map(|at| (usize::from(at), run.packed)));
    if cells.all(|(at, packed)| palette.set(at, packed)) {
        return Page::Palette(palette);
    }
    let mut cells = vec![Packed::default(); 1 << PAGE_LOG];
    for run in runs {
        cells[usize::from(run.start)..=usize::from(run.last)].fill(run.packed);
    }
    Page::Array(cells.into_boxed_slice())
}

fn change_runs(runs: &mut Vec<Run>, start: u16, last: u16, change: Change<'_>) -> Option<()> {
    let from = runs.partition_point(|run| run.last < start);
    let to = from + runs[from..].partition_point(|run| run.start <= last);
    if from == to {
        let packed = apply(change, Packed::default())?;
        // what follows on the run before is made part of it
        match from.checked_sub(1).map(|before| &mut runs[before]) {
            Some(before) if before.packed == packed && before.last + 1 == start => before.last = last,
            _ => runs.insert(from, Run { packed, start, last }),
        }
        return Some(());
    }
    if let [run] = &mut runs[from..to]
        && (run.start, run.last) == (start, last)
    {
        run.packed = apply(change, run.packed)?;
        return Some(());
    }
    let mut pieces = Vec::new();
    let mut at = u32::from(start);
    let end = u32::from(last) + 1;
    let bounds = |at: u32, end: u32| (u16::try_from(at).unwrap_or(0), u16::try_from(end - 1).unwrap_or(0));
    for run in &runs[from..to] {
        if run.start < start {
            pieces.push(Run { last: start - 1, ..*run });
        }
        let (low, high) = (u32::from(run.start.max(start)), u32::from(run.last.min(last)) + 1);
        if at < low {
            let (start, last) = bounds(at, low);
            pieces.push(Run { packed: apply(change, Packed::default())?, start, last });
        }
        let (start, last) = bounds(low, high);
        pieces.push(Run { packed: apply(change, run.packed)?, start, last });
        at = high;
    }
    if at < end {
        let (start, last) = bounds(at, end);
        pieces.push(Run { packed: apply(change, Packed::default())?, start, last });
    }
    if let Some(run) = runs[from..to].last().filter(|run| run.last > last) {
        pieces.push(Run { start: last + 1, ..*run });
    }
    runs.splice(from..to, pieces);
    Some(())
}

impl PageMap {
    /// A map of so many blocks, none of which is used.
    pub fn new(blocks: u64) -> Self {
        let count = blocks.div_ceil(PAGE);
        PageMap { pages: (0..count).map(|_| Mutex::new(Page::Runs(Vec::new()))).collect() }
    }

    fn page(&self, index: u64) -> Option<MutexGuard<'_, Page>> {
        let page = self.pages.get(usize::try_from(index).ok()?)?;
        Some(page.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the cells of `len` blocks. `None`, and some of them may have been changed, when one does not fit.
    pub fn change(&self, start: u64, len: u64, change: Change<'_>) -> Option<()> {
        let end = start.checked_add(len)?;
        let mut at = start;
        while at < end {
            let page = at >> PAGE_LOG;
            let stop = end.min((page + 1) << PAGE_LOG);
            let within = |at: u64| u16::try_from(at & (PAGE - 1)).ok();
            self.page(page)?.change(within(at)?, within(stop - 1)?, change)?;
            at = stop;
        }
        Some(())
    }

    /// What block `at` is used for.
    pub fn get(&self, at: u64) -> Cell {
        let within = u16::try_from(at & (PAGE - 1)).unwrap_or(0);
        self.page(at >> PAGE_LOG).map_or(Cell::default(), |page| page.get(within).cell())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn step(cell: Cell, add: u64) -> Cell {
        let kind = BlockType::ALL[(cell.kind as usize + usize::try_from(add).expect("small")) % BlockType::ALL.len()];
        Cell { ino: cell.ino + add, kind, reflink: !cell.reflink }
    }

    proptest! {
        /// The same as an array of cells, whether it is kept as one or not.
        #[test]
        fn it_is_an_array(
            dense: bool,
            uses in 1u64..400,
            steps in proptest::collection::vec((32700u64..32900, 1u64..60, 0u64..4), 0..40),
        ) {
            let map = PageMap::new(70_000);
            let mut plain = vec![Cell::default(); 400];
            if dense {
                for at in 0..2000 {
                    map.change(at * 3, 1, &|cell| Some(step(cell, 1 + at % uses))).expect("nothing is refused");
                }
            }
            for (start, len, add) in steps {
                map.change(start, len, &|cell| Some(step(cell, add))).expect("nothing is refused");
                for at in start..start + len {
                    let slot = &mut plain[usize::try_from(at - 32_600).expect("small")];
                    *slot = step(*slot, add);
                }
            }
            for (at, cell) in (32_600..).zip(&plain) {
                prop_assert_eq!(map.get(at), *cell, "{}", at);
            }
        }
    }

    #[test]
    fn what_is_refused_or_does_not_fit_is_said() {
        let map = PageMap::new(100);
        assert_eq!(map.change(5, 5, &|_| None), None);
        assert_eq!(map.change(5, 5, &|cell| Some(Cell { ino: 1 << 56, ..cell })), None);
        assert_eq!(map.change(u64::MAX, 5, &Some), None);
        assert_eq!(map.change(40_000, 1, &Some), None);
    }
}
