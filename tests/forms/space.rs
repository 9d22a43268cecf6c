//! Quota files against the inodes that they count, and realtime bitmaps against summaries and counters.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use xfskit::forms::{
    Inode, QuotaKind, RtFileKind, RtGroupFile, for_each_dquot, for_each_rt_words, quota_file, rtgroup_file,
};
use xfskit::geometry::{Ino, RgNumber};
use xfskit::ondisk::rt::RtWordForm;

use crate::source::Image;

/// Blocks and inodes of every id that owns something, by kind of quota.
fn owned(image: &Image, inodes: &HashSet<Ino>, kind: QuotaKind) -> BTreeMap<u32, (u64, u64)> {
    let mut owned = BTreeMap::new();
    // these two have no name, but count
    let realtime = &image.geometry().realtime;
    let unnamed = [realtime.bitmap_ino, realtime.summary_ino].into_iter().flatten();
    for ino in inodes.iter().copied().chain(unnamed) {
        let inode = Inode::read(&image.blocks, ino).expect("inodes are readable");
        let core = &inode.raw().core;
        let id = match kind {
            QuotaKind::User => core.uid.get(),
            QuotaKind::Group => core.gid.get(),
            QuotaKind::Project => core.projid(),
        };
        let sum: &mut (u64, u64) = owned.entry(id).or_default();
        *sum = (sum.0 + core.nblocks.get(), sum.1 + 1);
    }
    owned
}

/// Compares every quota file with what `inodes` (all of the filesystem) own; how many dquots count something.
pub fn quotas_agree(image: &Image, inodes: &HashSet<Ino>) -> usize {
    let mut counted = 0;
    for kind in [QuotaKind::User, QuotaKind::Group, QuotaKind::Project] {
        let Some(file) = quota_file(&image.blocks, kind).expect("the way to the quota file is sound") else { continue };
        let mut found = BTreeMap::new();
        for_each_dquot(&image.blocks, &file, kind, &mut |dquot| {
            let dquot = dquot.expect("the file's mappings are sound");
            assert!(dquot.verdict.is_sound(), "{:?}", dquot.verdict);
            let used = (dquot.raw.diskdq.bcount.get(), dquot.raw.diskdq.icount.get());
            if used != (0, 0) {
                found.insert(dquot.id, used);
            }
            ControlFlow::Continue(())
        })
        .expect("the file's data fork is sound");
        assert_eq!(found, owned(image, inodes, kind), "{kind:?}");
        counted += found.len();
    }
    counted
}

fn words(image: &Image, file: &Inode, kind: RtFileKind, form: RtWordForm) -> Vec<u32> {
    let mut all = Vec::new();
    for_each_rt_words(&image.blocks, file, kind, form, &mut |words| {
        let words = words.expect("the file is sound");
        assert_eq!(words.first, all.len() as u64, "words follow each other");
        all.extend(words.words);
        ControlFlow::Continue(())
    })
    .expect("the file's data fork is sound");
    all
}

/// What the summary of such a bitmap must say, in words.
fn summary_of(bitmap: &[u32], extents: u64, words_per_block: usize, blocks: u64, levels: u32) -> Vec<u32> {
    let free = |at: u64| bitmap[(at / 32) as usize] >> (at % 32) & 1 != 0;
    let mut summary = vec![0; (blocks * u64::from(levels)) as usize];
    let mut at = 0;
    while at < extents {
        let start = at;
        while at < extents && free(at) {
            at += 1;
        }
        if at > start {
            let block = start / (32 * words_per_block as u64);
            summary[(u64::from((at - start).ilog2()) * blocks + block) as usize] += 1;
        }
        at += 1;
    }
    summary
}

/// Compares bitmap and summary of the section or of each group; the number of free extents must be `free`.
pub fn realtime_agrees(image: &Image, free: u64) {
    let realtime = &image.geometry().realtime;
    let read =
        |ino: Option<Ino>| Inode::read(&image.blocks, ino.expect("a realtime file")).expect("inodes are readable");
    let (form, files) = match realtime.groups {
        None => (RtWordForm::LegacyLittle, vec![(read(realtime.bitmap_ino), read(realtime.summary_ino))]),
        Some(groups) => {
            let file = |rgno: u32, kind| {
                let found = rtgroup_file(&image.blocks, RgNumber(rgno), kind).expect("the way to the file is sound");
                found.expect("the file exists")
            };
            let files =
                (0..groups.count).map(|rgno| (file(rgno, RtGroupFile::Bitmap), file(rgno, RtGroupFile::Summary)));
            (RtWordForm::Groups, files.collect())
        }
    };
    let mut found = 0;
    for (rgno, (bitmap, summary)) in (0..).zip(&files) {
        let extents = realtime.group_extents(RgNumber(rgno)).expect("the group exists");
        let bitmap = words(image, bitmap, RtFileKind::Bitmap, form);
        let summary = words(image, summary, RtFileKind::Summary, form);
        found += bitmap.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        let per_block = form.words_per_block(image.geometry().blocksize as usize);
        let expected = summary_of(&bitmap, extents, per_block, realtime.bitmap_blocks, realtime.summary_levels);
        assert_eq!(summary[..expected.len()], expected, "summary of group {rgno}");
    }
    assert_eq!(found, free, "free realtime extents");
}
