//! The devices that a filesystem lies on.

use std::sync::Arc;

use crate::device::Device;

/// The devices that a filesystem lies on. A log or a realtime section inside the data device has none of its own.
#[derive(Clone)]
pub struct ImageDevices {
    /// The data device.
    pub data: Arc<dyn Device>,
    /// The external log device, if it is known.
    pub log: Option<Arc<dyn Device>>,
    /// The realtime device, if it is known.
    pub realtime: Option<Arc<dyn Device>>,
}

impl ImageDevices {
    /// A data device alone.
    pub fn of_data(data: Arc<dyn Device>) -> Self {
        ImageDevices { data, log: None, realtime: None }
    }
}
