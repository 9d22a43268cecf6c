//! From options to a layout, the way mkfs.xfs 7.2 decides.
//!
//! Every stage reads the options, the facts about the devices and what the stages before it decided; none of them
//! changes anything outside. The order is that of mkfs.xfs, since a later stage may take back what an earlier chose.

mod data;
mod extents;
mod features;
mod hints;
mod log;
mod realtime;
mod sectors;
mod stages;
mod stripe;
mod zones;

pub use features::Defaults;
pub use stages::{Environment, Resolved, resolve};

#[cfg(test)]
mod tests;
