//! Validated geometry and features, and one type for every kind of address.
//!
//! [`Geometry::from_superblock`] turns a superblock that passes every check into a [`Geometry`];
//! [`Geometry::assume`] makes the most of one that does not, for tools that work on damaged filesystems.

mod bounds;
mod convert;
mod convert_realtime;
mod directory_geometry;
mod filesystem;
mod group_reserve;
mod log_geometry;
mod mkfs_config;
mod quota_geometry;
mod realtime_check;
mod realtime_geometry;
#[cfg(test)]
pub(crate) mod samples;
mod summary;
mod superblock_check;

pub mod address;
mod block_reservation;
pub mod btree_geometry;
pub mod btree_levels;
pub mod features;
pub mod inode_geometry;
pub mod limits;
pub mod log_minimum;
pub mod reservation;

pub use address::*;
pub use block_reservation::BlockReservations;
pub use btree_geometry::{BtreeGeometries, BtreeGeometry, inode_root_max};
pub use btree_levels::BtreeKind;
pub use convert::InoParts;
pub use directory_geometry::{AttributeGeometry, DirectoryGeometry};
pub use features::{Feature, Features, UnknownBits};
pub use filesystem::Geometry;
pub use inode_geometry::InodeGeometry;
pub use log_geometry::LogGeometry;
pub use mkfs_config::{MkfsConfig, QuotaWish, usual_imax_pct};
pub use quota_geometry::QuotaGeometry;
pub use realtime_geometry::{RealtimeGeometry, RealtimeGroups};
pub use summary::GeometrySummary;
pub use superblock_check::{SuperblockContext, check_superblock};
