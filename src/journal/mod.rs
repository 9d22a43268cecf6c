//! The journal: where it begins and ends, whether it is clean, what is in it, and how more is written to it.
//!
//! [`LogArea`] is the log as a ring of 512-byte blocks on whichever device holds it, [`scan()`] finds its head and tail.
//! What lies between them is taken apart by [`Checkpoints`], which stands on [`Records`] and [`Assembler`] (see `parse`).
//!
//! [`Cil`] collects what transactions change (see `checkpoint`), and [`LogWriter`] writes it to the log (see `write`).

mod area;
mod checkpoint;
mod clean;
mod format;
mod head;
mod intents;
#[cfg(test)]
mod model;
mod parse;
mod record;
mod scan;
mod write;

pub use area::LogArea;
pub use checkpoint::{
    BufferKey, CheckpointItem, Cil, CilOptions, Commit, Committed, FormatItem, ItemKey, ItemSize, ItemTotal,
    ItemTotals, LoggedDone, LoggedIntent, Regions, TakenCheckpoint, WhiteoutCounters, WriterLayout,
};
pub use clean::CleanLog;
pub use format::{BufferChange, DQUOT_SIZE, DoneBody, InodeChange, IntentBody, format_dquot, format_icreate};
pub use intents::{Intent, IntentEvent, Intents};
pub use parse::{
    Assembler, AttributeItem, BufferItem, BufferRun, Checkpoint, Checkpoints, CrcState, DquotItem, Fault, Gap, GapKind,
    InodeItem, ItemBody, JournalRecord, LogItem, OpMeaning, Order, Piece, Records, Step, TransactionHeader,
};
pub use record::LogRecord;
pub use scan::{LogScan, LogState, TornWrite, scan};
pub use write::{LogPosition, LogStatistics, LogWriter, LogWriterOptions, WrittenCheckpoint};
