//! Validated geometry and features, and one type for every kind of address.

pub mod address;
pub mod features;
pub mod limits;

pub use address::*;
pub use features::{Feature, Features, UnknownBits};
