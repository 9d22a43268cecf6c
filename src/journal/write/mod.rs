//! Writing the journal (Linux `fs/xfs/xfs_log.c`, `fs/xfs/xfs_log_cil.c`).
//!
//! [`LogWriter`] writes a checkpoint as Linux does: operations fill records of a fixed size, a region that does not fit goes
//! on in the next record, and each record gets its headers, the number of the cycle in each block, and a CRC. Everything of
//! the checkpoint is durable before the record with its commit is written, and that is durable before [`LogWriter`] says so.
//!
//! Records of a checkpoint go to the device in runs of as many as Linux has on their way at once (eight), with a flush after
//! each run: more than that a reader of the log does not expect to find damaged at its end.

mod frame;
mod options;
mod position;
mod run;
#[cfg(test)]
mod tests;
mod writer;

pub(super) use frame::{Frame, unmount_operation};
pub use options::LogWriterOptions;
pub use position::LogPosition;
pub use writer::{LogStatistics, LogWriter, WrittenCheckpoint};
