//! Images built by the library are read back, and what fails leaves nothing that looks finished.

#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // sizes and patterns of test files

#[allow(dead_code, reason = "shared with the other tests of populate")]
#[path = "populate/image.rs"]
mod image;
#[path = "populate/maker.rs"]
mod maker;
#[path = "populate/read_back.rs"]
mod read_back;
#[path = "populate/wishes.rs"]
mod wishes;

use std::collections::HashMap;
use std::sync::Arc;

use image::Wish;
use maker::{Maker, everything};
use read_back::{Recording, compare};
use xfskit::device::{Device, Effect, Fault, FaultDevice, MemoryDevice, Operation};
use xfskit::error::{Error, Result};
use xfskit::populate::{Bytes, Content, Data, DataSink, Kind, NodeId, Piece, Range};

const MAGIC: &[u8; 4] = b"XFSB";

fn memory(wish: &Wish) -> Arc<dyn Device> {
    Arc::new(MemoryDevice::new(wish.size))
}

/// Whether there is a primary superblock.
fn looks_finished(device: &dyn Device) -> bool {
    let mut magic = [0; 4];
    device.read_at(0, &mut magic).expect("read");
    magic == *MAGIC
}

#[test]
fn everything_is_read_back_from_every_kind_of_filesystem() {
    let share = if std::env::var_os("XFSKIT_FULL").is_some() { 1 } else { 3 };
    for wish in wishes::wishes().into_iter().step_by(share) {
        let device = memory(&wish);
        let mut bytes = HashMap::new();
        let mut kept = None;
        let summary = wish.build(&device, |builder| {
            let content = everything(&mut Recording { sink: builder, bytes: &mut bytes }, 20)?;
            kept = Some(content.clone());
            Ok(content)
        });
        summary.unwrap_or_else(|error| panic!("{}: {error}", wish.name));
        compare(&device, &kept.expect("built"), &bytes);
    }
}

fn all_bytes(device: &dyn Device) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(device.len()).expect("an image of a test")];
    device.read_at(0, &mut bytes).expect("read");
    bytes
}

#[test]
fn the_same_tree_gives_the_same_bytes() {
    let wish = Wish::new("same", 64, "");
    let images: Vec<_> = (0..2)
        .map(|_| {
            let device = memory(&wish);
            wish.build(&device, |builder| everything(builder, 10)).expect("built");
            all_bytes(&*device)
        })
        .collect();
    assert!(images[0] == images[1]);
}

#[test]
fn a_full_image_says_so() {
    let wish = Wish::new("full", 20, "");
    for (what, fill) in [
        (
            "the data of a file",
            &(|sink: &mut dyn DataSink| large_file(sink, 40 << 20)) as &dyn Fn(&mut dyn DataSink) -> Result<Content>,
        ),
        ("inodes", &|sink| many_files(sink, 60_000)),
    ] {
        let device = memory(&wish);
        let error = wish.build(&device, |builder| fill(builder)).expect_err("it does not fit").to_string();
        assert!(error.contains("the image is full") && error.contains(what), "{error}");
        assert!(!looks_finished(&*device));
    }
}

fn large_file(sink: &mut dyn DataSink, size: u64) -> Result<Content> {
    let mut maker = Maker::new(sink);
    maker.file(NodeId::ROOT, b"large", size, &[(0, size)])?;
    Ok(maker.content)
}

fn many_files(sink: &mut dyn DataSink, count: u32) -> Result<Content> {
    let mut maker = Maker::new(sink);
    for number in 0..count {
        maker.add(NodeId::ROOT, format!("{number}").as_bytes(), Kind::Regular(Data::default()), Vec::new())?;
    }
    Ok(maker.content)
}

#[test]
fn inodes_fit_into_what_is_left_between_files() {
    // without these btrees, groups keep next to nothing in reserve
    let bare = "-m finobt=0,inobtcount=0,rmapbt=0,reflink=0";
    let whole = format!("{bare} -i sparse=0");
    for options in ["", "-b size=1k", bare, &whole] {
        let wish = Wish::new("fragmented", 64, options);
        let device = memory(&wish);
        let mut bytes = HashMap::new();
        let mut kept = None;
        let result = wish.build(&device, |builder| {
            let mut recording = Recording { sink: builder, bytes: &mut bytes };
            let unit = u64::from(recording.block_size());
            // half of a chunk of inodes each, up to the brim, and every second one is given back
            let mut stored = Vec::new();
            while let Ok(piece) = recording.store(16_384 / unit * unit, &mut Ends(1 << 20)) {
                stored.push(piece);
            }
            let mut maker = Maker::new(&mut recording);
            for (number, piece) in stored.into_iter().enumerate() {
                if number % 2 == 0 {
                    maker.sink.release(piece)?;
                    continue;
                }
                let range = Range { block: 0, piece: Piece::Stored(piece) };
                let data = Data { size: piece.blocks * unit, ranges: vec![range] };
                maker.add(NodeId::ROOT, format!("file-{number}").as_bytes(), Kind::Regular(data), Vec::new())?;
            }
            kept = Some(maker.content.clone());
            Ok(maker.content)
        });
        if options == whole {
            let error = result.expect_err("there is no room for a whole chunk").to_string();
            assert!(error.contains("no room for more inodes"), "{error}");
        } else {
            result.unwrap_or_else(|error| panic!("{options}: {error}"));
            compare(&device, &kept.expect("built"), &bytes);
        }
    }
}

/// Ends after some bytes.
struct Ends(usize);

impl Bytes for Ends {
    fn fill(&mut self, buf: &mut [u8]) -> Result<()> {
        self.0 = self.0.checked_sub(buf.len()).ok_or_else(|| Error::source("a file", "it has become shorter"))?;
        buf.fill(7);
        Ok(())
    }
}

#[test]
fn a_source_that_fails_leaves_no_filesystem() {
    let wish = Wish::new("failing", 64, "");
    let device = memory(&wish);
    let result = wish.build(&device, |builder| {
        builder.store(3 << 20, &mut Ends(4 << 20))?;
        builder.store(5 << 20, &mut Ends(4 << 20))?;
        Ok(Content::new(Default::default()))
    });
    assert!(result.is_err_and(|error| error.to_string().contains("shorter")));
    assert!(!looks_finished(&*device));
}

#[test]
fn data_that_are_given_back_are_free_again() {
    let wish = Wish::new("given-back", 64, "");
    let device = memory(&wish);
    let summary = wish.build(&device, |builder| {
        for _ in 0..20 {
            let stored = builder.store(20 << 20, &mut Ends(20 << 20))?;
            builder.release(stored)?;
            assert!(builder.release(stored).is_err());
        }
        Ok(Content::new(Default::default()))
    });
    let empty = wish.build(&memory(&wish), |_| Ok(Content::new(Default::default()))).expect("built");
    assert_eq!(summary.expect("built").fdblocks, empty.fdblocks);
    let forgotten = wish.build(&memory(&wish), |builder| {
        builder.store(1, &mut Ends(1))?;
        Ok(Content::new(Default::default()))
    });
    assert!(matches!(forgotten, Err(Error::Internal(_))));
}

#[test]
fn an_error_at_any_write_leaves_no_filesystem() {
    let wish = Wish::new("cut", 64, "");
    let mut number = 0;
    loop {
        let inner: Arc<dyn Device> = memory(&wish);
        let fault = Fault { operation: Operation::Write, nth: number, effect: Effect::Error, then_dead: true };
        let device: Arc<dyn Device> = Arc::new(FaultDevice::new(inner.clone()).with(fault));
        let result = wish.build(&device, |builder| everything(builder, 1));
        match result {
            Err(error) => assert!(matches!(error, Error::Io { .. }), "{error}"),
            Ok(_) => break,
        }
        assert!(!looks_finished(&*inner), "write {number}");
        number += 1;
    }
    assert!(number > 20, "{number} writes");
}

#[test]
fn names_that_differ_in_case_alone_are_refused_where_it_does_not_count() {
    let wish = Wish::new("case", 64, "-n version=ci");
    let fill = |sink: &mut dyn DataSink| {
        let mut maker = Maker::new(sink);
        for number in 0..100 {
            maker.add(NodeId::ROOT, format!("name-{number}").as_bytes(), Kind::Fifo, Vec::new())?;
        }
        maker.add(NodeId::ROOT, b"NAME-50", Kind::Fifo, Vec::new())?;
        Ok(maker.content)
    };
    let error = wish.build(&memory(&wish), |builder| fill(builder)).expect_err("refused").to_string();
    assert!(error.contains("same name"), "{error}");
}
