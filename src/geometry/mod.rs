//! Validated geometry and features, and one type for every kind of address.

pub mod address;

pub use address::*;
