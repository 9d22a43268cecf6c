//! An image, opened for the walkers.

use std::path::Path;
use std::sync::Arc;

use xfskit::buffer::{BlockCache, Verifier};
use xfskit::device::{Device, FileDevice, OpenFile};
use xfskit::error::DeviceRole;
use xfskit::geometry::{Geometry, RtBlock};
use xfskit::ondisk::{OnDisk, RawSuperblock};

/// An image, with the realtime device where there is one.
pub struct Image {
    pub blocks: BlockCache,
    /// The superblock.
    pub superblock: RawSuperblock,
    data: Arc<dyn Device>,
    realtime: Option<Arc<dyn Device>>,
}

fn open(path: &Path, role: DeviceRole) -> Arc<dyn Device> {
    Arc::new(FileDevice::open(path, OpenFile::READ.on(role)).expect("the image can be opened"))
}

impl Image {
    pub fn open(data: &Path, realtime: Option<&Path>) -> Self {
        let data = open(data, DeviceRole::Data);
        let realtime = realtime.map(|path| open(path, DeviceRole::Realtime));
        let mut sector = [0; 512];
        data.read_at(0, &mut sector).expect("the image has a first sector");
        let (superblock, _) = RawSuperblock::prefix(&sector).expect("invariant: a superblock is shorter than a sector");
        let geometry = Geometry::from_superblock(superblock).expect("the superblock is sound");
        let cache = BlockCache::new(Verifier::new(geometry), data.clone(), BlockCache::DEFAULT_CAPACITY);
        let blocks = match &realtime {
            Some(device) => cache.with_realtime(device.clone()),
            None => cache,
        };
        Image { blocks, superblock: *superblock, data, realtime }
    }

    pub fn geometry(&self) -> &Geometry {
        self.blocks.geometry()
    }

    /// Reads filesystem blocks that a file's data lie in.
    pub fn read_data(&self, realtime: bool, start: u64, buf: &mut [u8]) {
        let (daddr, device) = if realtime {
            let daddr = self.geometry().rtb_daddr(RtBlock(start)).expect("extents lie in the section");
            (daddr, self.realtime.as_ref().unwrap_or(&self.data))
        } else {
            (self.geometry().fsb_daddr(start.into()).expect("extents lie in the filesystem"), &self.data)
        };
        device.read_at(daddr.0 * 512, buf).expect("the device is readable");
    }
}
