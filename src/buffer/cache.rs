//! Blocks kept in memory, within a bound.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::block::{Block, SoundBlock, Verified};
use super::kind::{BlockKind, Fragment, Request};
use super::verifier::Verifier;
use crate::device::Device;
use crate::error::{DeviceRole, Error, Place, Result, Verdict};
use crate::geometry::{AgNumber, Geometry, Ino, Lsn};
use crate::ondisk::{OnDisk, RawAgf, RawAgfl, RawAgi, RawDinode, RawDinodeCore};

/// The longest block that is read, in bytes: a remote attribute value with its headers.
const LONGEST_BLOCK: u64 = 256 * 1024;

/// Reads, verifies and writes blocks of a filesystem; keeps those that were read last, up to a number of bytes.
///
/// All methods take `&self`, so that many threads can use one cache.
pub struct BlockCache {
    verifier: Verifier,
    data: Arc<dyn Device>,
    realtime: Option<Arc<dyn Device>>,
    capacity: usize,
    kept: Mutex<Kept>,
}

/// What tells one cached block from another. The same place read as two kinds gives two blocks.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    device: DeviceRole,
    kind: BlockKind,
    owner: Option<u64>,
    level: Option<u32>,
    fragments: Vec<Fragment>,
}

#[derive(Default)]
struct Kept {
    blocks: HashMap<Key, (Block, u64)>,
    /// Keys by the time of their last use.
    uses: BTreeMap<u64, Key>,
    /// Keys by the place where each of their fragments starts.
    places: BTreeMap<(DeviceRole, u64), Vec<Key>>,
    bytes: usize,
    clock: u64,
}

impl BlockCache {
    /// Bytes kept when nothing else is said.
    pub const DEFAULT_CAPACITY: usize = 4 << 20;

    /// A cache of at most `capacity` bytes of blocks.
    pub fn new(verifier: Verifier, data: Arc<dyn Device>, capacity: usize) -> Self {
        BlockCache { verifier, data, realtime: None, capacity, kept: Mutex::default() }
    }

    /// The same with a realtime device.
    #[must_use]
    pub fn with_realtime(mut self, device: Arc<dyn Device>) -> Self {
        self.realtime = Some(device);
        self
    }

    /// The verifier.
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// The geometry of the filesystem.
    pub fn geometry(&self) -> &Geometry {
        self.verifier.geometry()
    }

    /// The block that `request` asks for, with every check that it fails.
    ///
    /// # Errors
    /// `Io`; `Usage` for a request of no or too many bytes, or for a device that is not there.
    pub fn read(&self, request: Request) -> Result<Block> {
        let key = Key::of(&request);
        if let Some(block) = self.kept().find(&key) {
            return Ok(block);
        }
        let bytes = self.read_bytes(&request)?;
        let verdict = self.verifier.verify(&request, &bytes);
        let block = Block::new(request, bytes, verdict);
        self.kept().keep(key, &block, self.capacity);
        Ok(block)
    }

    /// The block that `request` asks for, if it passes every check.
    ///
    /// # Errors
    /// As [`BlockCache::read`]; `Corrupt` with the first check that it fails.
    pub fn read_sound(&self, request: Request) -> Result<SoundBlock> {
        self.read(request)?.sound()
    }

    /// Fills `bytes` from byte `offset` of the data device as it stands: neither kept nor verified.
    ///
    /// # Errors
    /// `Io`.
    pub fn read_raw(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.data.read_at(offset, bytes)
    }

    /// One of a group's headers.
    ///
    /// # Errors
    /// `Usage` when there is no such group; else as [`BlockCache::read`].
    pub fn read_header(&self, kind: BlockKind, agno: AgNumber) -> Result<Block> {
        let sector = match kind {
            BlockKind::Superblock => 0,
            BlockKind::Agf => RawAgf::SECTOR,
            BlockKind::Agi => RawAgi::SECTOR,
            BlockKind::Agfl => RawAgfl::SECTOR,
            _ => return Err(Error::Internal(format!("{kind:?} is no header of a group"))),
        };
        let daddr = self.geometry().ag_header_daddr(agno, sector);
        let daddr = daddr.ok_or_else(|| Error::Usage(format!("there is no group {agno}")))?;
        self.read(Request::new(self.geometry(), kind, daddr))
    }

    /// The free space header of a group.
    ///
    /// # Errors
    /// As [`BlockCache::read_sound`].
    pub fn agf(&self, agno: AgNumber) -> Result<Verified<RawAgf>> {
        self.read_header(BlockKind::Agf, agno)?.sound()?.structure()
    }

    /// The inode header of a group.
    ///
    /// # Errors
    /// As [`BlockCache::read_sound`].
    pub fn agi(&self, agno: AgNumber) -> Result<Verified<RawAgi>> {
        self.read_header(BlockKind::Agi, agno)?.sound()?.structure()
    }

    /// The bytes of an inode, and every check that it fails.
    ///
    /// # Errors
    /// `Usage` when no inode can have this number; else as [`BlockCache::read`].
    pub fn read_inode(&self, ino: Ino) -> Result<(Vec<u8>, Verdict)> {
        let geometry = self.geometry();
        let outside = || Error::Usage(format!("no inode can have the number {ino}"));
        let fsb = geometry.ino_fsb(ino).ok_or_else(outside)?;
        let parts = geometry.ino_parts(ino).ok_or_else(outside)?;
        let daddr = geometry.fsb_daddr(fsb).ok_or_else(outside)?;
        let block = self.read(Request::of_len(BlockKind::InodeCluster, daddr, geometry.blocksize))?;
        let size = usize::try_from(geometry.inodes.size).map_err(|_| outside())?;
        let start = size * usize::try_from(parts.index).map_err(|_| outside())?;
        let bytes = block.bytes().get(start..start + size).ok_or_else(outside)?.to_vec();
        let verdict = self.verifier.verify_inode(ino, &bytes);
        Ok((bytes, verdict))
    }

    /// An inode that passes every check, and its bytes, forks included.
    ///
    /// In versions 1 and 2 only the `core` of the structure has a meaning.
    ///
    /// # Errors
    /// As [`BlockCache::read_inode`]; `Corrupt` with the first check that it fails.
    pub fn inode(&self, ino: Ino) -> Result<(Verified<RawDinode>, Vec<u8>)> {
        let (bytes, verdict) = self.read_inode(ino)?;
        verdict.into_result()?;
        let (raw, _) = RawDinode::prefix(&bytes).ok_or_else(|| Error::Internal("inodes have 256 bytes".to_owned()))?;
        debug_assert!(bytes.len() > RawDinodeCore::SIZE);
        Ok((Verified::new(*raw), bytes))
    }

    /// Stamps `bytes` with `lsn` and CRC, verifies them, and writes them as the block of `request`.
    ///
    /// # Errors
    /// `Io`; `Corrupt` when the block would not pass its checks, in which case nothing is written.
    pub fn write(&self, request: Request, mut bytes: Vec<u8>, lsn: Option<Lsn>) -> Result<()> {
        self.verifier.stamp(request.kind, &mut bytes, lsn);
        let verdict = self.verifier.verify(&request, &bytes);
        verdict.clone().into_result()?;
        let device = self.device(request.device)?;
        let mut rest = &bytes[..];
        for fragment in &request.fragments {
            let len = usize::try_from(fragment.len).unwrap_or(usize::MAX).min(rest.len());
            let (piece, after) = rest.split_at(len);
            device.write_at(self.offset(&request, fragment)?, piece)?;
            rest = after;
        }
        let block = Block::new(request, bytes, verdict);
        let mut kept = self.kept();
        kept.forget_overlapping(block.request());
        kept.keep(Key::of(block.request()), &block, self.capacity);
        Ok(())
    }

    fn read_bytes(&self, request: &Request) -> Result<Vec<u8>> {
        let len = request.len();
        if len == 0 || len > LONGEST_BLOCK {
            return Err(Error::Usage(format!("a block of {len} bytes is asked for")));
        }
        let device = self.device(request.device)?;
        let mut bytes = Vec::new();
        for fragment in &request.fragments {
            let start = bytes.len();
            bytes.resize(start + usize::try_from(fragment.len).unwrap_or(0), 0);
            device.read_at(self.offset(request, fragment)?, &mut bytes[start..])?;
        }
        Ok(bytes)
    }

    fn offset(&self, request: &Request, fragment: &Fragment) -> Result<u64> {
        let overflow = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let place = || Place::at_daddr(fragment.daddr.0).on(request.device);
        self.geometry().daddr_offset(fragment.daddr).ok_or_else(|| Error::io(place(), overflow()))
    }

    fn device(&self, role: DeviceRole) -> Result<&dyn Device> {
        match role {
            DeviceRole::Data => Ok(&*self.data),
            DeviceRole::Realtime => {
                self.realtime.as_deref().ok_or_else(|| Error::Usage("the realtime device is not given".to_owned()))
            }
            DeviceRole::Log => Err(Error::Internal("the log has no blocks".to_owned())),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Key {
    fn of(request: &Request) -> Self {
        let owner = match request.owner {
            super::Owner::Unknown => None,
            super::Owner::Group(agno) => Some(u64::from(agno.0)),
            super::Owner::Inode(ino) => Some(ino.0),
        };
        let Request { kind, ref fragments, device, level, .. } = *request;
        Key { device, kind, owner, level, fragments: fragments.clone() }
    }
}

impl Kept {
    fn find(&mut self, key: &Key) -> Option<Block> {
        self.clock += 1;
        let (block, last) = self.blocks.get_mut(key)?;
        self.uses.remove(last);
        *last = self.clock;
        self.uses.insert(self.clock, key.clone());
        Some(block.clone())
    }

    fn keep(&mut self, key: Key, block: &Block, capacity: usize) {
        self.drop_key(&key);
        self.clock += 1;
        self.bytes += block.bytes().len();
        self.uses.insert(self.clock, key.clone());
        for fragment in &key.fragments {
            self.places.entry((key.device, fragment.daddr.0)).or_default().push(key.clone());
        }
        self.blocks.insert(key, (block.clone(), self.clock));
        while self.bytes > capacity {
            let Some((_, oldest)) = self.uses.pop_first() else { break };
            self.drop_key(&oldest);
        }
    }

    fn drop_key(&mut self, key: &Key) {
        if let Some((block, last)) = self.blocks.remove(key) {
            self.uses.remove(&last);
            self.bytes -= block.bytes().len();
            for fragment in &key.fragments {
                let place = (key.device, fragment.daddr.0);
                if let Some(keys) = self.places.get_mut(&place) {
                    keys.retain(|kept| kept != key);
                    if keys.is_empty() {
                        self.places.remove(&place);
                    }
                }
            }
        }
    }

    /// Blocks that share bytes with one that is written, of whatever kind they were read as, are out of date.
    fn forget_overlapping(&mut self, written: &Request) {
        let end = |fragment: &Fragment| fragment.daddr.0 + u64::from(fragment.len).div_ceil(512);
        let mut stale: Vec<Key> = Vec::new();
        for fragment in &written.fragments {
            // no fragment that is kept is longer than the longest block
            let first = fragment.daddr.0.saturating_sub(LONGEST_BLOCK / 512);
            let near = self.places.range((written.device, first)..(written.device, end(fragment)));
            let keys = near.flat_map(|(_, keys)| keys);
            let overlaps = |key: &&Key| {
                key.fragments.iter().any(|kept| kept.daddr.0 < end(fragment) && fragment.daddr.0 < end(kept))
            };
            stale.extend(keys.filter(overlaps).cloned());
        }
        stale.iter().for_each(|key| self.drop_key(key));
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;
    use crate::device::MemoryDevice;
    use crate::geometry::Daddr;
    use crate::geometry::samples::superblock;
    use crate::ondisk::RawSuperblock;
    use zerocopy::IntoBytes;

    /// A device with nothing but a superblock, and a cache of `capacity` bytes over it.
    fn cache(capacity: usize) -> BlockCache {
        let sb = superblock("default");
        let device = MemoryDevice::new(64 << 20);
        device.write_at(0, sb.as_bytes()).expect("on the device");
        let verifier = Verifier::new(Geometry::assume(&sb));
        BlockCache::new(verifier, Arc::new(device), capacity)
    }

    /// A request for a block of the length of a symbolic link's.
    fn link(cache: &BlockCache, block: u64) -> Request {
        Request::new(cache.geometry(), BlockKind::Symlink, Daddr(block * 8))
    }

    fn kept(cache: &BlockCache) -> (usize, usize) {
        let kept = cache.kept();
        let sum = kept.blocks.values().map(|(block, _)| block.bytes().len()).sum::<usize>();
        assert_eq!((sum, kept.uses.len()), (kept.bytes, kept.blocks.len()));
        (kept.blocks.len(), kept.bytes)
    }

    #[test]
    fn no_more_is_kept_than_the_capacity_and_the_oldest_goes_first() {
        let cache = cache(5 * 4096 + 100);
        for block in 100..200 {
            cache.read(link(&cache, block)).expect("readable");
            // this one is used again and again
            cache.read(link(&cache, 100)).expect("readable");
            assert!(kept(&cache).1 <= 5 * 4096 + 100);
        }
        assert_eq!(kept(&cache).0, 5);
        let mut kept = cache.kept();
        let mut has = |block| kept.find(&Key::of(&link(&cache, block))).is_some();
        assert!(has(100) && [196, 197, 198, 199].into_iter().all(&mut has) && !has(195));
    }

    #[test]
    fn a_cache_without_room_reads_all_the_same() {
        let cache = cache(0);
        let block = cache.read(link(&cache, 100)).expect("readable");
        assert_eq!(block.bytes().len(), 4096);
        assert_eq!(kept(&cache), (0, 0));
    }

    #[test]
    fn what_is_written_is_read_and_what_overlaps_it_is_forgotten() {
        let cache = cache(BlockCache::DEFAULT_CAPACITY);
        let header = Request::new(cache.geometry(), BlockKind::Superblock, Daddr(0));
        for request in [header.clone(), link(&cache, 0), link(&cache, 1)] {
            cache.read(request).expect("readable");
        }
        assert_eq!(kept(&cache).0, 3);
        let mut sb = superblock("default");
        sb.fname = *b"another name";
        let mut bytes = sb.as_bytes().to_vec();
        bytes.resize(usize::try_from(header.len()).expect("small"), 0);
        cache.write(header.clone(), bytes, Some(Lsn(7))).expect("a sound superblock");
        // the block of the same place that was read as another kind is gone, the one behind it stays
        assert_eq!(kept(&cache).0, 2);
        let old = cache.read(link(&cache, 0)).expect("readable");
        assert_eq!(old.bytes()[offset_of!(RawSuperblock, fname)..][..12], *b"another name");
        let block = cache.read_sound(header).expect("stamped");
        let (sb, _) = RawSuperblock::prefix(block.bytes()).expect("long enough");
        assert_eq!((sb.fname, sb.lsn.get()), (*b"another name", 7));
    }

    #[test]
    fn a_block_that_is_not_sound_is_not_written() {
        let cache = cache(BlockCache::DEFAULT_CAPACITY);
        let header = Request::new(cache.geometry(), BlockKind::Superblock, Daddr(0));
        let before = cache.read(header.clone()).expect("readable");
        let mut bytes = before.bytes().to_vec();
        bytes[0] ^= 1;
        assert!(matches!(cache.write(header.clone(), bytes, None), Err(Error::Corrupt(_))));
        assert_eq!(cache.read(header.clone()).expect("readable").bytes(), before.bytes());
        let mut stored = vec![0; before.bytes().len()];
        cache.read_raw(0, &mut stored).expect("readable");
        assert_eq!(stored, before.bytes());
    }

    #[test]
    fn blocks_of_no_or_of_too_many_bytes_are_refused() {
        let cache = cache(BlockCache::DEFAULT_CAPACITY);
        for len in [0, u32::MAX, 256 * 1024 + 512] {
            let request = Request::of_len(BlockKind::AttrRemote, Daddr(8), len);
            assert!(matches!(cache.read(request), Err(Error::Usage(_))), "{len}");
        }
        let outside = Request::new(cache.geometry(), BlockKind::Symlink, Daddr(1 << 40));
        assert!(matches!(cache.read(outside), Err(Error::Io { .. })));
    }
}
