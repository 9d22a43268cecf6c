//! The smallest image of a tree: over many trees, one block less does not hold it.

#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // sizes and patterns of test files

#[allow(dead_code, reason = "shared with the other tests of populate")]
#[path = "populate/image.rs"]
mod image;
#[allow(dead_code, reason = "shared with the other tests of populate")]
#[path = "populate/maker.rs"]
mod maker;

use std::sync::Arc;

use image::Wish;
use maker::{Maker, everything};
use xfskit::device::{Device, MemoryDevice};
use xfskit::error::Result;
use xfskit::mkfs;
use xfskit::populate::{
    BuildOptions, Builder, Candidate, Candidates, Content, Data, Headroom, Kind, NodeId, Regime, Spool, Summary,
    smallest,
};

/// Images of any size with the options of a wish.
struct Sizes {
    wish: Wish,
    block_size: u64,
}

impl Candidates for Sizes {
    fn regime(&mut self, blocks: u64) -> Result<Option<Regime>> {
        let layout = self.wish.sized(blocks, self.block_size).layout();
        Ok(layout.ok().map(|layout| Regime { groups: layout.data.agcount, log_blocks: layout.log.blocks }))
    }

    fn make(&mut self, blocks: u64) -> Result<Candidate> {
        let layout = self.wish.sized(blocks, self.block_size).layout()?;
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(blocks * self.block_size));
        let superblock = mkfs::prepare(&layout, &*device, None, None, &mut || {})?.superblock();
        Ok(Candidate { superblock, device })
    }
}

impl Sizes {
    /// Builds an image of `blocks` blocks for good.
    fn build(&mut self, blocks: u64, spool: &Spool, content: &Content) -> Result<Summary> {
        let layout = self.wish.sized(blocks, self.block_size).layout()?;
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new(blocks * self.block_size));
        let superblock = mkfs::prepare(&layout, &*device, None, None, &mut || {})?.superblock();
        let mut builder = Builder::new(superblock, &device, BuildOptions { seed: Some(1), trial: false })?;
        spool.copy_to(&mut builder)?;
        let summary = builder.finish(content);
        let mut magic = [0; 4];
        device.read_at(0, &mut magic)?;
        assert_eq!(summary.is_ok(), magic == *b"XFSB", "an image that looks finished is finished");
        summary
    }
}

/// A tree that depends on a number.
fn tree(number: u32, spool: &mut Spool) -> Result<Content> {
    if number % 5 == 0 {
        return everything(spool, 1 + number);
    }
    let mut maker = Maker::new(spool);
    for folder in 0..=number % 4 {
        let id = maker.folder(NodeId::ROOT, &format!("folder-{folder}"))?;
        for file in 0..number * number {
            let size = u64::from((file * 7919 + number * 104_729) % 90_000);
            let segments: Vec<(u64, u64)> = if size > 0 { vec![(0, size)] } else { Vec::new() };
            maker.file(id, format!("file-{file}").as_bytes(), size, &segments)?;
        }
        maker.add(id, b"pipe", Kind::Fifo, Vec::new())?;
        maker.add(id, b"nothing", Kind::Regular(Data::default()), Vec::new())?;
    }
    Ok(maker.content)
}

#[test]
fn one_block_less_does_not_hold_the_tree() {
    let trees = if std::env::var_os("XFSKIT_FULL").is_some() { 24 } else { 6 };
    let options = ["", "-b size=1k", "-m rmapbt=0,reflink=0", "-b size=2k -n parent=0", "-m crc=0", "-d agcount=3"];
    let folder = std::env::temp_dir();
    for number in 0..trees {
        let wish = Wish::new("smallest", 16, options[number as usize % options.len()]);
        let block_size = u64::from(wish.sized(1 << 20, 1 << 12).layout().expect("a sound wish").block.bytes());
        let mut spool = Spool::new(&folder, u32::try_from(block_size).expect("small")).expect("a temporary file");
        let content = tree(number, &mut spool).expect("made");
        let headroom =
            if number % 3 == 2 { Headroom::Percent(10) } else { Headroom::Bytes(u64::from(number) * 10_000) };
        let mut sizes = Sizes { wish, block_size };
        let blocks = smallest(&content, &spool, headroom, &mut sizes).expect("some size will do");
        let left = |summary: &Summary, blocks: u64| match headroom {
            Headroom::Bytes(bytes) => summary.available * block_size >= bytes,
            Headroom::Percent(share) => summary.available * 100 >= blocks * u64::from(share),
        };
        let summary = sizes.build(blocks, &spool, &content).expect("this size holds it");
        assert!(left(&summary, blocks), "tree {number}");
        let less = sizes.build(blocks - 1, &spool, &content);
        assert!(!less.is_ok_and(|summary| left(&summary, blocks - 1)), "tree {number}: {blocks} blocks");
    }
}
