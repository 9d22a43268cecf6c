//! What long work tells while it goes on, as data, and names as text: nothing prints here.

mod observer;

pub mod name;

pub use observer::{Observer, Silent, Unit};
