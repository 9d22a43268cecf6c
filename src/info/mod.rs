//! Describing a filesystem: the engine of xfskit-info.
//!
//! [`inspect()`] reads what there is to know into a [`Report`], a structure of plain data; [`geometry_text`] writes its
//! geometry as xfs_info does. [`mounts`] finds the device behind a mount point.

mod copies;
mod inspect;
mod readable;
mod report;
mod text;

pub mod mounts;

pub use inspect::{Subject, inspect};
pub use readable::features_that_matter;
pub use report::*;
pub use text::geometry_text;
