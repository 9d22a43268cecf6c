//! Formatting: options are resolved to a [`Layout`], from which the writer makes the filesystem.

pub mod config_file;
pub mod devices;
pub mod layout;
pub mod numbers;
pub mod options;
pub mod report;
pub mod resolve;
pub mod suboptions;
mod write;

pub use layout::Layout;
pub use options::Options;
pub use resolve::{Defaults, Environment, Resolved, resolve};
pub use write::{Report, Unfinished, format, prepare};
