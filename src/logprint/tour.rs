//! Which blocks of the log are shown, and what they are.

use super::header::Journal;
use super::request::Request;
use crate::journal::LogState;

/// What a part of the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Behind the tail: what is there has been written to its place long ago.
    Old,
    /// Between tail and head: what a replay would see.
    Active,
    /// There, too, but written in an earlier cycle: what should be in its place never reached the disk.
    Stale,
    /// Behind the head, where a torn write ends the log.
    Void,
    /// The log has no head and no tail.
    Unknown,
}

impl Part {
    pub(super) fn word(self) -> &'static str {
        match self {
            Part::Old => "old",
            Part::Active => "active",
            Part::Stale => "stale",
            Part::Void => "void",
            Part::Unknown => "unknown",
        }
    }
}

/// Blocks that are shown one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The first.
    pub(super) start: u32,
    /// How many, around the ring.
    pub(super) blocks: u32,
    /// What they are.
    pub(super) part: Part,
}

/// The whole log in the order in which it was written: from the oldest block on.
pub(super) fn whole(journal: &Journal<'_>, request: &Request) -> Vec<Span> {
    let spans = all_spans(journal);
    match request.start {
        Some(start) => from(journal, &spans, start),
        None => spans,
    }
}

/// What a replay would see; with what is older if that is asked for.
pub(super) fn to_replay(journal: &Journal<'_>, request: &Request) -> Vec<Span> {
    let spans = all_spans(journal);
    let spans = match request.start {
        Some(start) => from(journal, &spans, start),
        None => spans.into_iter().filter(|span| request.all || span.part != Part::Old).collect(),
    };
    spans.into_iter().filter(|span| span.part != Part::Void).collect()
}

fn all_spans(journal: &Journal<'_>) -> Vec<Span> {
    let area = journal.area();
    let whole = |part| vec![Span { start: 0, blocks: area.blocks(), part }];
    let Some(found) = journal.found() else { return whole(Part::Unknown) };
    if found.state == LogState::Zeroed {
        return whole(Part::Old);
    }
    let end = found.torn.map_or(found.head, |torn| torn.head);
    let active = area.distance(found.tail, found.head);
    let void = area.distance(found.head, end);
    let spans = [
        Span { start: end, blocks: area.blocks().saturating_sub(active + void), part: Part::Old },
        Span { start: found.tail, blocks: active, part: Part::Active },
        Span { start: found.head, blocks: void, part: Part::Void },
    ];
    spans.into_iter().filter(|span| span.blocks > 0).collect()
}

/// What of `spans` is at `start` or behind it.
fn from(journal: &Journal<'_>, spans: &[Span], start: u32) -> Vec<Span> {
    let area = journal.area();
    let start = start % area.blocks();
    let within = |span: &Span| area.distance(span.start, start) < span.blocks;
    let Some(first) = spans.iter().position(within) else { return Vec::new() };
    let mut rest = spans[first..].to_vec();
    let skipped = area.distance(rest[0].start, start);
    rest[0] = Span { start, blocks: rest[0].blocks - skipped, part: rest[0].part };
    rest
}
