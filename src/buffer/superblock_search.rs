//! The search for a copy of a superblock that is damaged.
//!
//! Every group starts with a copy. As xfs_repair does (xfsprogs `repair/sb.c`), it is looked for where the damaged
//! superblock says that groups start, then where mkfs would have put them on a device of this size, then everywhere;
//! before all that, where the header of the first group's free space says. A copy counts when others agree with it about
//! the shape of the filesystem, and when it lies where it says that a group starts, which a superblock inside a file
//! does not.

use super::superblock_read::{SuperblockRead, read_superblock};
use crate::device::{ByteRange, Device};
use crate::error::{Error, Result, Rule, Verdict};
use crate::geometry::limits::{
    BASIC_BLOCK, MAX_AG_BYTES, MAX_BLOCKLOG, MAX_SECTLOG, MIN_AG_BYTES, MIN_BLOCKLOG, MIN_SECTLOG, MIN_SECTSIZE,
};
use crate::geometry::{AgNumber, Geometry};
use crate::ondisk::feature_bits::versionnum;
use crate::ondisk::{OnDisk, RawAgf, RawSuperblock};

/// Copies that are read at most to see how many agree.
const MOST_EXAMINED: u32 = 64;
/// Group starts that are tried of each guess.
const GROUPS_TRIED: u64 = 4;
/// Bytes before and behind a guessed place that are searched too, and of one read of the search everywhere.
const STRIDE: u64 = 1 << 20;
/// Candidates that the search everywhere looks at closely.
const MOST_CANDIDATES: u32 = 256;

/// How far to look for a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchEffort {
    /// Where copies are likely to be: some megabytes are read.
    Guesses,
    /// Then everywhere that the device may hold something, until so many bytes are read.
    Everywhere {
        /// Most bytes that are read.
        limit: u64,
    },
}

/// The state of the primary superblock.
#[derive(Debug)]
pub enum Primary {
    /// It fails no check, or only names features that are not known here.
    Sound,
    /// It fails these checks.
    Damaged(Verdict),
    /// It cannot be read.
    Unreadable(Error),
}

impl Primary {
    /// What is wrong with it, in words; empty when it is sound. Of what is no superblock at all, that alone is said.
    pub fn damage(&self) -> Vec<String> {
        match self {
            Primary::Sound => Vec::new(),
            Primary::Damaged(verdict) => {
                let failures = verdict.failures().iter();
                let magic = verdict.failures().first().is_some_and(|first| first.check.rule == Rule::Magic);
                failures.take(if magic { 1 } else { usize::MAX }).map(ToString::to_string).collect()
            }
            Primary::Unreadable(error) => vec![error.to_string()],
        }
    }
}

/// A superblock, and where it was found.
#[derive(Debug)]
pub struct FoundSuperblock {
    /// The primary one, or the copy that stands for it. Counters of copies are out of date, their `inprogress` has no
    /// meaning.
    pub sb: RawSuperblock,
    /// What follows from it.
    pub geometry: Geometry,
    /// The group that it heads: 0 for the primary one.
    pub agno: AgNumber,
    /// Where it lies, in bytes.
    pub offset: u64,
    /// The state of the primary one.
    pub primary: Primary,
    /// Superblocks found to agree with it about the shape of the filesystem, itself included; 1 for the primary one,
    /// with which nothing is compared.
    pub agreeing: u32,
}

/// The primary superblock, or if that is damaged, a copy of it.
///
/// # Errors
/// What is wrong with the primary one, when there is no copy to be found: `Io`, or `Corrupt` with the first check that
/// it fails.
pub fn find_superblock(device: &dyn Device, effort: SearchEffort) -> Result<FoundSuperblock> {
    let (primary, hint) = match read_superblock(device, 0, AgNumber(0)) {
        Ok(read) if read.is_plausible() => {
            let geometry = Geometry::assume(&read.sb);
            let primary = Primary::Sound;
            return Ok(FoundSuperblock { sb: read.sb, geometry, agno: AgNumber(0), offset: 0, primary, agreeing: 1 });
        }
        Ok(read) => (Primary::Damaged(read.verdict), Some(read.sb)),
        Err(error) => (Primary::Unreadable(error), None),
    };
    let Some(copy) = Search { device }.run(hint.as_ref(), effort) else {
        return Err(match primary {
            Primary::Unreadable(error) => error,
            Primary::Damaged(verdict) => verdict.into_result().err().unwrap_or_else(invariant_broken),
            Primary::Sound => invariant_broken(),
        });
    };
    let geometry = Geometry::assume(&copy.sb);
    let Copy { sb, agno, offset, agreeing } = copy;
    Ok(FoundSuperblock { sb, geometry, agno, offset, primary, agreeing })
}

fn invariant_broken() -> Error {
    Error::Internal("a sound superblock was looked for elsewhere".to_owned())
}

/// A copy that others agree with.
struct Copy {
    sb: RawSuperblock,
    agno: AgNumber,
    offset: u64,
    agreeing: u32,
}

struct Search<'a> {
    device: &'a dyn Device,
}

impl Search<'_> {
    fn run(&self, damaged: Option<&RawSuperblock>, effort: SearchEffort) -> Option<Copy> {
        let mut sizes: Vec<u64> = damaged.and_then(claimed_group_size).into_iter().collect();
        sizes.extend(self.group_sizes_of_agf());
        sizes.extend(default_group_sizes(self.device.len()));
        let mut tried = Vec::new();
        for size in sizes {
            if !tried.contains(&size) {
                if let Some(copy) = self.at_multiples_of(size) {
                    return Some(copy);
                }
                tried.push(size);
            }
        }
        match effort {
            SearchEffort::Guesses => None,
            SearchEffort::Everywhere { limit } => self.everywhere(limit),
        }
    }

    /// Groups as long as the header of the first group's free space says, in blocks of any size: it lies in the second
    /// sector, of any size.
    fn group_sizes_of_agf(&self) -> Vec<u64> {
        let lengths = (MIN_SECTLOG..=MAX_SECTLOG).filter_map(|sectlog| {
            let mut sector = [0; MIN_SECTSIZE as usize];
            self.device.read_at(1 << sectlog, &mut sector).ok()?;
            let (agf, _) = RawAgf::prefix(&sector)?;
            (agf.magicnum.get() == RawAgf::MAGIC).then_some(u64::from(agf.length.get()))
        });
        let sizes = lengths.flat_map(|length| (MIN_BLOCKLOG..=MAX_BLOCKLOG).map(move |blocklog| length << blocklog));
        sizes.filter(|size| (MIN_AG_BYTES..=MAX_AG_BYTES).contains(size)).collect()
    }

    /// A copy at one of the first multiples of `size`, or near it.
    fn at_multiples_of(&self, size: u64) -> Option<Copy> {
        (1..=GROUPS_TRIED)
            .filter_map(|group| size.checked_mul(group))
            .take_while(|place| *place < self.device.len())
            .find_map(|place| self.within(ByteRange { start: place - STRIDE, len: 2 * STRIDE }, &mut 8))
    }

    /// A copy in any place that the device may hold something in, of `limit` bytes.
    fn everywhere(&self, limit: u64) -> Option<Copy> {
        let (mut at, mut left, mut candidates) = (MIN_AG_BYTES, limit, MOST_CANDIDATES);
        while left > 0 && candidates > 0 {
            let range = self.device.next_allocated(at).ok()??;
            let start = range.start & !u64::from(BASIC_BLOCK - 1);
            let stride = ByteRange { start, len: (range.end() - start).min(STRIDE).min(left) };
            if let Some(copy) = self.within(stride, &mut candidates) {
                return Some(copy);
            }
            left -= stride.len;
            at = stride.end().max(at + u64::from(BASIC_BLOCK));
        }
        None
    }

    /// A copy that starts in `range`, at a multiple of 512 bytes. Looks closely at no more than `candidates`.
    fn within(&self, range: ByteRange, candidates: &mut u32) -> Option<Copy> {
        let range = range.intersection(ByteRange { start: 0, len: self.device.len() })?;
        range.intersection(self.device.next_allocated(range.start).ok()??)?;
        let mut bytes = vec![0; usize::try_from(range.len).ok()?];
        self.device.read_at(range.start, &mut bytes).ok()?;
        let magic = RawSuperblock::MAGIC.to_be_bytes();
        let sectors = bytes.chunks(BASIC_BLOCK as usize).zip(0_u64..);
        for (_, index) in sectors.filter(|(sector, _)| sector.starts_with(&magic)) {
            *candidates = candidates.checked_sub(1)?;
            if let Some(copy) = self.examine(range.start + index * u64::from(BASIC_BLOCK)) {
                return Some(copy);
            }
        }
        None
    }

    /// The superblock at `offset`, or a better one that more agree with, if it is sound, where it says it is, and not
    /// alone.
    fn examine(&self, offset: u64) -> Option<Copy> {
        let sb = self.sound_copy(offset, None)?;
        let geometry = Geometry::assume(&sb);
        let copies = self.copies(&geometry);
        let best = copies.iter().rev().max_by_key(|copy| agreeing(&copies, &copy.sb))?;
        let agreeing = agreeing(&copies, &best.sb);
        let examined = geometry.agcount.saturating_sub(1).min(MOST_EXAMINED);
        let enough = examined == 1 || (agreeing >= 2 && agreeing >= examined / 2);
        (enough && agreeing > 0).then_some(Copy { agreeing, ..*best })
    }

    /// The sound superblocks of the groups behind the first, as far as they are looked at.
    fn copies(&self, geometry: &Geometry) -> Vec<Copy> {
        let groups = (1..geometry.agcount).take(MOST_EXAMINED as usize).map(AgNumber);
        let copies = groups.filter_map(|agno| {
            let offset = geometry.daddr_offset(geometry.ag_header_daddr(agno, 0)?)?;
            Some(Copy { sb: self.sound_copy(offset, Some(agno))?, agno, offset, agreeing: 0 })
        });
        copies.collect()
    }

    /// The superblock at `offset` if it is sound, and lies where it says that a group starts.
    fn sound_copy(&self, offset: u64, agno: Option<AgNumber>) -> Option<RawSuperblock> {
        let read = read_superblock(self.device, offset, agno.unwrap_or(AgNumber(1))).ok()?;
        (read.is_plausible() && group_at(&read, offset)).then_some(read.sb)
    }
}

/// Whether one of the superblock's groups, not the first, starts at `offset`.
fn group_at(read: &SuperblockRead, offset: u64) -> bool {
    let geometry = Geometry::assume(&read.sb);
    let size = u64::from(geometry.agblocks) << geometry.blocklog;
    offset % size == 0 && (1..u64::from(geometry.agcount)).contains(&(offset / size))
}

/// Bytes of a group, if what the damaged superblock says of it is possible.
fn claimed_group_size(sb: &RawSuperblock) -> Option<u64> {
    let geometry = Geometry::assume(sb);
    let size = u64::from(geometry.agblocks) << geometry.blocklog;
    (MIN_AG_BYTES..=MAX_AG_BYTES).contains(&size).then_some(size)
}

/// Bytes of a group as mkfs makes them on a device of `len` bytes: the largest, or the power-of-two part of the device,
/// with blocks of 4096 bytes (xfsprogs `libxfs/topology.c`, `calc_default_ag_geometry`).
fn default_group_sizes(len: u64) -> Vec<u64> {
    const BLOCKLOG: u32 = 12;
    let blocks = len >> BLOCKLOG;
    let largest = ((MAX_AG_BYTES - 1) >> BLOCKLOG) << BLOCKLOG;
    let parts = [2, 3, 4, 5, 1].map(|shift| blocks.div_ceil(1 << shift) << BLOCKLOG);
    let sizes = std::iter::once(largest).chain(parts);
    sizes.filter(|size| (MIN_AG_BYTES..=largest).contains(size) && *size < len).collect()
}

/// How many of `copies` agree with `sb` about the shape of the filesystem.
fn agreeing(copies: &[Copy], sb: &RawSuperblock) -> u32 {
    copies.iter().map(|copy| u32::from(same_shape(&copy.sb, sb))).sum()
}

/// Whether two superblocks describe the same shape: the fields that xfs_repair compares.
fn same_shape(a: &RawSuperblock, b: &RawSuperblock) -> bool {
    let shape = |sb: &RawSuperblock| {
        let long = [sb.dblocks, sb.rblocks, sb.rextents, sb.logstart];
        let words = [sb.blocksize, sb.rextsize, sb.agblocks, sb.agcount, sb.rbmblocks, sb.logblocks];
        let alignment = sb.versionnum.get() & (versionnum::ALIGN | versionnum::DALIGN);
        (long, words, sb.sectsize, sb.inodesize, alignment)
    };
    shape(a) == shape(b)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zerocopy::IntoBytes;

    use super::*;
    use crate::device::MemoryDevice;
    use crate::geometry::samples::{damaged_superblock, superblock};
    use crate::ondisk::crc;

    const FULL: SearchEffort = SearchEffort::Everywhere { limit: u64::MAX };

    fn put(device: &MemoryDevice, offset: u64, sb: &RawSuperblock) {
        let mut sector = vec![0; 512];
        sector[..RawSuperblock::SIZE].copy_from_slice(sb.as_bytes());
        crc::stamp(&mut sector, RawSuperblock::CRC_OFFSET);
        device.write_at(offset, &sector).expect("in range");
    }

    /// The sample with groups of `agblocks` blocks, as many as are whole, and its superblocks on a device.
    #[allow(clippy::cast_possible_truncation)] // the sample is small
    fn filesystem(agblocks: u32) -> (RawSuperblock, MemoryDevice) {
        let mut sb = superblock("default");
        sb.agcount = (sb.dblocks.get() as u32 / agblocks).into();
        sb.agblocks = agblocks.into();
        sb.dblocks = u64::from(sb.agcount.get() * agblocks).into();
        sb.agblklog = agblocks.next_power_of_two().ilog2() as u8;
        let device = MemoryDevice::new(sb.dblocks.get() * 4096 + 12345);
        (0..sb.agcount.get()).for_each(|agno| put(&device, start(&sb, agno), &sb));
        (sb, device)
    }

    fn start(sb: &RawSuperblock, agno: u32) -> u64 {
        u64::from(agno) * u64::from(sb.agblocks.get()) * 4096
    }

    fn wipe(device: &MemoryDevice, len: usize) {
        device.write_at(0, &vec![0x5a; len]).expect("in range");
    }

    #[test]
    fn a_sound_primary_is_taken() {
        let (sb, device) = filesystem(32768);
        let found = find_superblock(&device, SearchEffort::Guesses).expect("found");
        assert_eq!((found.sb.dblocks, found.agno, found.offset), (sb.dblocks, AgNumber(0), 0));
        assert!(matches!(found.primary, Primary::Sound));
    }

    #[test]
    fn copies_are_found_where_mkfs_puts_them() {
        let (sb, device) = filesystem(32768);
        wipe(&device, 4096);
        let found = find_superblock(&device, SearchEffort::Guesses).expect("found");
        assert_eq!((found.geometry.dblocks, found.agreeing), (sb.dblocks.get(), 3));
        assert!(found.agno.0 > 0 && found.offset == start(&sb, found.agno.0));
        assert!(matches!(found.primary, Primary::Damaged(_)));
        assert_eq!(found.primary.damage().len(), 1);
    }

    #[test]
    fn copies_are_found_where_the_damaged_primary_says() {
        let (mut sb, device) = filesystem(13000);
        sb.imax_pct = 101;
        put(&device, 0, &sb);
        let found = find_superblock(&device, SearchEffort::Guesses).expect("found");
        assert_eq!((found.agno, found.agreeing), (AgNumber(1), 9));
        let Primary::Damaged(verdict) = found.primary else { panic!("the primary is damaged") };
        assert_eq!(verdict.failures().len(), 1);
    }

    #[test]
    fn copies_are_found_where_the_free_space_header_says() {
        let (_, device) = filesystem(11113);
        wipe(&device, 512);
        assert!(find_superblock(&device, SearchEffort::Guesses).is_err());
        let mut agf: RawAgf = zerocopy::FromZeros::new_zeroed();
        (agf.magicnum, agf.length) = (RawAgf::MAGIC.into(), 11113.into());
        device.write_at(512, agf.as_bytes()).expect("in range");
        assert_eq!(find_superblock(&device, SearchEffort::Guesses).expect("found").agreeing, 10);
    }

    #[test]
    fn copies_are_found_wherever_they_are() {
        let (sb, device) = filesystem(11113);
        wipe(&device, 8192);
        assert!(find_superblock(&device, SearchEffort::Guesses).is_err());
        let found = find_superblock(&device, FULL).expect("found");
        assert_eq!((found.agno, found.offset), (AgNumber(1), start(&sb, 1)));
        device.write_at(start(&sb, 1), &[0x5a; 4096]).expect("in range");
        assert!(find_superblock(&device, SearchEffort::Everywhere { limit: 4096 }).is_err());
        assert_eq!(find_superblock(&device, FULL).expect("found").agno, AgNumber(2));
    }

    #[test]
    fn a_superblock_inside_a_file_is_not_taken() {
        let (sb, device) = filesystem(32768);
        wipe(&device, 4096);
        let mut nested = superblock("huge");
        nested.inprogress = 1;
        put(&device, 50 << 20, &nested);
        put(&device, start(&sb, 1) + 8192, &nested);
        let found = find_superblock(&device, FULL).expect("found");
        assert_eq!(found.geometry.dblocks, sb.dblocks.get());
    }

    #[test]
    fn the_majority_is_right() {
        let (sb, device) = filesystem(13000);
        wipe(&device, 4096);
        let mut old = sb;
        old.logblocks = 4096.into();
        put(&device, start(&sb, 1), &old);
        let found = find_superblock(&device, FULL).expect("found");
        assert_eq!((found.sb.logblocks, found.agreeing), (sb.logblocks, 8));
        assert_ne!(found.agno, AgNumber(1));
    }

    #[test]
    fn one_of_many_is_not_enough_but_one_of_one_is() {
        let (sb, device) = filesystem(32768);
        wipe(&device, 4096);
        (2..4).for_each(|agno| device.write_zeroes(start(&sb, agno), 512).expect("in range"));
        assert!(find_superblock(&device, FULL).is_err());
        let (_, device) = filesystem(65536);
        wipe(&device, 4096);
        assert_eq!(find_superblock(&device, SearchEffort::Guesses).expect("found").agreeing, 1);
    }

    #[test]
    fn nothing_to_be_found_is_an_error_of_the_primary() {
        let error = find_superblock(&MemoryDevice::new(1 << 40), FULL).expect_err("no filesystem");
        let Error::Corrupt(corruption) = error else { panic!("{error}") };
        assert_eq!((corruption.check.field, corruption.check.rule), ("magicnum", Rule::Magic));
        assert!(find_superblock(&MemoryDevice::new(0), FULL).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_damage_makes_the_search_panic(
            primary in damaged_superblock(),
            copies in proptest::collection::vec((0_u64..2048, damaged_superblock()), 0..8),
        ) {
            let device = MemoryDevice::new(1 << 30);
            put(&device, 0, &primary);
            for (place, copy) in copies {
                put(&device, place << 19, &copy);
            }
            let _ = find_superblock(&device, FULL);
        }
    }
}
