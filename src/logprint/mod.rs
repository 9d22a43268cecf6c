//! The journal as text and as JSON.
//!
//! [`print()`] shows a [`Journal`] as a [`Request`] asks for it: record by record, checkpoint by checkpoint, block by block,
//! the intents, or a summary. Each view makes [`Entry`]s, which one place writes as text or as JSON, so that both say the
//! same.

mod block_view;
mod buffer_contents;
mod checkpoint_view;
mod entry;
mod header;
mod heading;
mod inode_contents;
mod intent_fields;
mod intent_view;
mod item_fields;
mod json;
mod output;
mod print;
mod record_view;
mod request;
mod summary;
mod summary_view;
mod text;
mod touched;
mod tour;

pub use entry::{Entry, Fields, Value};
pub use header::Journal;
pub use heading::{Heading, Operation};
pub use output::{Children, Output};
pub use print::{Outcome, copy, print};
pub use request::{Detail, Request, View};
