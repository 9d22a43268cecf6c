//! What long work tells while it goes on, as data: nothing prints here.

mod observer;

pub use observer::{Observer, Silent, Unit};
