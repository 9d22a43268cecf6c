//! The devices of a filesystem, opened to be looked at whatever state it is in.

mod devices;
mod opened;

pub use devices::ImageDevices;
pub use opened::Image;
