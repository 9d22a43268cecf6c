//! A filesystem opened to be read: nothing but its superblock, or a copy of that, has to be sound.

use crate::buffer::{BlockCache, FoundSuperblock, SearchEffort, Verifier, find_superblock};
use std::sync::Arc;

use crate::device::{ByteRange, Device, PartDevice};
use crate::error::{DeviceRole, Error, Result};
use crate::geometry::Geometry;
use crate::journal::{LogArea, LogScan, scan};

use super::devices::ImageDevices;

/// A filesystem opened to be read.
pub struct Image {
    devices: ImageDevices,
    superblock: FoundSuperblock,
    cache: BlockCache,
}

impl Image {
    /// Opens the filesystem on `devices`; a damaged primary superblock is replaced by a copy, looked for with `effort`.
    ///
    /// # Errors
    /// Those of [`find_superblock`].
    pub fn open(devices: ImageDevices, effort: SearchEffort) -> Result<Self> {
        let superblock = find_superblock(&*devices.data, effort)?;
        Ok(Self::of_superblock(devices, superblock, BlockCache::DEFAULT_CAPACITY))
    }

    /// The filesystem that `superblock` describes, with a cache of `capacity` bytes. Nothing is read.
    pub fn of_superblock(devices: ImageDevices, superblock: FoundSuperblock, capacity: usize) -> Self {
        let verifier = Verifier::new(superblock.geometry.clone());
        let mut cache = BlockCache::new(verifier, devices.data.clone(), capacity);
        if let Some(realtime) = devices.realtime.clone().or_else(|| internal_realtime(&devices, &superblock.geometry)) {
            cache = cache.with_realtime(realtime);
        }
        Image { devices, superblock, cache }
    }

    /// The superblock, and which one it is.
    pub fn superblock(&self) -> &FoundSuperblock {
        &self.superblock
    }

    /// The geometry that follows from it.
    pub fn geometry(&self) -> &Geometry {
        &self.superblock.geometry
    }

    /// Verified blocks; a [`crate::forms::BlockSource`].
    pub fn cache(&self) -> &BlockCache {
        &self.cache
    }

    /// The devices.
    pub fn devices(&self) -> &ImageDevices {
        &self.devices
    }

    /// The data device.
    pub fn data(&self) -> &dyn Device {
        &*self.devices.data
    }

    /// The device that the log lies on.
    ///
    /// # Errors
    /// `Usage` when the log is external and its device is not given.
    pub fn log(&self) -> Result<&dyn Device> {
        if self.geometry().log.start.is_some() {
            return Ok(self.data());
        }
        self.devices.log.as_deref().ok_or_else(|| Error::Usage("the external log device is not given".to_owned()))
    }

    /// The device that realtime blocks lie on, and the byte at which realtime block 0 is.
    ///
    /// # Errors
    /// `Usage` when there is a realtime device that is not given.
    pub fn realtime(&self) -> Result<(&dyn Device, u64)> {
        let geometry = self.geometry();
        if geometry.realtime.start > 0 {
            let start = geometry.blocks_to_bytes(geometry.realtime.start);
            let outside = || Error::Usage("the realtime section begins outside of every device".to_owned());
            return Ok((self.data(), start.ok_or_else(outside)?));
        }
        let device = self.devices.realtime.as_deref();
        device.map(|device| (device, 0)).ok_or_else(|| Error::Usage("the realtime device is not given".to_owned()))
    }

    /// One of the filesystem's devices, as [`crate::forms::StoredRange`] names it.
    ///
    /// # Errors
    /// `Usage` when it is not given.
    pub fn device(&self, role: DeviceRole) -> Result<&dyn Device> {
        match role {
            DeviceRole::Data => Ok(self.data()),
            DeviceRole::Log => self.log(),
            DeviceRole::Realtime => self.realtime().map(|(device, _)| device),
        }
    }

    /// Head, tail and state of the journal.
    ///
    /// # Errors
    /// `Usage` when its device is not given; else those of [`scan`].
    pub fn journal(&self) -> Result<LogScan> {
        scan(&LogArea::new(self.log()?, self.geometry())?)
    }
}

/// The part of the data device that is the realtime section, where it is no device of its own.
fn internal_realtime(devices: &ImageDevices, geometry: &Geometry) -> Option<Arc<dyn Device>> {
    let start = geometry.blocks_to_bytes(geometry.realtime.start).filter(|&start| start > 0)?;
    let len = devices.data.len().checked_sub(start)?;
    let part = PartDevice::new(devices.data.clone(), ByteRange { start, len });
    part.ok().map(|part| Arc::new(part) as Arc<dyn Device>)
}
