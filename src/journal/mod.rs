//! Reading the journal: where it begins and ends, and whether it is clean.
//!
//! [`LogArea`] is the log as a ring of 512-byte blocks on whichever device holds it, [`scan()`] finds its head and tail.

mod area;
mod head;
mod record;
mod scan;

pub use area::LogArea;
pub use record::LogRecord;
pub use scan::{LogScan, LogState, TornWrite, scan};
