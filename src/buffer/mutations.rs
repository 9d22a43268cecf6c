//! Each check by a case of its own: a sound block of a filesystem that Linux has written (`testdata/blocks`), changed in
//! one place and given a right CRC, must fail exactly that check.

use std::path::{Path, PathBuf};

use super::*;
use crate::error::{Check, Rule, Verdict};
use crate::geometry::{BtreeKind, Daddr, Geometry, Ino, Lsn};
use crate::ondisk::attr_leaf::RawAttr3LeafHdr;
use crate::ondisk::da_block::RawDa3NodeHdr;
use crate::ondisk::dir_data::{RawDir3BlkHdr, RawDir3DataHdr};
use crate::ondisk::dir_leaf::{RawDir3FreeHdr, RawDir3LeafHdr};
use crate::ondisk::remote::{RawAttr3RmtHdr, RawDsymlinkHdr};
use crate::ondisk::{
    Field, FieldKind, OnDisk, RawAgf, RawAgfl, RawAgi, RawDinode, RawDquotBlock, RawLongBlockV5, RawRtBlockHeader,
    RawRtSuperblock, RawShortBlock, RawShortBlockV5, RawSuperblock, crc,
};

/// A point of the log that no sample has reached.
const LOG_HEAD: Lsn = Lsn(0x7000_0000_0000_0000);
/// A number that no field of a sample holds.
const STRANGE: u64 = 0x7fff_ffff_ffff_fffe;

/// A sound block, and how to ask for it.
struct Sample {
    verifier: Verifier,
    request: Request,
    bytes: Vec<u8>,
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/blocks").join(name)
}

fn kind_of(name: &str) -> BlockKind {
    let name = name.split('-').next().expect("invariant: a name has a first part");
    let btree = BtreeKind::ALL.into_iter().find(|kind| format!("{kind:?}") == name).map(BlockKind::Btree);
    btree.unwrap_or_else(|| match name {
        "Superblock" => BlockKind::Superblock,
        "Agf" => BlockKind::Agf,
        "Agi" => BlockKind::Agi,
        "Agfl" => BlockKind::Agfl,
        "InodeCluster" => BlockKind::InodeCluster,
        "Dquots" => BlockKind::Dquots,
        "DirBlock" => BlockKind::DirBlock,
        "DirData" => BlockKind::DirData,
        "DirLeaf1" => BlockKind::DirLeaf1,
        "DirHash" => BlockKind::DirHash,
        "DirFree" => BlockKind::DirFree,
        "AttrHash" => BlockKind::AttrHash,
        "AttrRemote" => BlockKind::AttrRemote,
        "Symlink" => BlockKind::Symlink,
        "RtSuperblock" => BlockKind::RtSuperblock,
        "RtBitmap" => BlockKind::RtBitmap,
        "RtSummary" => BlockKind::RtSummary,
        other => unreachable!("invariant: {other} is a kind"),
    })
}

/// The sample of this name, `FOLDER/NAME`.
fn sample(path: &str) -> Sample {
    let (from, name) = path.split_once('/').expect("invariant: a folder and a name");
    let read = |name: &str| std::fs::read(folder(from).join(name)).expect("a sample");
    let sb = read("Superblock.bin");
    let geometry = Geometry::assume(RawSuperblock::prefix(&sb).expect("invariant: 512 bytes").0);
    let index = String::from_utf8(read("index")).expect("invariant: text");
    let line = index.lines().find(|line| line.split(' ').next() == Some(name)).expect("invariant: a line a sample");
    let words: Vec<&str> = line.split(' ').collect();
    let bytes = read(&format!("{name}.bin"));
    let len = u32::try_from(bytes.len()).expect("invariant: a short block");
    let mut request = Request::of_len(kind_of(name), Daddr(words[1].parse().expect("invariant: a number")), len);
    if let Ok(ino) = words[2].parse() {
        request = request.of_inode(Ino(ino));
    }
    Sample { verifier: Verifier::new(geometry).with_log_head(LOG_HEAD), request, bytes }
}

/// Where `path` (`core.mode`, `unlinked.3`) lies: offset and size.
fn place(fields: &[Field], path: &str) -> (usize, usize) {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let field = fields.iter().find(|field| field.name == first).unwrap_or_else(|| panic!("no field {path}"));
    match (field.kind, rest) {
        (FieldKind::Struct(inner), Some(rest)) => {
            let (offset, size) = place(inner, rest);
            (field.offset + offset, size)
        }
        (FieldKind::Array { size, .. }, Some(index)) => {
            (field.offset + size * index.parse::<usize>().expect("invariant: an index"), size)
        }
        _ => (field.offset, field.size),
    }
}

/// Stores the low bytes of `value` at a field of a structure that starts at `start`.
fn set(bytes: &mut [u8], start: usize, fields: &[Field], path: &str, value: u64) {
    let (offset, size) = place(fields, path);
    let stored = value.to_be_bytes();
    let used = size.min(8);
    bytes[start + offset..start + offset + used].copy_from_slice(&stored[8 - used..]);
}

fn checks(verdict: &Verdict) -> Vec<Check> {
    let mut checks: Vec<Check> = verdict.failures().iter().map(|failure| failure.check).collect();
    checks.dedup();
    checks
}

/// One change of a block, and the check that it fails.
type Case = (&'static str, u64, (&'static str, Rule));

/// What all blocks with this identity have in common.
fn identity(prefix: &str, owner: Option<&'static str>, blkno: bool) -> Vec<(String, (&'static str, Rule))> {
    let mut cases = vec![
        (format!("{prefix}crc"), ("crc", Rule::Crc)),
        (format!("{prefix}uuid"), ("uuid", Rule::Uuid)),
        (format!("{prefix}lsn"), ("lsn", Rule::Lsn)),
    ];
    cases.extend(owner.map(|owner| (format!("{prefix}{owner}"), (owner, Rule::Owner))));
    cases.extend(blkno.then(|| (format!("{prefix}blkno"), ("blkno", Rule::Address))));
    cases
}

/// Runs the cases on a block whose structure is named `structure` and starts with `fields`.
fn run(
    path: &str,
    structure: &'static str,
    fields: &[Field],
    identity: &[(String, (&'static str, Rule))],
    cases: &[Case],
) {
    let sample = sample(path);
    assert_eq!(checks(&sample.verifier.verify(&sample.request, &sample.bytes)), [], "{path} as it is");
    let own = cases.iter().map(|(field, value, expected)| ((*field).to_owned(), *value, *expected));
    let shared = identity.iter().map(|(field, expected)| (field.clone(), STRANGE, *expected));
    for (field, value, (name, rule)) in shared.chain(own) {
        let mut bytes = sample.bytes.clone();
        set(&mut bytes, 0, fields, &field, value);
        if rule != Rule::Crc {
            sample.verifier.stamp(sample.request.kind, &mut bytes, None);
        }
        let failed = checks(&sample.verifier.verify(&sample.request, &bytes));
        assert_eq!(failed, [Check::new(structure, name, rule)], "{path}: {field} = {value}");
    }
}

#[test]
fn group_headers() {
    let seqno = identity("", Some("seqno"), false);
    let lsn = [("crc".to_owned(), ("crc", Rule::Crc)), ("lsn".to_owned(), ("lsn", Rule::Lsn))];
    let sb: [Case; 3] = [
        ("magicnum", 1, ("magicnum", Rule::Magic)),
        ("imax_pct", 101, ("imax_pct", Rule::Range)),
        ("inprogress", 1, ("inprogress", Rule::Flags)),
    ];
    run("groups/Superblock", "sb", RawSuperblock::FIELDS, &lsn, &sb);
    let agf: [Case; 15] = [
        ("magicnum", 1, ("magicnum", Rule::Magic)),
        ("versionnum", 2, ("versionnum", Rule::Version)),
        ("length", 1 << 31, ("length", Rule::Range)),
        ("flfirst", 119, ("flfirst", Rule::Range)),
        ("fllast", 119, ("fllast", Rule::Range)),
        ("flcount", 120, ("flcount", Rule::Range)),
        ("freeblks", 1 << 31, ("freeblks", Rule::Range)),
        ("longest", 1 << 31, ("longest", Rule::Mismatch)),
        ("bno_level", 0, ("bno_level", Rule::Range)),
        ("cnt_level", 99, ("cnt_level", Rule::Range)),
        ("btreeblks", 1 << 31, ("btreeblks", Rule::Range)),
        ("rmap_blocks", 1 << 31, ("rmap_blocks", Rule::Range)),
        ("rmap_level", 0, ("rmap_level", Rule::Range)),
        ("refcount_blocks", 1 << 31, ("refcount_blocks", Rule::Range)),
        ("refcount_level", 99, ("refcount_level", Rule::Range)),
    ];
    run("groups/Agf", "agf", RawAgf::FIELDS, &seqno, &agf);
    let agi: [Case; 6] = [
        ("magicnum", 1, ("magicnum", Rule::Magic)),
        ("versionnum", 2, ("versionnum", Rule::Version)),
        ("length", 1 << 31, ("length", Rule::Range)),
        ("level", 0, ("level", Rule::Range)),
        ("free_level", 99, ("free_level", Rule::Range)),
        ("unlinked.3", 1, ("unlinked", Rule::Range)),
    ];
    run("groups/Agi", "agi", RawAgi::FIELDS, &seqno, &agi);
    run("groups/Agfl", "agfl", RawAgfl::FIELDS, &seqno, &[("magicnum", 1, ("magicnum", Rule::Magic))]);
    let mut agfl = sample("groups/Agfl");
    RawAgfl::entries_mut(&mut agfl.bytes, true)[100] = (1 << 31).into();
    agfl.verifier.stamp(BlockKind::Agfl, &mut agfl.bytes, None);
    let failed = checks(&agfl.verifier.verify(&agfl.request, &agfl.bytes));
    assert_eq!(failed, [Check::new("agfl", "bno", Rule::Range)]);
}

#[test]
fn version_4_has_fewer_checks() {
    let agf: [Case; 2] = [("seqno", 1, ("seqno", Rule::Owner)), ("magicnum", 1, ("magicnum", Rule::Magic))];
    run("v4/Agf", "agf", RawAgf::FIELDS, &[], &agf);
    run("v4/Agi", "agi", RawAgi::FIELDS, &[], &[("seqno", 1, ("seqno", Rule::Owner))]);
    let block: [Case; 3] = [
        ("magic", 1, ("magic", Rule::Magic)),
        ("level", 99, ("level", Rule::Range)),
        ("rightsib", 1, ("rightsib", Rule::Range)),
    ];
    run("v4/Bnobt-0", "bnobt", RawShortBlock::FIELDS, &[], &block);
    // without CRC, a change of what has no rule goes unnoticed
    let mut agfl = sample("v4/Agfl");
    agfl.bytes[0] ^= 0xff;
    assert!(agfl.verifier.verify(&agfl.request, &agfl.bytes).is_sound());
}

#[test]
fn btree_blocks() {
    let own: [Case; 5] = [
        ("base.magic", 1, ("magic", Rule::Magic)),
        ("base.level", 99, ("level", Rule::Range)),
        ("base.numrecs", 9999, ("numrecs", Rule::Count)),
        ("base.leftsib", 0, ("leftsib", Rule::Range)),
        ("base.rightsib", 0, ("rightsib", Rule::Range)),
    ];
    let shared = identity("", Some("owner"), true);
    let short = ["Bnobt", "Cntbt", "Inobt", "Finobt", "Rmapbt", "Refcountbt"];
    for (name, structure) in short.into_iter().zip(["bnobt", "cntbt", "inobt", "finobt", "rmapbt", "refcountbt"]) {
        run(&format!("groups/{name}-0"), structure, RawShortBlockV5::FIELDS, &shared, &own);
    }
    run("quota/Rmapbt-1", "rmapbt", RawShortBlockV5::FIELDS, &shared, &own);
    run("filled/Bmbt-0", "bmbt", RawLongBlockV5::FIELDS, &shared, &own);
    run("groups/Rtrmapbt-0", "rtrmapbt", RawLongBlockV5::FIELDS, &shared, &own);
    let block = sample("quota/Rmapbt-1");
    let wrong_level = checks(&block.verifier.verify(&block.request.clone().at_level(0), &block.bytes));
    assert_eq!(wrong_level, [Check::new("rmapbt", "level", Rule::Mismatch)]);
    let itself = block.request.daddr().0 / 8;
    let mut bytes = block.bytes.clone();
    set(&mut bytes, 0, RawShortBlockV5::FIELDS, "base.rightsib", itself);
    block.verifier.stamp(block.request.kind, &mut bytes, None);
    let failed = checks(&block.verifier.verify(&block.request, &bytes));
    assert_eq!(failed, [Check::new("rmapbt", "rightsib", Rule::Range)]);
}

#[test]
fn reference_counts_of_realtime_groups() {
    // the samples' trees fit into their inodes: an empty block of the other realtime tree, renamed
    let mut block = sample("groups/Rtrmapbt-0");
    block.request.kind = BlockKind::Btree(BtreeKind::Rtrefcountbt);
    set(&mut block.bytes, 0, RawLongBlockV5::FIELDS, "base.magic", u64::from(BtreeKind::Rtrefcountbt.magic(true)));
    set(&mut block.bytes, 0, RawLongBlockV5::FIELDS, "base.numrecs", 0);
    block.verifier.stamp(block.request.kind, &mut block.bytes, None);
    assert!(block.verifier.verify(&block.request, &block.bytes).is_sound());
    set(&mut block.bytes, 0, RawLongBlockV5::FIELDS, "base.numrecs", 9999);
    block.verifier.stamp(block.request.kind, &mut block.bytes, None);
    let failed = checks(&block.verifier.verify(&block.request, &block.bytes));
    assert_eq!(failed, [Check::new("rtrefcountbt", "numrecs", Rule::Count)]);
}

#[test]
fn directory_blocks() {
    let own: [Case; 1] = [("hdr.magic", 1, ("magic", Rule::Magic))];
    let shared = identity("hdr.", Some("owner"), true);
    run("filled/DirBlock", "dir2_data", RawDir3DataHdr::FIELDS, &shared, &own);
    run("filled/DirData", "dir2_data", RawDir3DataHdr::FIELDS, &shared, &own);
    let shared_hash = identity("info.", Some("owner"), true);
    let leaf: [Case; 3] = [
        ("info.hdr.magic", 1, ("magic", Rule::Magic)),
        ("count", 9999, ("count", Rule::Count)),
        ("stale", 77, ("stale", Rule::Mismatch)),
    ];
    run("filled/DirLeaf1", "dir2_leaf", RawDir3LeafHdr::FIELDS, &shared_hash, &leaf);
    run("filled/DirHash-3dff", "dir2_leaf", RawDir3LeafHdr::FIELDS, &shared_hash, &leaf);
    run("filled/DirHash-3ebe", "dir2_leaf", RawDa3NodeHdr::FIELDS, &shared_hash, &leaf[..1]);
    node("filled/DirHash-3ebe");
    run(
        "filled/DirFree",
        "dir2_free",
        RawDir3BlkHdr::FIELDS,
        &identity("", Some("owner"), true),
        &[("magic", 1, ("magic", Rule::Magic))],
    );
    let free: [Case; 2] = [("nvalid", 9999, ("nvalid", Rule::Count)), ("nused", 0, ("nused", Rule::Mismatch))];
    run("filled/DirFree", "dir2_free", RawDir3FreeHdr::FIELDS, &[], &free);
}

/// The fields of nodes, which directories and attributes share, have a name of their own in reports.
fn node(path: &str) {
    let cases: [Case; 3] = [
        ("count", 9999, ("count", Rule::Count)),
        ("count", 0, ("count", Rule::Range)),
        ("level", 0, ("level", Rule::Range)),
    ];
    run(path, "da_node", RawDa3NodeHdr::FIELDS, &[], &cases);
}

/// Changes bytes of a block and gives it a right CRC; the checks that it fails then.
fn after(sample: &Sample, change: impl FnOnce(&mut [u8])) -> Vec<Check> {
    let mut bytes = sample.bytes.clone();
    change(&mut bytes);
    sample.verifier.stamp(sample.request.kind, &mut bytes, None);
    checks(&sample.verifier.verify(&sample.request, &bytes))
}

#[test]
fn entries_of_a_directory() {
    let block = sample("filled/DirBlock");
    let first = RawDir3DataHdr::SIZE;
    let check = |field, rule| vec![Check::new("dir2_data", field, rule)];
    // the first entry: inode number, length of the name, name, type, tag
    assert_eq!(after(&block, |bytes| bytes[first] = 0xff), check("inumber", Rule::Range));
    assert_eq!(after(&block, |bytes| bytes[first + 10] = 99), check("ftype", Rule::Range));
    assert_eq!(after(&block, |bytes| bytes[first + 15] ^= 8), check("tag", Rule::Mismatch));
    assert_eq!(after(&block, |bytes| bytes[first + 9] = b'x'), check("leaf", Rule::Mismatch));
    let tail = block.bytes.len() - 8;
    let stale = after(&block, |bytes| bytes[tail + 7] ^= 1);
    assert!(stale.contains(&Check::new("dir2_data", "tail.stale", Rule::Mismatch)));
    assert_eq!(after(&block, |bytes| bytes[tail] = 0x70), check("tail.count", Rule::Count));
    let free = RawDir3BlkHdr::SIZE;
    assert!(after(&block, |bytes| bytes[free + 2] = 0).contains(&check("bestfree", Rule::Mismatch)[0]));
}

#[test]
fn attribute_blocks() {
    let shared = identity("info.", Some("owner"), true);
    let magic: [Case; 1] = [("info.hdr.magic", 1, ("magic", Rule::Magic))];
    run("filled/AttrHash-3ebe", "attr_leaf", RawDa3NodeHdr::FIELDS, &shared, &magic);
    node("filled/AttrHash-3ebe");
    let leaf: [Case; 3] = [
        ("info.hdr.magic", 1, ("magic", Rule::Magic)),
        ("count", 9999, ("count", Rule::Count)),
        ("usedbytes", 0xffff, ("usedbytes", Rule::Range)),
    ];
    run("filled/AttrHash-3bee", "attr_leaf", RawAttr3LeafHdr::FIELDS, &shared, &leaf);
    let block = sample("filled/AttrHash-3bee");
    let (freemap, _) = place(RawAttr3LeafHdr::FIELDS, "freemap");
    let unaligned = after(&block, |bytes| bytes[freemap + 3] |= 1);
    assert_eq!(unaligned, [Check::new("attr_leaf", "freemap", Rule::Range)]);
    let overlapping = after(&block, |bytes| bytes.copy_within(freemap..freemap + 4, freemap + 4));
    assert_eq!(overlapping, [Check::new("attr_leaf", "freemap", Rule::Mismatch)]);
    let unordered = after(&block, |bytes| bytes[RawAttr3LeafHdr::SIZE..][..4].fill(0xff));
    assert_eq!(unordered, [Check::new("attr_leaf", "hashval", Rule::Order)]);
}

#[test]
fn blocks_of_plain_bytes() {
    let mut remote = identity("", Some("owner"), true);
    // values are not written through the log
    remote.retain(|case| case.1.1 != Rule::Lsn);
    let value: [Case; 3] = [
        ("magic", 1, ("magic", Rule::Magic)),
        ("bytes", 9999, ("bytes", Rule::Range)),
        ("offset", 65536, ("offset", Rule::Range)),
    ];
    run("filled/AttrRemote", "attr3_rmt", RawAttr3RmtHdr::FIELDS, &remote, &value);
    let link: [Case; 2] = [("magic", 1, ("magic", Rule::Magic)), ("bytes", 1024, ("bytes", Rule::Range))];
    let shared = identity("", Some("owner"), true);
    run("filled/Symlink", "symlink", RawDsymlinkHdr::FIELDS, &shared, &link);
    let target = sample("filled/Symlink");
    let failed = after(&target, |bytes| set(bytes, 0, RawDsymlinkHdr::FIELDS, "offset", 2000));
    assert!(failed.contains(&Check::new("symlink", "offset", Rule::Range)));
}

#[test]
fn realtime_blocks() {
    let magic: [Case; 1] = [("magic", 1, ("magic", Rule::Magic))];
    for name in ["RtBitmap", "RtSummary"] {
        let shared = identity("", Some("owner"), true);
        run(&format!("groups/{name}"), "rtbuf_blkinfo", RawRtBlockHeader::FIELDS, &shared, &magic);
    }
    let sb: [Case; 6] = [
        ("magicnum", 1, ("magicnum", Rule::Magic)),
        ("crc", STRANGE, ("crc", Rule::Crc)),
        ("uuid", STRANGE, ("uuid", Rule::Uuid)),
        ("meta_uuid", STRANGE, ("uuid", Rule::Uuid)),
        ("fname", STRANGE, ("fname", Rule::Mismatch)),
        ("pad", 1, ("pad", Rule::Padding)),
    ];
    run("groups/RtSuperblock", "rtsb", RawRtSuperblock::FIELDS, &[], &sb);
    let block = sample("groups/RtSuperblock");
    let failed = after(&block, |bytes| *bytes.last_mut().expect("invariant: not empty") = 1);
    assert_eq!(failed, [Check::new("rtsb", "rest", Rule::Padding)]);
}

#[test]
fn dquots() {
    let block = sample("quota/Dquots");
    let slot = RawDquotBlock::SIZE;
    let case = |path: &'static str, value: u64, field: &'static str, rule: Rule| {
        let mut bytes = block.bytes.clone();
        set(&mut bytes, slot, RawDquotBlock::FIELDS, path, value);
        if rule != Rule::Crc {
            crc::stamp(&mut bytes[slot..2 * slot], RawDquotBlock::CRC_OFFSET);
        }
        let failed = checks(&block.verifier.verify(&block.request, &bytes));
        assert_eq!(failed, [Check::new("dquot", field, rule)], "{path}");
    };
    case("crc", STRANGE, "crc", Rule::Crc);
    case("uuid", STRANGE, "uuid", Rule::Uuid);
    case("diskdq.magic", 1, "magic", Rule::Magic);
    case("diskdq.version", 2, "version", Rule::Version);
    case("diskdq.dqtype", 0x09, "type", Rule::Flags);
    case("diskdq.dqtype", 0x03, "type", Rule::Range);
    case("diskdq.id", 99, "id", Rule::Mismatch);
    let mut bytes = block.bytes.clone();
    for (softlimit, count, timer, field) in [
        ("diskdq.blk_softlimit", "diskdq.bcount", "diskdq.btimer", "btimer"),
        ("diskdq.ino_softlimit", "diskdq.icount", "diskdq.itimer", "itimer"),
        ("diskdq.rtb_softlimit", "diskdq.rtbcount", "diskdq.rtbtimer", "rtbtimer"),
    ] {
        bytes.copy_from_slice(&block.bytes);
        set(&mut bytes, slot, RawDquotBlock::FIELDS, softlimit, 1);
        set(&mut bytes, slot, RawDquotBlock::FIELDS, count, 2);
        set(&mut bytes, slot, RawDquotBlock::FIELDS, timer, 0);
        crc::stamp(&mut bytes[slot..2 * slot], RawDquotBlock::CRC_OFFSET);
        let failed = checks(&block.verifier.verify(&block.request, &bytes));
        assert_eq!(failed, [Check::new("dquot", field, Rule::Mismatch)]);
    }
    // the defaults of id 0 have no bigtime form
    let mut bytes = block.bytes.clone();
    set(&mut bytes, 0, RawDquotBlock::FIELDS, "diskdq.dqtype", 0x81);
    crc::stamp(&mut bytes[..slot], RawDquotBlock::CRC_OFFSET);
    let failed = checks(&block.verifier.verify(&block.request, &bytes));
    assert_eq!(failed, [Check::new("dquot", "type", Rule::Mismatch)]);
}

/// An inode, changes of it, and the check that it fails then.
type InodeCase = (u64, &'static [(&'static str, u64)], &'static str, Rule);

/// Inode number `ino` of a sample's first cluster, changed in some fields; the checks that it fails.
fn inode_after(cluster: &Sample, ino: u64, changes: &[(&str, u64)]) -> Vec<Check> {
    let size = usize::try_from(cluster.verifier.geometry().inodes.size).expect("invariant: small");
    let index = usize::try_from(ino % 64).expect("invariant: small");
    let mut bytes = cluster.bytes[index * size..(index + 1) * size].to_vec();
    for (path, value) in changes {
        set(&mut bytes, 0, RawDinode::FIELDS, path, *value);
    }
    if !changes.iter().any(|change| change.0 == "crc") {
        crc::stamp(&mut bytes, RawDinode::CRC_OFFSET);
    }
    checks(&cluster.verifier.verify_inode(Ino(ino), &bytes))
}

#[test]
fn inodes() {
    let cluster = sample("filled/InodeCluster");
    let (dir, local_dir, file, btree, link) = (128, 131, 132, 133, 135);
    let cases: &[InodeCase] = &[
        (file, &[("core.magic", 1)], "magic", Rule::Magic),
        (file, &[("crc", STRANGE)], "crc", Rule::Crc),
        (file, &[("uuid", STRANGE)], "uuid", Rule::Uuid),
        (file, &[("ino", 77)], "ino", Rule::Address),
        (file, &[("core.version", 4)], "version", Rule::Version),
        (file, &[("core.metatype", 1)], "metatype", Rule::Padding),
        (file, &[("core.size", 1 << 63)], "size", Rule::Range),
        (dir, &[("core.size", 0)], "size", Rule::Mismatch),
        (dir, &[("core.size", 20)], "size", Rule::Mismatch),
        (local_dir, &[("core.size", 5000)], "size", Rule::Mismatch),
        (link, &[("core.size", 0)], "size", Rule::Mismatch),
        (file, &[("core.anextents", 1)], "anextents", Rule::Padding),
        (file, &[("core.big_nextents", 1), ("core.nblocks", 0)], "nblocks", Rule::Mismatch),
        (local_dir, &[("core.nblocks", 1)], "nblocks", Rule::Mismatch),
        (file, &[("core.flags", 1)], "flags", Rule::Mismatch),
        (
            dir,
            &[("core.big_nextents", 1 << 40), ("core.format", 3), ("core.nblocks", 1 << 41)],
            "nextents",
            Rule::Range,
        ),
        (file, &[("core.big_nextents", 99), ("core.nblocks", 99)], "nextents", Rule::Count),
        (btree, &[("core.big_nextents", 1 << 50), ("core.nblocks", 1 << 51)], "nextents", Rule::Range),
        (file, &[("core.forkoff", 42)], "forkoff", Rule::Range),
        (file, &[("core.format", 4)], "format", Rule::Range),
        (file, &[("core.format", 5), ("core.forkoff", 0), ("core.aformat", 2)], "format", Rule::Mismatch),
        (local_dir, &[("core.big_nextents", 1), ("core.nblocks", 1)], "nextents", Rule::Mismatch),
        (local_dir, &[("core.mode", 0o100_644)], "format", Rule::Mismatch),
        (local_dir, &[("core.mode", 0o010_644)], "format", Rule::Mismatch),
        (file, &[("core.aformat", 3), ("core.forkoff", 0)], "aformat", Rule::Mismatch),
        (
            file,
            &[("core.forkoff", 0), ("core.aformat", 2), ("core.nextents", 1), ("core.nblocks", 9999)],
            "anextents",
            Rule::Mismatch,
        ),
        (file, &[("core.flags", 1 << 11)], "extsize", Rule::Mismatch),
        (file, &[("core.extsize", 8)], "extsize", Rule::Mismatch),
        (file, &[("core.flags", 1 << 11), ("core.extsize", 1 << 22)], "extsize", Rule::Range),
        (file, &[("core.flags", 1 << 12), ("core.extsize", 8)], "flags", Rule::Mismatch),
        (file, &[("cowextsize", 8)], "cowextsize", Rule::Mismatch),
        (file, &[("flags2", 0x1c)], "cowextsize", Rule::Mismatch),
        (dir, &[("flags2", 0x1a)], "flags2", Rule::Mismatch),
    ];
    for ino in [dir, local_dir, file, btree, link] {
        assert_eq!(inode_after(&cluster, ino, &[]), [], "{ino} as it is");
    }
    for (ino, changes, field, rule) in cases {
        let failed = inode_after(&cluster, *ino, changes);
        assert_eq!(failed, [Check::new("dinode", field, *rule)], "{ino}: {changes:?}");
    }
    assert!(inode_after(&cluster, file, &[("core.mode", 0o050_000)]).contains(&Check::new(
        "dinode",
        "mode",
        Rule::Range
    )));
}

#[test]
fn metadata_inodes() {
    let cluster = sample("groups/InodeCluster");
    let (metadir, device) = (129, 134);
    let cases: &[InodeCase] = &[
        (metadir, &[("core.metatype", 9)], "metatype", Rule::Range),
        (metadir, &[("core.mode", 0o040_755)], "mode", Rule::Mismatch),
        (metadir, &[("core.dmstate", 1)], "dmevmask", Rule::Padding),
        (metadir, &[("core.gid", 1)], "uid", Rule::Mismatch),
        (metadir, &[("core.flags", 0)], "flags", Rule::Flags),
        (metadir, &[("flags2", 0x39)], "flags2", Rule::Mismatch),
        (device, &[("core.format", 2)], "format", Rule::Mismatch),
    ];
    for ino in [metadir, device] {
        assert_eq!(inode_after(&cluster, ino, &[]), [], "{ino} as it is");
    }
    for (ino, changes, field, rule) in cases {
        let failed = inode_after(&cluster, *ino, changes);
        assert_eq!(failed, [Check::new("dinode", field, *rule)], "{ino}: {changes:?}");
    }
}

#[test]
fn features_decide_which_inode_flags_there_are() {
    let mut cluster = sample("filled/InodeCluster");
    let mut geometry = cluster.verifier.geometry().clone();
    geometry.features.ro_compat = 0;
    geometry.features.incompat &= 1;
    cluster.verifier = Verifier::new(geometry);
    let flags = |bits: u64| {
        let mut changes = vec![("flags2", bits)];
        if bits & 0x10 == 0 {
            changes.push(("core.big_nextents", 0));
        }
        inode_after(&cluster, 132, &changes)
    };
    for bits in [0x2, 0x4, 0x8, 0x10] {
        assert!(flags(bits).contains(&Check::new("dinode", "flags2", Rule::Flags)), "{bits:#x}");
    }
    assert_eq!(flags(0), []);
}

#[test]
fn clusters() {
    for (path, version) in [("filled/InodeCluster", 2), ("v4/InodeCluster", 3)] {
        let cluster = sample(path);
        let size = usize::try_from(cluster.verifier.geometry().inodes.size).expect("invariant: small");
        assert_eq!(checks(&cluster.verifier.verify(&cluster.request, &cluster.bytes)), []);
        let cases = [
            ("core.magic", 1, Rule::Magic),
            ("core.version", version, Rule::Version),
            ("core.next_unlinked", 1, Rule::Range),
        ];
        for (field, value, rule) in cases {
            let mut bytes = cluster.bytes.clone();
            set(&mut bytes, size, RawDinode::FIELDS, field, value);
            let failed = cluster.verifier.verify(&cluster.request, &bytes);
            assert_eq!(checks(&failed), [Check::new("dinode", &field["core.".len()..], rule)]);
            assert!(failed.failures().iter().all(|failure| failure.place.inode.is_some_and(|ino| ino % 64 == 1)));
        }
    }
}
