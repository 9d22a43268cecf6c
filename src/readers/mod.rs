//! Who can read which filesystem: the features of XFS against Linux 4.19 to 7.3 and GRUB 2.02 to 2.14.
//!
//! The facts are two flat tables, [`kernels::KERNELS`] and [`grubs::GRUBS`], one row for each feature, each with its source.
//! [`verdict`] asks them about a filesystem that exists, [`target`] about one that is to be made.

pub mod feature;
pub mod grubs;
pub mod kernels;
pub mod release;
pub mod target;
pub mod verdict;

pub use feature::Feature;
pub use release::{Grub, Linux};
pub use target::{Target, Wish};
pub use verdict::{Access, Readers, readers};
