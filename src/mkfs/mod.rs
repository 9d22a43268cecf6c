//! Formatting: options are resolved to a [`Layout`], from which the writer makes the filesystem.

pub mod config_file;
pub mod layout;
pub mod numbers;
pub mod options;
pub mod suboptions;

pub use layout::Layout;
pub use options::Options;
