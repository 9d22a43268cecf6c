//! A journal in sums.

use std::collections::BTreeMap;
use std::io;

use super::entry::{Entry, Fields, Value};
use super::header::Journal;
use super::item_fields::buffer_word;
use super::output::Output;
use super::print::Outcome;
use super::request::Request;
use super::summary::{Repeats, Summary, Tally, is_deferred};
use crate::geometry::Daddr;
use crate::geometry::limits::BASIC_BLOCK;
use crate::journal::Step;
use crate::ondisk::log_item::LogItemType;

/// Shows the sums.
pub(super) fn show(
    journal: &Journal<'_>,
    request: &Request,
    output: &mut Output<'_>,
    outcome: &mut Outcome,
) -> io::Result<()> {
    let mut sums = Summary::default();
    super::checkpoint_view::walk(journal, request, output, outcome, |_, step| {
        match step {
            Step::Record(record) => sums.record(&record),
            Step::Checkpoint(checkpoint) => sums.checkpoint(&checkpoint),
            Step::Uncommitted(_) => sums.uncommitted += 1,
            _ => {}
        }
        Ok(())
    })?;
    for entry in entries(journal, &mut sums) {
        output.entry(&entry)?;
    }
    Ok(())
}

fn entries(journal: &Journal<'_>, sums: &mut Summary) -> Vec<Entry> {
    let mut entries = vec![space(sums), by_type(sums), by_buffer(sums), whiteouts(sums), relogging(sums)];
    entries.push(replay(journal, sums));
    entries.push(by_checkpoint(sums));
    entries
}

fn percent(part: u64, whole: u64) -> Value {
    // both are far below 2^52
    #[allow(clippy::cast_precision_loss)]
    Value::Percent(if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 })
}

fn tally_fields(tally: &Tally) -> Fields {
    vec![
        ("items", Value::from(tally.items)),
        ("regions", Value::from(tally.regions)),
        ("bytes", Value::from(tally.bytes)),
    ]
}

/// What the records take, and how much of that the checkpoints are.
fn space(sums: &Summary) -> Entry {
    let bytes = sums.record_blocks * u64::from(BASIC_BLOCK);
    let fields = vec![
        ("records", Value::from(sums.records)),
        ("bytes", Value::from(bytes)),
        ("payload_bytes", Value::from(sums.payload_bytes)),
        ("checkpoints", Value::from(sums.checkpoints.len())),
        ("checkpoint_bytes", Value::from(sums.checkpoint_bytes)),
        ("never_committed", Value::from(sums.uncommitted)),
    ];
    Entry::new("space", "space:", fields)
}

fn by_type(sums: &Summary) -> Entry {
    let total: u64 = sums.by_type.values().map(|tally| tally.bytes).sum();
    let rows = sums.by_type.iter().map(|(number, tally)| {
        let name = LogItemType::from_number(*number).map(LogItemType::name);
        let mut fields = tally_fields(tally);
        fields.push(("share", percent(tally.bytes, total)));
        let named = vec![("type", name.map_or(Value::Hex(u64::from(*number)), Value::Word))];
        Entry::new("type", name.map_or_else(|| format!("{number:#x}"), str::to_owned), fields).named(named)
    });
    let deferred =
        sums.by_type.iter().filter(|(number, _)| LogItemType::from_number(**number).is_some_and(is_deferred));
    let deferred: u64 = deferred.map(|(_, tally)| tally.bytes).sum();
    let fields = vec![
        ("items", Value::from(sums.by_type.values().map(|tally| tally.items).sum::<u64>())),
        ("bytes", Value::from(total)),
        ("bytes_of_intents_and_done_items", Value::from(deferred)),
    ];
    Entry::new("items", "items by type:", fields).with("types", rows.collect())
}

fn by_buffer(sums: &Summary) -> Entry {
    let rows = sums.by_buffer.iter().map(|(word, tally)| {
        Entry::new("buffers", *word, tally_fields(tally)).named(vec![("holds", Value::Word(word))])
    });
    Entry::new("buffers", "buffers by what they hold:", Vec::new()).with("kinds", rows.collect())
}

/// What whiteouts would have kept out of the journal: intents with their done items in the same checkpoint.
fn whiteouts(sums: &Summary) -> Entry {
    let rows = sums.pairs.iter().map(|(number, tally)| {
        let name = LogItemType::from_number(*number).map_or("?", LogItemType::name);
        let fields = vec![("pairs", Value::from(tally.items / 2)), ("bytes", Value::from(tally.bytes))];
        Entry::new("pairs", name, fields).named(vec![("type", Value::Word(name))])
    });
    let saved: u64 = sums.pairs.values().map(|tally| tally.bytes).sum();
    let pairs: u64 = sums.pairs.values().map(|tally| tally.items / 2).sum();
    let fields = vec![
        ("pairs", Value::from(pairs)),
        ("bytes_saved", Value::from(saved)),
        ("share", percent(saved, sums.checkpoint_bytes)),
    ];
    Entry::new("whiteouts", "whiteouts would have saved:", fields).with("types", rows.collect())
}

fn relogging(sums: &Summary) -> Entry {
    let row = |kind: &'static str, repeats: &Repeats| {
        let fields = vec![
            ("items", Value::from(repeats.all.items)),
            ("distinct", Value::from(repeats.all.items - repeats.again.items)),
            ("bytes_logged_again", Value::from(repeats.again.bytes)),
        ];
        Entry::new("objects", kind, fields).named(vec![("objects", Value::Word(kind))])
    };
    let rows = vec![row("buffers", &sums.buffers), row("inodes", &sums.inodes), row("dquots", &sums.dquots)];
    let fields = vec![
        ("intents_moved_forward", Value::from(sums.relogged.items / 2)),
        ("bytes_of_these", Value::from(sums.relogged.bytes)),
        ("intents_done_in_parts", Value::from(sums.continued.items / 2)),
        ("bytes_of_those", Value::from(sums.continued.bytes)),
    ];
    Entry::new("relogging", "relogging:", fields).with("objects", rows)
}

/// What a replay would touch: without what is in place already, where the disk is there to be asked.
fn replay(journal: &Journal<'_>, sums: &mut Summary) -> Entry {
    let pending = sums.pending();
    let left_alone = journal.geometry().zip(journal.data()).map(|(geometry, data)| {
        let left = sums.touched.take_what_is_in_place(geometry, data);
        let fields = vec![
            ("buffers", Value::from(left.buffers)),
            ("inodes", Value::from(left.inodes)),
            ("dquots", Value::from(left.dquots)),
        ];
        Entry::new("in_place", "left alone, since the disk has it already:", fields)
    });
    let touched = &sums.touched;
    let mut by_kind: BTreeMap<&'static str, (u64, u64)> = BTreeMap::new();
    for ((_, len), buffer) in &touched.buffers {
        let sum = by_kind.entry(buffer_word(buffer.kind)).or_default();
        *sum = (sum.0 + 1, sum.1 + u64::from(*len) * u64::from(BASIC_BLOCK));
    }
    let kinds = by_kind.iter().map(|(word, (count, bytes))| {
        let fields = vec![("count", Value::from(*count)), ("bytes", Value::from(*bytes))];
        Entry::new("buffers", format!("buffers of {word}:"), fields).named(vec![("holds", Value::Word(word))])
    });
    let mut rows: Vec<Entry> = kinds.collect();
    let mut pending_by_type: BTreeMap<&'static str, u64> = BTreeMap::new();
    pending.iter().for_each(|intent| *pending_by_type.entry(intent.kind.name()).or_default() += 1);
    rows.extend(pending_by_type.iter().map(|(name, count)| {
        let fields = vec![("count", Value::from(*count))];
        Entry::new("pending", format!("pending {name}:"), fields).named(vec![("type", Value::Word(name))])
    }));
    rows.extend(left_alone);
    let mut fields = vec![
        ("buffers", Value::from(touched.buffers.len())),
        ("inodes", Value::from(touched.inode_count())),
        ("inode_buffers", Value::from(touched.inodes.len())),
        ("new_inodes", Value::from(touched.new_inodes)),
        ("dquots", Value::from(touched.dquots.len())),
        ("cancelled_buffers", Value::from(touched.cancelled.len())),
        ("pending_intents", Value::from(pending.len())),
    ];
    if let Some(geometry) = journal.geometry() {
        let places = touched.buffers.keys().chain(touched.inodes.keys());
        let groups = places.filter_map(|(daddr, _)| geometry.daddr_parts(Daddr(*daddr)).map(|(agno, _)| agno.0));
        fields.push(("groups", Value::from(groups.collect::<std::collections::BTreeSet<_>>().len())));
    }
    Entry::new("replay", "a replay would touch:", fields).with("of_these", rows)
}

fn by_checkpoint(sums: &Summary) -> Entry {
    let rows = sums.checkpoints.iter().zip(1_u64..).map(|(sum, number)| {
        let mut fields = vec![
            ("tid", Value::Hex(u64::from(sum.tid))),
            ("lsn", Value::Lsn(sum.lsn)),
            ("commit", Value::Lsn(sum.commit)),
        ];
        fields.extend(tally_fields(&sum.all));
        if sum.paired.items > 0 {
            fields.push(("saved_by_whiteouts", Value::from(sum.paired.bytes)));
        }
        Entry::new("checkpoint", format!("{number}:"), fields).named(vec![("number", Value::from(number))])
    });
    let fields = vec![("count", Value::from(sums.checkpoints.len()))];
    Entry::new("checkpoints", "checkpoints:", fields).with("checkpoints", rows.collect())
}
