//! What the scan says of the files that describe the filesystem: quota, realtime bitmap and summary.

use super::block_type::BlockType;
use super::events::Claim;
use super::file_map::FileMap;
use super::group::alternate_hex;
use super::inode::InodeScan;
use super::message::Space;
use crate::buffer::BlockKind;
use crate::ondisk::dquot::dqtype;
use crate::ondisk::feature_bits::qflags;
use crate::ondisk::rt::RtWordForm;
use crate::ondisk::{OnDisk, RawDiskDquot, RawDquotBlock};

/// The kinds of quota: name, flags that must be set before the records mean anything, type of the records.
const QUOTAS: [(&str, u16, u8); 3] = [
    ("user", qflags::UQUOTA_ACCT | qflags::UQUOTA_CHKD, dqtype::USER),
    ("group", qflags::GQUOTA_ACCT | qflags::GQUOTA_CHKD, dqtype::GROUP),
    ("project", qflags::PQUOTA_ACCT | qflags::PQUOTA_CHKD, dqtype::PROJ),
];

/// Bits that the type of a record can have.
const DQTYPE_ANY: u8 = dqtype::REC_MASK | dqtype::BIGTIME;

impl InodeScan<'_> {
    /// Each block of the file, in order, with its place on the device.
    fn for_each_block(&mut self, map: &FileMap, visit: &mut dyn FnMut(&mut Self, u64, u64)) {
        let mut budget = self.geometry().dblocks;
        let mut place = map.first();
        while let Some(now) = place.filter(|_| budget > 0) {
            budget -= 1;
            place = map.next(now, now.at);
            if let Some(fsb) = map.block(now.at) {
                visit(self, now.at, fsb);
            }
        }
    }

    fn read_block(&self, kind: BlockKind, fsb: u64) -> Option<Vec<u8>> {
        let daddr = self.scan.reader.fsb_daddr(fsb)?;
        self.scan.reader.block_of(kind, daddr, self.ino)
    }

    /// Scans a quota file.
    pub fn quota(&mut self, map: &FileMap) {
        let sb = self.scan.sb;
        let files = [sb.uquotino.get(), sb.gquotino.get(), sb.pquotino.get()];
        let flags = self.geometry().quota.flags;
        let found =
            files.iter().zip(QUOTAS).find(|(file, (_, needed, _))| **file == self.ino && flags & needed == *needed);
        let Some((_, (name, _, wanted))) = found else { return };
        self.for_each_block(map, &mut |inode, at, fsb| {
            let listed = inode.scan.options.lists(fsb);
            let shown = inode.scan.tells() || inode.all || listed;
            let Some(bytes) = inode.read_block(BlockKind::Dquots, fsb) else {
                let fsb = fsb.cast_signed();
                return inode
                    .sink
                    .error(shown, || format!("can't read block {at} for {name} quota inode (fsblock {fsb})"));
            };
            let all = inode.all || listed;
            inode.quota_block(&bytes, (name, wanted), at, (shown, all));
        });
    }

    fn quota_block(&mut self, bytes: &[u8], (name, wanted): (&str, u8), at: u64, (shown, all): (bool, bool)) {
        let per_block = RawDquotBlock::per_block(self.geometry().blocksize);
        let first = at.wrapping_mul(u64::from(per_block)) & u64::from(u32::MAX);
        let first = u32::try_from(first).unwrap_or(0);
        for (index, slot) in (0..per_block).zip(bytes.chunks_exact(RawDquotBlock::SIZE)) {
            let Some((dquot, _)) = RawDiskDquot::prefix(slot) else { continue };
            let id = first.wrapping_add(index);
            let place = format!("{name} dqblk {at} entry {index} id {id}");
            if all {
                let [blocks, inodes, realtime] =
                    [dquot.bcount, dquot.icount, dquot.rtbcount].map(|count| count.get().cast_signed());
                self.sink.say(format!("{place} bc {blocks} ic {inodes} rc {realtime}"));
            }
            let kind = dquot.dqtype & dqtype::REC_MASK;
            let hex = |number: u16| alternate_hex(u32::from(number));
            let wrong = if dquot.magic.get() != RawDiskDquot::MAGIC {
                Some(format!("bad magic number {}", hex(dquot.magic.get())))
            } else if dquot.version != RawDiskDquot::VERSION {
                Some(format!("bad version number {}", hex(dquot.version.into())))
            } else if dquot.dqtype & !DQTYPE_ANY != 0 {
                Some(format!("bad flags {}", hex(dquot.dqtype.into())))
            } else if kind != wanted {
                Some(format!("wrong type {}", hex(kind.into())))
            } else if dquot.id.get() != id {
                Some(format!("bad id {}", dquot.id.get()))
            } else {
                None
            };
            if let Some(wrong) = wrong {
                self.sink.error(shown, || format!("{wrong} for {place}"));
            }
        }
    }

    /// Scans the bitmap of a realtime section without groups: claims what is free. Its words are taken to be in the
    /// byte order of little-endian machines.
    pub fn rt_bitmap(&mut self, map: &FileMap) {
        let (extents, size) = (self.geometry().realtime.extents, self.geometry().realtime.extent_blocks);
        let tells = self.scan.tells();
        let mut extent = 0_u64;
        self.for_each_block(map, &mut |inode, at, fsb| {
            if extent >= extents {
                return;
            }
            let Some(bytes) = inode.read_block(BlockKind::RtBitmap, fsb) else {
                return inode.sink.error(tells, || format!("can't read block {at} for rtbitmap inode"));
            };
            let form = RtWordForm::LegacyLittle;
            let mut run: Option<(u64, u64)> = None;
            for index in 0..form.words_per_block(bytes.len()) {
                let word = form.word(&bytes, index).unwrap_or(0);
                for bit in 0..32 {
                    let free = extent < extents && word >> bit & 1 == 1;
                    match (&mut run, free) {
                        (Some((_, count)), true) if (*count + 1) * u64::from(size) <= u64::from(u32::MAX) => {
                            *count += 1
                        }
                        (Some(done), free) => {
                            inode.claim_free(*done, size);
                            run = free.then_some((extent, 1));
                        }
                        (None, true) => run = Some((extent, 1)),
                        (None, false) => {}
                    }
                    extent = (extent + 1).min(extents);
                }
            }
            if let Some(done) = run {
                inode.claim_free(done, size);
            }
        });
    }

    fn claim_free(&mut self, (first, count): (u64, u64), size: u32) {
        let len = u32::try_from(count * u64::from(size)).unwrap_or(u32::MAX);
        let claim = Claim { start: first * u64::from(size), len, ..Claim::of(BlockType::RtFree) };
        self.sink.claim(Space::Realtime, claim);
    }

    /// Scans the summary of a realtime section without groups.
    pub fn rt_summary(&mut self, map: &FileMap) {
        let tells = self.scan.tells();
        self.for_each_block(map, &mut |inode, at, fsb| {
            if inode.read_block(BlockKind::RtSummary, fsb).is_none() {
                inode.sink.error(tells, || format!("can't read block {at} for rtsummary inode"));
            }
        });
    }
}
