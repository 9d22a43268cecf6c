//! Every field of superblock, AGF, AGI, AGFL and realtime superblock, and what follows from them, against what xfs_db
//! of xfsprogs 7.2 printed of the same sectors. `testdata/headers/make` made the samples.

#[allow(dead_code, reason = "tests/oracle uses the rest of it")]
#[path = "oracle/printed.rs"]
mod printed;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use printed::{Printed, number};

use xfskit::geometry::{
    AgBlock, AgNumber, BtreeKind, Daddr, FsBlock, Geometry, Ino, RgBlock, RgNumber, RtBlock, RtExtent,
    SuperblockContext,
};
use xfskit::ondisk::{
    OnDisk, RawAgf, RawAgfl, RawAgi, RawDquotBlock, RawRtBlockHeader, RawRtSuperblock, RawSuperblock, RtWordForm, crc,
};

struct Sample {
    name: String,
    sectors: Vec<u8>,
    /// What xfs_db printed, by the command that printed it.
    printed: BTreeMap<String, Vec<String>>,
}

impl Sample {
    fn load(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("invariant: samples are readable");
        let mut printed: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut command = String::new();
        for line in text.lines() {
            match line.strip_prefix("# ") {
                Some(new) => new.clone_into(&mut command),
                None => printed.entry(command.clone()).or_default().push(line.to_owned()),
            }
        }
        let sectors = std::fs::read(path.with_extension("bin")).expect("invariant: each text has its sectors");
        let name = path.file_stem().expect("invariant: a file has a name").to_string_lossy().into_owned();
        Sample { name, sectors, printed }
    }

    fn sector(&self, index: usize) -> &[u8] {
        let size = self.sectors.len() / 4;
        &self.sectors[index * size..(index + 1) * size]
    }

    fn superblock(&self) -> &RawSuperblock {
        RawSuperblock::prefix(self.sector(0)).expect("invariant: a sector holds a superblock").0
    }

    fn geometry(&self) -> Geometry {
        Geometry::from_superblock(self.superblock())
            .unwrap_or_else(|verdict| panic!("{}: {:?}", self.name, verdict.failures()))
    }

    fn lines(&self, command: &str) -> &[String] {
        self.printed.get(command).map_or(&[], Vec::as_slice)
    }
}

fn samples() -> Vec<Sample> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/headers");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("invariant: the samples are part of the sources")
        .map(|entry| entry.expect("invariant: a folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 17, "samples are missing");
    paths.iter().map(|path| Sample::load(path)).collect()
}

/// Compares a structure with the lines that `command` printed; returns the number of fields compared.
fn compare<T: OnDisk>(sample: &Sample, sector: &[u8], command: &str) -> usize {
    Printed::parse(sample.lines(command).iter().map(String::as_str)).compare::<T>(sector, "")
}

#[test]
fn free_lists_equal_what_xfs_db_prints() {
    for sample in samples() {
        let printed = Printed::parse(sample.lines("agfl").iter().map(String::as_str)).elements("bno");
        let crc = sample.geometry().features.has_crc();
        let decoded: Vec<_> =
            RawAgfl::entries(sample.sector(3), crc).iter().map(|block| u64::from(block.get())).collect();
        assert!(decoded.len() > 100 && decoded == printed, "{}: {decoded:?}", sample.name);
    }
}

#[test]
fn fields_of_headers_equal_what_xfs_db_prints() {
    for sample in samples() {
        let crc = sample.superblock().is_v5();
        assert!(compare::<RawSuperblock>(&sample, sample.sector(0), "sb") >= 55, "{}", sample.name);
        assert!(compare::<RawAgf>(&sample, sample.sector(1), "agf") >= 23, "{}", sample.name);
        assert!(compare::<RawAgi>(&sample, sample.sector(2), "agi") >= 18, "{}", sample.name);
        assert_eq!(compare::<RawAgfl>(&sample, sample.sector(3), "agfl"), if crc { 5 } else { 0 }, "{}", sample.name);
    }
}

#[test]
fn checksums_are_those_of_the_tools() {
    for sample in samples().iter().filter(|sample| sample.superblock().is_v5()) {
        let offsets = [RawSuperblock::CRC_OFFSET, RawAgf::CRC_OFFSET, RawAgi::CRC_OFFSET, RawAgfl::CRC_OFFSET];
        for (index, offset) in offsets.into_iter().enumerate() {
            assert!(crc::matches(sample.sector(index), offset), "{}: sector {index}", sample.name);
        }
    }
}

#[test]
fn the_realtime_superblock_equals_what_xfs_db_prints() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/headers");
    let sample = Sample::load(&folder.join("groups.txt"));
    let block = std::fs::read(folder.join("groups.rt.bin")).expect("invariant: the sample is part of the sources");
    assert_eq!(compare::<RawRtSuperblock>(&sample, &block, "rtsb"), 6);
    assert!(crc::matches(&block, RawRtSuperblock::CRC_OFFSET));
}

#[test]
fn features_have_the_names_that_xfs_db_lists() {
    for sample in samples() {
        let (_, listed) = sample.lines("version")[0].split_once(" = ").expect("invariant: version prints a list");
        let features = sample.geometry().features;
        assert_eq!(features.version_string(), listed, "{}", sample.name);
        assert!(features.unknown().is_empty(), "{}", sample.name);
        for feature in features.list() {
            assert!(features.has(feature));
        }
    }
}

/// The number after `key=` in the text of xfs_info.
fn info(sample: &Sample, section: &str, key: &str) -> u64 {
    let lines = sample.lines("info").iter();
    let start = lines.skip_while(|line| !line.starts_with(section));
    let mut own = start.enumerate().take_while(|(index, line)| *index == 0 || line.starts_with(' '));
    own.find_map(|(_, line)| {
        let (_, after) = line.split_once(&format!(" {key}="))?;
        after.split([' ', ',']).next()?.parse().ok()
    })
    .unwrap_or_else(|| panic!("{}: no {section} {key}", sample.name))
}

#[test]
fn sizes_equal_those_of_xfs_info() {
    for sample in samples() {
        let geometry = sample.geometry();
        let groups = geometry.realtime.groups;
        let expected = [
            ("meta-data", "isize", u64::from(geometry.inodes.size)),
            ("meta-data", "agcount", u64::from(geometry.agcount)),
            ("meta-data", "agsize", u64::from(geometry.agblocks)),
            ("meta-data", "sectsz", u64::from(geometry.sectsize)),
            ("data", "bsize", u64::from(geometry.blocksize)),
            ("data", "blocks", geometry.dblocks),
            ("data", "imaxpct", u64::from(geometry.imax_pct)),
            ("data", "sunit", u64::from(geometry.stripe_unit)),
            ("data", "swidth", u64::from(geometry.stripe_width)),
            ("naming", "bsize", u64::from(geometry.directory.blksize)),
            ("log", "blocks", u64::from(geometry.log.blocks)),
            ("log", "version", u64::from(geometry.log.version)),
            ("log", "sectsz", u64::from(geometry.log.sectsize)),
            ("log", "sunit", u64::from(geometry.log.stripe_unit / geometry.blocksize)),
            ("realtime", "extsz", u64::from(geometry.realtime.extent_blocks * geometry.blocksize)),
            ("realtime", "blocks", geometry.realtime.blocks),
            ("realtime", "rtextents", geometry.realtime.extents),
            ("realtime", "rgcount", groups.map_or(0, |groups| u64::from(groups.count))),
            ("realtime", "start", geometry.realtime.start),
            ("realtime", "reserved", geometry.realtime.reserved),
        ];
        for (section, key, value) in expected {
            assert_eq!(info(&sample, section, key), value, "{}: {section} {key}", sample.name);
        }
        for feature in geometry.features.list().chain([xfskit::geometry::Feature::Rmapbt]) {
            let name = feature.name();
            let line = sample.lines("info").iter().find(|line| line.contains(&format!(" {name}=")));
            if let Some(line) = line.filter(|_| name != "attr") {
                let on = line.contains(&format!(" {name}=1"));
                assert_eq!(on, geometry.features.has(feature), "{}: {name} in {line}", sample.name);
            }
        }
    }
}

#[test]
fn btree_sizes_equal_those_of_btheight() {
    let kinds = [
        ("bnobt", BtreeKind::Bnobt),
        ("cntbt", BtreeKind::Cntbt),
        ("inobt", BtreeKind::Inobt),
        ("finobt", BtreeKind::Finobt),
        ("bmapbt", BtreeKind::Bmbt),
        ("refcountbt", BtreeKind::Refcountbt),
        ("rmapbt", BtreeKind::Rmapbt),
    ];
    for sample in samples() {
        let geometry = sample.geometry();
        let mut heights = sample.lines("btheight").iter().filter(|line| line.ends_with("total"));
        for (name, kind) in kinds {
            let Some(line) = sample.lines("btheight").iter().find(|line| line.starts_with(&format!("{name}:"))) else {
                // btheight reports nothing but the levels of btrees with few records
                continue;
            };
            let numbers: Vec<u64> = line.split([' ', '-']).filter_map(|word| word.parse().ok()).collect();
            let btree = geometry.btree(kind);
            let expected = [geometry.blocksize, btree.leaf_min, btree.node_min].map(u64::from);
            assert_eq!(numbers, expected, "{}: {line}", sample.name);
            let height = heights.next().and_then(|line| line.split(' ').next()).and_then(number);
            assert_eq!(height, Some(u64::from(btree.levels_for_records(1_000_000))), "{}: {name}", sample.name);
        }
    }
}

#[test]
fn conversions_equal_those_of_xfs_db() {
    let mut compared = 0;
    for sample in samples() {
        for (command, lines) in sample.printed.iter().filter(|(command, _)| command.contains("convert ")) {
            let words: Vec<_> = command.split(' ').collect();
            let result = lines[0].split(' ').next().and_then(number);
            let ours = convert(&sample.geometry(), &words);
            assert_eq!(ours, result, "{}: {command}", sample.name);
            compared += 1;
        }
    }
    assert!(compared > 200, "only {compared} conversions");
}

fn convert(geometry: &Geometry, words: &[&str]) -> Option<u64> {
    let value = |index: usize| number(words[index]).expect("invariant: commands are of this form");
    let value32 = |index: usize| u32::try_from(value(index)).expect("invariant: group numbers are small");
    match words {
        ["convert", "agno", _, "agbno", _, to] => {
            let (agno, agbno) = (AgNumber(value32(2)), AgBlock(value32(4)));
            match *to {
                "fsblock" => geometry.fsb(agno, agbno).map(|fsb| fsb.0),
                "daddr" => geometry.ag_daddr(agno, agbno).map(|daddr| daddr.0),
                _ => geometry.ino(agno, geometry.agbno_agino(agbno)?).map(|ino| ino.0),
            }
        }
        ["convert", "fsblock", _, "daddr"] => geometry.fsb_daddr(FsBlock(value(2))).map(|daddr| daddr.0),
        ["convert", "ino", _, to] => {
            let ino = Ino(value(2));
            let parts = geometry.ino_parts(ino)?;
            match *to {
                "agno" => Some(u64::from(parts.agno.0)),
                "agino" => Some(u64::from(parts.agino.0)),
                "agblock" => Some(u64::from(parts.agbno.0)),
                "fsblock" => geometry.ino_fsb(ino).map(|fsb| fsb.0),
                _ => geometry.ino_offset(ino).map(|offset| offset / 512),
            }
        }
        ["convert", "daddr", _, "fsblock"] => geometry.daddr_fsb(Daddr(value(2))).map(|fsb| fsb.0),
        ["convert", "daddr", _, "agblock"] => {
            geometry.daddr_parts(Daddr(value(2))).map(|(_, agbno)| u64::from(agbno.0))
        }
        ["rtconvert", "rtblock", _, "daddr"] => geometry.rtb_daddr(RtBlock(value(2))).map(|daddr| daddr.0),
        ["rtconvert", "rtblock", _, "rtx"] => geometry.rtb_extent(RtBlock(value(2))).map(|(rtx, _)| rtx.0),
        ["rtconvert", "rtx", _, "rtblock"] => geometry.rtx_rtb(RgNumber(0), RtExtent(value(2))).map(|rtb| rtb.0),
        ["rtconvert", "rgno", _, "rgbno", _, to] => {
            // without groups xfs_db takes every group for the section itself
            let rgno = if geometry.realtime.groups.is_some() { RgNumber(value32(2)) } else { RgNumber(0) };
            let rtb = geometry.rtb(rgno, RgBlock(value32(4)))?;
            if *to == "rtblock" { Some(rtb.0) } else { geometry.rtb_daddr(rtb).map(|daddr| daddr.0) }
        }
        ["rtconvert", "daddr", _, to] => {
            let rtb = geometry.daddr_rtb(Daddr(value(2)))?;
            match (*to, geometry.rtb_parts(rtb)) {
                ("rtblock", _) => Some(rtb.0),
                ("rgno", parts) => Some(parts.map_or(0, |(rgno, _)| u64::from(rgno.0))),
                (_, parts) => Some(parts.map_or(0, |(_, rgbno)| u64::from(rgbno.0))),
            }
        }
        _ => panic!("a new conversion in the samples: {words:?}"),
    }
}

#[test]
fn the_root_directory_is_where_mkfs_puts_it() {
    for sample in samples() {
        let geometry = sample.geometry();
        assert_eq!(geometry.expected_rootino(), Some(geometry.rootino), "{}", sample.name);
        assert!(geometry.is_valid_ino(geometry.rootino), "{}", sample.name);
        let agf = RawAgf::prefix(sample.sector(1)).expect("invariant: a sector holds an AGF").0;
        let agi = RawAgi::prefix(sample.sector(2)).expect("invariant: a sector holds an AGI").0;
        let roots = [
            (BtreeKind::Bnobt, agf.bno_root.get()),
            (BtreeKind::Cntbt, agf.cnt_root.get()),
            (BtreeKind::Inobt, agi.root.get()),
            (BtreeKind::Finobt, agi.free_root.get()),
            (BtreeKind::Rmapbt, agf.rmap_root.get()),
            (BtreeKind::Refcountbt, agf.refcount_root.get()),
        ];
        for (kind, root) in roots {
            assert_eq!(geometry.initial_root(kind).map_or(0, |block| block.0), root, "{}: {kind:?}", sample.name);
        }
        assert_eq!(agf.flcount.get(), geometry.min_freelist(1, 1, 1), "{}", sample.name);
        assert_eq!(Some(agf.length.get()), geometry.ag_blocks(AgNumber(0)), "{}", sample.name);
    }
}

#[test]
fn an_external_log_is_only_right_with_a_device() {
    for sample in samples() {
        let external = sample.name == "external-log";
        for claimed in [false, true] {
            let context = SuperblockContext { external_log: Some(claimed), ..SuperblockContext::default() };
            let geometry = Geometry::from_superblock_in(sample.superblock(), context);
            assert_eq!(geometry.is_ok(), claimed == external, "{}", sample.name);
        }
    }
}

#[test]
fn quota_records_equal_what_xfs_db_prints() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/dquots");
    let block = std::fs::read(folder.join("block.bin")).expect("invariant: the sample is part of the sources");
    let text = std::fs::read_to_string(folder.join("block.txt")).expect("invariant: the sample is part of the sources");
    let mut limited = 0;
    for section in text.split("# ").skip(1) {
        let (id, printed) = section.split_once('\n').expect("invariant: a line with the id");
        let id: usize = id.parse().expect("invariant: an id");
        let slot = &block[id * RawDquotBlock::SIZE..][..RawDquotBlock::SIZE];
        let printed = Printed::parse(printed.lines());
        assert_eq!(printed.compare::<RawDquotBlock>(slot, "diskdq."), 19, "user {id}");
        assert_eq!(printed.compare::<RawDquotBlock>(slot, ""), 3, "user {id}");
        assert!(crc::matches(slot, RawDquotBlock::CRC_OFFSET), "user {id}");
        let (dquot, _) = RawDquotBlock::prefix(slot).expect("invariant: a slot holds a record");
        limited += u32::from(dquot.diskdq.blk_hardlimit.get() == 512);
    }
    assert_eq!(limited, 1);
}

#[test]
fn realtime_bitmap_and_summary_equal_what_xfs_db_prints() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/headers");
    let sample = Sample::load(&folder.join("groups.txt"));
    let words_per_block = sample.geometry().realtime.words_per_block;
    for (name, words, magic) in
        [("bitmap", "rtwords", RawRtBlockHeader::BITMAP_MAGIC), ("summary", "suminfo", RawRtBlockHeader::SUMMARY_MAGIC)]
    {
        let block = std::fs::read(folder.join(format!("groups.{name}.bin"))).expect("invariant: part of the sources");
        let printed = Printed::parse(sample.lines(name).iter().map(String::as_str));
        assert_eq!(printed.compare::<RawRtBlockHeader>(&block, ""), 6, "{name}");
        assert!(crc::matches(&block, RawRtBlockHeader::CRC_OFFSET), "{name}");
        let (header, _) = RawRtBlockHeader::prefix(&block).expect("invariant: a block holds a header");
        assert_eq!(header.magic.get(), magic, "{name}");
        let decoded = (0..words_per_block as usize).map(|index| RtWordForm::Groups.word(&block, index).map(u64::from));
        assert_eq!(decoded.collect::<Option<Vec<_>>>(), Some(printed.elements(words)), "{name}");
    }
}
