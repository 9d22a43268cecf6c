//! Deferred operations finished (Linux `libxfs/xfs_defer.c`).
//!
//! | file | what it holds |
//! |---|---|
//! | `chain` | one transaction after the other, until nothing is left |
//! | `intent` | intents and done items for the journal |
//! | `step` | which module does an operation |

mod chain;
mod intent;
mod step;

pub use chain::{finish, finish_some};
