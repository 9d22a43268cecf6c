//! A filesystem opened for change.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::ail::Ail;
use super::buffer::Buffer;
use super::counters::Counters;
use super::group::Group;
use super::inode_item::InodeItem;
use crate::buffer::{BlockCache, BlockKind, Request, Verifier};
use crate::device::{ByteRange, Device, PartDevice};
use crate::error::{Error, Result};
use crate::geometry::reservation::{ReservationInputs, Reservations};
use crate::geometry::{Daddr, FsBlock, Geometry, Ino};
use crate::image::ImageDevices;
use crate::journal::BufferKey;
use crate::journal::{
    Cil, CilOptions, LogArea, LogPosition, LogState, LogStatistics, LogWriter, LogWriterOptions, scan,
};
use crate::ondisk::timestamp::Timestamp;
use crate::ondisk::{OnDisk, RawSuperblock};

/// How a filesystem is opened for change.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Bytes of changed blocks that are kept in memory before they are written to their places.
    pub cache: usize,
    /// How checkpoints are collected; `None` is as Linux does it.
    pub cil: Option<CilOptions>,
    /// How log records are written; `None` is the largest that the log takes.
    pub log: Option<LogWriterOptions>,
    /// The time that changes carry; `None` is that of the clock.
    pub now: Option<Timestamp>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions { cache: 64 << 20, cil: None, log: None, now: None }
    }
}

/// Blocks and inodes that are newer in memory than on disk.
#[derive(Debug, Default)]
pub(super) struct Newer {
    pub(super) buffers: HashMap<BufferKey, Buffer>,
    pub(super) inodes: HashMap<Ino, InodeItem>,
    /// Which inodes of a cluster are among `inodes`.
    pub(super) clusters: HashMap<BufferKey, HashSet<Ino>>,
    /// Blocks freed by the checkpoint that is being collected: the journal must not bring them back.
    pub(super) cancelled: BTreeMap<BufferKey, Request>,
    /// Bytes of the buffers.
    pub(super) bytes: usize,
}

/// A filesystem opened for change. One transaction runs at a time, see [`Store::begin`].
///
/// If it is dropped without [`Store::close`], what was not synced is lost, and the journal is dirty: as after a crash.
pub struct Store {
    pub(super) devices: ImageDevices,
    pub(super) cache: BlockCache,
    pub(super) options: StoreOptions,
    pub(super) superblock: RawSuperblock,
    pub(super) counters: Counters,
    pub(super) reservations: Reservations,
    pub(super) groups: Vec<Group>,
    /// Free blocks that no operation reserves (Linux `m_free[XC_FREE_BLOCKS].res_total`).
    pub(super) pool: u64,
    pub(super) newer: Newer,
    pub(super) cil: Cil,
    pub(super) log: LogWriter,
    pub(super) ail: Ail,
    /// Blocks that become durable with the checkpoint that is being collected, though it does not log them.
    pub(super) ordered: HashSet<BufferKey>,
    /// The group where the next directory goes (`m_agirotor`).
    pub(super) directory_rotor: u32,
    /// The id of the next intent.
    pub(super) next_intent: u64,
    /// Intents of the checkpoint that is being collected.
    pub(super) new_intents: Vec<u64>,
    /// Intents of earlier checkpoints that this one answers.
    pub(super) done_intents: Vec<u64>,
}

impl Store {
    /// Opens the filesystem on `devices`, which must be writable. Nothing is written yet.
    ///
    /// # Errors
    /// `Usage` when the journal is dirty or a device is not given; `Unsupported` when the filesystem asks for repair or uses
    /// what this program does not know; `Corrupt` when superblock or journal are; `Io`.
    pub fn open(devices: ImageDevices, options: StoreOptions) -> Result<Self> {
        let superblock = read_superblock(&*devices.data)?;
        let geometry = Geometry::from_superblock(&superblock).map_err(|verdict| {
            verdict.into_result().err().unwrap_or_else(|| Error::Internal("a verdict without a failure".to_owned()))
        })?;
        check_features(&superblock)?;
        let log_device = log_device(&devices, &geometry)?;
        let area = LogArea::new(&*log_device, &geometry)?;
        let found = scan(&area)?;
        if found.state != LogState::Clean {
            return Err(Error::Usage("the journal is dirty: it must be replayed first".to_owned()));
        }
        let log_options = options.log.unwrap_or_else(|| LogWriterOptions::of(&geometry.log));
        let others = other_devices(&devices, &geometry);
        let log = LogWriter::open(log_device.clone(), others, &geometry, LogPosition::after(&found), log_options)?;
        let mut cache = BlockCache::new(Verifier::new(geometry.clone()), devices.data.clone(), options.cache);
        if let Some(realtime) = realtime_device(&devices, &geometry)? {
            cache = cache.with_realtime(realtime);
        }
        Ok(Store {
            counters: Counters::of(&superblock),
            reservations: Reservations::new(&ReservationInputs::of(&geometry)),
            groups: vec![Group::default(); usize::try_from(geometry.agcount).unwrap_or(0)],
            pool: 0,
            newer: Newer::default(),
            cil: Cil::new(options.cil.unwrap_or_else(|| CilOptions::of(&geometry))),
            log,
            ail: Ail::default(),
            ordered: HashSet::new(),
            directory_rotor: 0,
            next_intent: 1,
            new_intents: Vec::new(),
            done_intents: Vec::new(),
            devices,
            cache,
            options,
            superblock,
        })
    }

    /// The geometry.
    pub fn geometry(&self) -> &Geometry {
        self.cache.geometry()
    }

    /// The superblock as it stands on disk; [`Store::counters`] are newer.
    pub fn superblock(&self) -> &RawSuperblock {
        &self.superblock
    }

    /// The counters as the transactions so far have left them.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What each kind of transaction reserves.
    pub fn reservations(&self) -> &Reservations {
        &self.reservations
    }

    /// What is known of each group in memory alone.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The same, to be changed.
    pub fn groups_mut(&mut self) -> &mut [Group] {
        &mut self.groups
    }

    /// Keeps so many free blocks from all operations.
    pub fn set_pool(&mut self, blocks: u64) {
        self.pool = blocks;
    }

    /// The checkpoint that is being collected, with its counters.
    pub fn cil(&self) -> &Cil {
        &self.cil
    }

    /// What went into the journal since the filesystem was opened.
    pub fn log_statistics(&self) -> &LogStatistics {
        self.log.statistics()
    }

    /// The time that changes carry.
    pub fn now(&self) -> Timestamp {
        self.options.now.unwrap_or_else(|| {
            let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
            Timestamp { seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanoseconds: since.subsec_nanos() }
        })
    }

    /// Writes contents of a file to blocks that no file had before the transaction that maps them.
    ///
    /// # Errors
    /// `Usage` when the blocks lie outside the filesystem; `Io`.
    pub fn write_data(&self, start: FsBlock, offset: u64, bytes: &[u8]) -> Result<()> {
        let outside = || Error::Usage(format!("block {start} lies outside the filesystem"));
        let daddr = self.geometry().fsb_daddr(start).ok_or_else(outside)?;
        let at = self.geometry().daddr_offset(daddr).and_then(|at| at.checked_add(offset)).ok_or_else(outside)?;
        self.devices.data.write_at(at, bytes)
    }

    /// Writes a block to its place at once, which no journal holds: the value of an attribute, before the transaction that
    /// lets readers see it.
    ///
    /// # Errors
    /// `Io`; `Corrupt` when the block would not pass its checks.
    pub fn write_unlogged(&self, request: Request, bytes: Vec<u8>) -> Result<()> {
        self.cache.write(request, bytes, None)
    }

    /// Reads contents of a file.
    ///
    /// # Errors
    /// As [`Store::write_data`].
    pub fn read_data(&self, start: FsBlock, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let outside = || Error::Usage(format!("block {start} lies outside the filesystem"));
        let daddr = self.geometry().fsb_daddr(start).ok_or_else(outside)?;
        let at = self.geometry().daddr_offset(daddr).and_then(|at| at.checked_add(offset)).ok_or_else(outside)?;
        self.devices.data.read_at(at, bytes)
    }

    /// Reads the data device from byte `at` on, as it stands.
    ///
    /// # Errors
    /// `Io`.
    pub fn read_bytes(&self, at: u64, bytes: &mut [u8]) -> Result<()> {
        self.devices.data.read_at(at, bytes)
    }

    /// Changes the copies of the superblock in place: they are not journaled (`xfs_update_secondary_sbs`).
    ///
    /// # Errors
    /// `Corrupt` when a copy is damaged; `Io`.
    pub fn write_superblock_copies(&mut self, change: impl Fn(&mut RawSuperblock)) -> Result<()> {
        for agno in self.geometry().ag_numbers().skip(1) {
            let defect = || Error::Internal(format!("group {agno} has no superblock"));
            let daddr = self.geometry().ag_header_daddr(agno, 0).ok_or_else(defect)?;
            let request = Request::new(self.geometry(), BlockKind::Superblock, daddr);
            let mut bytes = self.cache.read_sound(request.clone())?.bytes().to_vec();
            let (superblock, _) = RawSuperblock::prefix_mut(&mut bytes).ok_or_else(defect)?;
            change(superblock);
            self.cache.write(request, bytes, None)?;
        }
        Ok(())
    }

    /// The request for the primary superblock.
    pub(super) fn superblock_request(&self) -> Request {
        Request::new(self.geometry(), BlockKind::Superblock, Daddr(0))
    }
}

fn read_superblock(data: &dyn Device) -> Result<RawSuperblock> {
    let mut bytes = [0; RawSuperblock::SIZE];
    data.read_at(0, &mut bytes)?;
    let (superblock, _) =
        RawSuperblock::prefix(&bytes).ok_or_else(|| Error::Internal("a superblock fits".to_owned()))?;
    Ok(*superblock)
}

/// Refuses what must not be changed.
fn check_features(superblock: &RawSuperblock) -> Result<()> {
    let features = crate::geometry::Features::from_superblock(superblock);
    if features.has_needsrepair() {
        return Err(Error::Unsupported("the filesystem asks for repair (needsrepair is set)".to_owned()));
    }
    if !features.unknown().is_empty() {
        return Err(Error::Unsupported(format!("unknown features: {:?}", features.unknown())));
    }
    if superblock.inprogress != 0 {
        return Err(Error::Unsupported("mkfs has not finished this filesystem".to_owned()));
    }
    Ok(())
}

fn log_device(devices: &ImageDevices, geometry: &Geometry) -> Result<Arc<dyn Device>> {
    if geometry.log.start.is_some() {
        return Ok(devices.data.clone());
    }
    devices.log.clone().ok_or_else(|| Error::Usage("the external log device is not given".to_owned()))
}

/// The devices whose contents the log speaks of, but the one that it lies on.
fn other_devices(devices: &ImageDevices, geometry: &Geometry) -> Vec<Arc<dyn Device>> {
    let data = geometry.log.start.is_none().then(|| devices.data.clone());
    data.into_iter().chain(devices.realtime.clone()).collect()
}

fn realtime_device(devices: &ImageDevices, geometry: &Geometry) -> Result<Option<Arc<dyn Device>>> {
    if geometry.realtime.blocks == 0 {
        return Ok(None);
    }
    if geometry.realtime.start == 0 {
        let device = devices.realtime.clone();
        return device.map(Some).ok_or_else(|| Error::Usage("the realtime device is not given".to_owned()));
    }
    let outside = || Error::Usage("the realtime section begins outside of every device".to_owned());
    let start = geometry.blocks_to_bytes(geometry.realtime.start).ok_or_else(outside)?;
    let len = devices.data.len().checked_sub(start).ok_or_else(outside)?;
    Ok(Some(Arc::new(PartDevice::new(devices.data.clone(), ByteRange { start, len })?)))
}
