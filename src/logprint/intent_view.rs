//! The intents, and what became of them.
//!
//! What is finished is not kept, so that any journal can be looked through: the walk is made once for the intents that another
//! checkpoint finished or none, and once more for the pairs within a checkpoint, if there are any.

use std::io;

use super::entry::{Entry, Value};
use super::header::Journal;
use super::item_fields::item_entry;
use super::output::Output;
use super::print::Outcome;
use super::request::Request;
use super::tour::to_replay;
use crate::journal::{Checkpoint, Checkpoints, Intent, IntentEvent, Intents, Step};

/// How many intents there are of each kind.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    later: u64,
    same: u64,
    unmatched: u64,
}

/// Shows the intents.
pub(super) fn show(
    journal: &Journal<'_>,
    request: &Request,
    output: &mut Output<'_>,
    outcome: &mut Outcome,
) -> io::Result<()> {
    let (mut counts, mut intents, mut number) = (Counts::default(), Intents::new(), 0);
    super::checkpoint_view::walk(journal, request, output, outcome, |output, step| {
        let Step::Checkpoint(checkpoint) = step else { return Ok(()) };
        number += 1;
        let mut view = Walk { journal, request, number, same_checkpoint: false };
        view.checkpoint(&checkpoint, &mut intents, &mut counts, output)
    })?;
    let pending = intents.into_pending();
    for intent in &pending {
        output.entry(&intent_entry(journal, request, intent, "pending"))?;
    }
    if counts.same > 0 && !outcome.stopped {
        show_pairs(journal, request, output)?;
    }
    let fields = vec![
        ("pending", Value::from(pending.len())),
        ("finished_later", Value::from(counts.later)),
        ("finished_in_the_same_checkpoint", Value::from(counts.same)),
        ("done_without_intent", Value::from(counts.unmatched)),
    ];
    output.entry(&Entry::new("intents", "intents:", fields))
}

/// Shows the intents that were finished in the checkpoint that logged them: a whiteout would have kept them out.
fn show_pairs(journal: &Journal<'_>, request: &Request, output: &mut Output<'_>) -> io::Result<()> {
    let area = journal.area();
    let (mut counts, mut intents, mut number) = (Counts::default(), Intents::new(), 0);
    let spans = to_replay(journal, request);
    for step in Checkpoints::new(area, super::checkpoint_view::pieces(area, spans)) {
        let Step::Checkpoint(checkpoint) = step else { continue };
        number += 1;
        let mut view = Walk { journal, request, number, same_checkpoint: true };
        view.checkpoint(&checkpoint, &mut intents, &mut counts, output)?;
    }
    Ok(())
}

/// A walk through the intents of a checkpoint.
struct Walk<'a> {
    journal: &'a Journal<'a>,
    request: &'a Request,
    number: u64,
    /// Whether the pairs within a checkpoint are shown, or the others.
    same_checkpoint: bool,
}

impl Walk<'_> {
    fn checkpoint(
        &mut self,
        checkpoint: &Checkpoint,
        intents: &mut Intents,
        counts: &mut Counts,
        output: &mut Output<'_>,
    ) -> io::Result<()> {
        for item in checkpoint.items() {
            match intents.take(self.number, item) {
                IntentEvent::Answered(intent) => {
                    let same = intent.checkpoint == self.number;
                    *(if same { &mut counts.same } else { &mut counts.later }) += 1;
                    if same == self.same_checkpoint {
                        let fate = if same { "same-checkpoint" } else { "finished" };
                        let mut entry = intent_entry(self.journal, self.request, &intent, fate);
                        if !same {
                            entry.fields.insert(1, ("by", Value::from(self.number)));
                        }
                        output.entry(&entry)?;
                    }
                }
                IntentEvent::Unmatched => counts.unmatched += 1,
                IntentEvent::Logged | IntentEvent::Other => {}
            }
        }
        Ok(())
    }
}

/// An intent, and what became of it.
fn intent_entry(journal: &Journal<'_>, request: &Request, intent: &Intent, fate: &'static str) -> Entry {
    let item = item_entry(intent.item(), journal.geometry(), request.detail);
    let mut fields = vec![("checkpoint", Value::from(intent.checkpoint))];
    fields.extend(item.fields);
    let named = vec![("type", Value::Word(intent.kind.name())), ("state", Value::Word(fate))];
    Entry::new("intent", format!("{fate} {}:", intent.kind.name()), fields).named(named)
}
