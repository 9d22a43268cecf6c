//! Formatting: options are resolved to a [`Layout`], from which the writer makes the filesystem.

pub mod layout;

pub use layout::Layout;
