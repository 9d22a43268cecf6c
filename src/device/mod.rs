//! Storage: a small trait, and devices that stack on each other.
//!
//! | device | what it is |
//! |---|---|
//! | [`FileDevice`] | a regular file or a block device, by pread and pwrite |
//! | [`MappedDevice`] | a regular file mapped into memory, to be read only |
//! | [`MemoryDevice`] | bytes in memory; what was never written takes none |
//! | [`PartDevice`] | a range of another device |
//! | [`OverlayDevice`] | copy on write: changes stay in memory |
//! | [`UndoDevice`] | old contents go to a file first, from which [`UndoFile`] puts them back |
//! | [`FaultDevice`] | errors and torn writes on command; records what is written |
//!
//! [`PartitionTable`] finds the range of a partition, [`Signature`] recognises what must not be overwritten, and
//! [`Topology`] is what a block device says about itself.
//!
//! A stack is built from the bottom: `Arc<dyn Device>` is itself a device, so a layer takes whatever it is given.

mod block_ioctl;
mod contract;
mod extents;
mod fault;
mod file;
mod in_use;
mod memory;
mod mmap;
#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // Test devices are small.
mod model;
mod overlay;
mod pages;
mod part;
mod partition;
mod random;
mod signature;
mod topology;
mod undo;
mod undo_file;

pub use contract::{AllocatedRanges, ByteRange, Device, SectorSize};
pub use fault::{Effect, Event, Fault, FaultDevice, Operation};
pub use file::{Access, FileDevice, FileKind, OpenFile};
pub use memory::MemoryDevice;
pub use mmap::MappedDevice;
pub use overlay::OverlayDevice;
pub use part::PartDevice;
pub use partition::{Partition, PartitionTable, TableKind};
pub use random::{random_bytes, random_uuid};
pub use signature::{Contents, Signature};
pub use topology::{Stripe, Topology, Zones};
pub use undo::UndoDevice;
pub use undo_file::UndoFile;
