//! The decoders, against what xfs_db prints of a filesystem that this machine's kernel has written.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::host_kernel::can_mount;
use crate::printed::{Printed, number};
use crate::reference::{Reference, reference, run, said, unmount};
use xfskit::buffer::{SearchEffort, find_superblock};
use xfskit::device::{FileDevice, OpenFile};
use xfskit::geometry::{BtreeKind, Daddr, Geometry, Ino, inode_root_max};
use xfskit::ondisk::{
    Be32, Be64, OnDisk, RawAgf, RawAgfl, RawAgi, RawAllocRecord, RawBmbtKey, RawBmdrRoot, RawDinode, RawExtent,
    RawInobtKey, RawLongBlockV5, RawRefcountKey, RawRefcountRecord, RawRmapKey, RawRmapRecord, RawShortBlockV5,
    RawSparseInobtRecord, RawSuperblock, Timestamp, crc, refcount_record, rmap_record,
};

/// An image that a kernel wrote, and the reference that prints it.
struct Image {
    folder: tempfile::TempDir,
    geometry: Geometry,
    reference: &'static Reference,
}

impl Image {
    /// Formats an image with small blocks, so that btrees grow, and lets the kernel fill it.
    fn new(reference: &'static Reference) -> Self {
        let parent = std::env::var_os("XFSKIT_WORK").map_or_else(std::env::temp_dir, PathBuf::from);
        let folder =
            tempfile::Builder::new().prefix("xfskit-fields.").tempdir_in(parent).expect("the folder is writable");
        let path = folder.path().join("image");
        File::create(&path).and_then(|file| file.set_len(512 << 20)).expect("the image can be made");
        let made = reference.tool("mkfs.xfs", ["-q", "-b", "size=1024", "-L", "fields"]).arg(&path).output();
        let made = made.expect("mkfs.xfs can be run");
        assert!(made.status.success(), "{}", said(&made));
        let point = folder.path().join("mnt");
        fs::create_dir(&point).expect("the folder is writable");
        run("mount", ["-o".as_ref(), "loop,nouuid".as_ref(), path.as_os_str(), point.as_os_str()]).expect("mounted");
        let filled = fill(&point);
        unmount(&point).expect("unmounted");
        filled.expect("the kernel takes the files");
        let device = FileDevice::open(&path, OpenFile::READ).expect("the image can be opened");
        let found = find_superblock(&device, SearchEffort::Guesses).expect("the superblock is sound");
        Image { folder, geometry: found.geometry, reference }
    }

    fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut file = File::open(self.folder.path().join("image")).expect("the image can be opened");
        let mut bytes = vec![0; len];
        file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(&mut bytes)).expect("the image can be read");
        bytes
    }

    /// What xfs_db prints after `commands`, and the disk address that they lead to.
    fn print(&self, commands: &[String]) -> (Printed, Daddr) {
        let mut command = self.reference.tool("xfs_db", ["-r"]);
        for each in commands.iter().map(String::as_str).chain(["daddr", "print"]) {
            command.args(["-c", each]);
        }
        let output = command.arg(self.folder.path().join("image")).output().expect("xfs_db can be run");
        assert!(output.status.success(), "{}", said(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (first, rest) = text.split_once('\n').expect("daddr prints a line");
        let daddr = first.rsplit(' ').next().and_then(number).unwrap_or_else(|| panic!("daddr said {first}"));
        (Printed::parse(rest.lines()), Daddr(daddr))
    }
}

/// Fragments the free space, shares extents and breaks them up, leaves some unwritten.
fn fill(root: &Path) -> std::io::Result<()> {
    fs::create_dir(root.join("folder"))?;
    let name = |index: usize| root.join("folder").join(format!("file-{index}"));
    for index in 0..600 {
        fs::write(name(index), vec![0x11; index * 37])?;
    }
    (0..600).step_by(2).try_for_each(|index| fs::remove_file(name(index)))?;
    fs::write(root.join("whole"), vec![0x22; 3 << 20])?;
    let copy = root.join("shared");
    let cloned = File::create(&copy).and_then(|to| {
        rustix::fs::ioctl_ficlone(&to, &File::open(root.join("whole"))?)?;
        Ok(to)
    });
    let mut to = cloned?;
    for block in (0..3000).step_by(20) {
        to.seek(SeekFrom::Start(block * 1024))?;
        to.write_all(&[0x33; 2048])?;
        to.sync_all()?;
    }
    let unwritten = File::create(root.join("unwritten"))?;
    rustix::fs::fallocate(&unwritten, rustix::fs::FallocateFlags::empty(), 0, 1 << 20)?;
    std::os::unix::fs::symlink("target", root.join("link"))?;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("device"),
        rustix::fs::FileType::CharacterDevice,
        rustix::fs::Mode::from_raw_mode(0o600),
        rustix::fs::makedev(5, 7),
    )?;
    Ok(())
}

fn structure<T: OnDisk>(bytes: &[u8]) -> &T {
    T::prefix(bytes).expect("invariant: the bytes are long enough").0
}

#[test]
fn decoders_agree_with_xfs_db_about_what_a_kernel_wrote() {
    let Some(reference) = reference() else { return };
    if !can_mount() {
        return;
    }
    let image = Image::new(reference);
    let mut records = 0;
    for agno in 0..image.geometry.agcount {
        headers(&image, agno);
        let trees = [
            ("agf", "bnoroot", BtreeKind::Bnobt),
            ("agf", "cntroot", BtreeKind::Cntbt),
            ("agi", "root", BtreeKind::Inobt),
            ("agi", "free_root", BtreeKind::Finobt),
            ("agf", "rmaproot", BtreeKind::Rmapbt),
            ("agf", "refcntroot", BtreeKind::Refcountbt),
        ];
        for (header, root, kind) in trees {
            records += btree(&image, vec![format!("{header} {agno}"), format!("addr {root}")], kind);
        }
    }
    assert!(records > 300, "only {records} records");
    for path in ["/", "/folder", "/whole", "/shared", "/unwritten", "/link", "/device"] {
        inode(&image, path);
    }
}

fn headers(image: &Image, agno: u32) {
    let sector = |index: u32| {
        let daddr = image.geometry.ag_header_daddr(agno.into(), index).expect("invariant: the group exists");
        image.read(daddr.0 * 512, 512)
    };
    let print = |header: &str| image.print(&[format!("{header} {agno}")]).0;
    assert!(print("sb").compare::<RawSuperblock>(&sector(0), "") >= 55);
    assert_eq!(print("agf").compare::<RawAgf>(&sector(1), ""), 23);
    assert_eq!(print("agi").compare::<RawAgi>(&sector(2), ""), 18);
    let agfl = print("agfl");
    assert_eq!(agfl.compare::<RawAgfl>(&sector(3), ""), 5);
    let entries: Vec<u64> = RawAgfl::entries(&sector(3), true).iter().map(|block| u64::from(block.get())).collect();
    assert_eq!(entries, agfl.elements("bno"));
}

/// Compares the blocks on the way to the first leaf; returns the number of records and keys compared.
fn btree(image: &Image, mut commands: Vec<String>, kind: BtreeKind) -> usize {
    let mut compared = 0;
    loop {
        let (printed, daddr) = image.print(&commands);
        let block = image.read(daddr.0 * 512, 1024);
        assert!(crc::matches(&block, RawShortBlockV5::CRC_OFFSET));
        assert_eq!(printed.compare::<RawShortBlockV5>(&block, ""), 10, "{kind:?}");
        let header: &RawShortBlockV5 = structure(&block);
        assert_eq!(header.base.magic.get(), kind.magic(true));
        let shape = image.geometry.btree(kind);
        let (level, count) = (header.base.level.get(), usize::from(header.base.numrecs.get()));
        let keys = if kind.is_overlapping() { 2 * shape.key_size } else { shape.key_size } as usize;
        let (start, size) = (shape.header_size as usize, if level == 0 { shape.record_size as usize } else { keys });
        let entries = block[start..].chunks(size).take(count);
        let decoded: Vec<_> =
            entries.map(|entry| if level == 0 { record(kind, entry) } else { key(kind, entry) }).collect();
        assert_eq!(decoded, printed.rows(if level == 0 { "recs" } else { "keys" }), "{kind:?} {commands:?}");
        compared += count;
        if level == 0 {
            return compared;
        }
        let pointers = start + shape.node_max as usize * keys;
        let decoded: Vec<_> =
            block[pointers..].chunks(4).take(count).map(|raw| u64::from(structure_be32(raw))).collect();
        assert_eq!(decoded, printed.elements("ptrs"), "{kind:?}");
        commands.push("addr ptrs[1]".to_owned());
    }
}

fn structure_be32(raw: &[u8]) -> u32 {
    Be32::from_bytes(raw.try_into().expect("invariant: four bytes")).get()
}

fn record(kind: BtreeKind, raw: &[u8]) -> Vec<u64> {
    match kind {
        BtreeKind::Bnobt | BtreeKind::Cntbt => {
            let extent = structure::<RawAllocRecord>(raw).decode();
            [extent.startblock, extent.blockcount].map(u64::from).to_vec()
        }
        BtreeKind::Inobt | BtreeKind::Finobt => {
            let chunk = structure::<RawSparseInobtRecord>(raw).decode();
            let counts = [chunk.startino, chunk.holemask.into(), chunk.count.into(), chunk.freecount].map(u64::from);
            [&counts[..], &[chunk.free]].concat()
        }
        BtreeKind::Rmapbt => {
            let rmap = structure::<RawRmapRecord>(raw).decode().expect("invariant: no unknown bits");
            let flags = [rmap.unwritten, rmap.attr_fork, rmap.bmbt_block].map(u64::from);
            let extent = [rmap.startblock, rmap.blockcount].map(u64::from);
            [&extent[..], &[rmap.owner, rmap.offset], &flags].concat()
        }
        _ => {
            let refcount = structure::<RawRefcountRecord>(raw).decode();
            let numbers = [refcount.startblock, refcount.blockcount, refcount.refcount, u32::from(refcount.cow)];
            numbers.map(u64::from).to_vec()
        }
    }
}

fn key(kind: BtreeKind, raw: &[u8]) -> Vec<u64> {
    match kind {
        BtreeKind::Bnobt => record(kind, raw),
        // xfs_db prints what the tree is sorted by first
        BtreeKind::Cntbt => record(kind, raw).into_iter().rev().collect(),
        BtreeKind::Inobt | BtreeKind::Finobt => vec![u64::from(structure::<RawInobtKey>(raw).startino.get())],
        BtreeKind::Rmapbt => raw.chunks(RawRmapKey::SIZE).flat_map(rmap_key).collect(),
        _ => {
            let start = structure::<RawRefcountKey>(raw).startblock.get();
            let cow = start & refcount_record::COW_FLAG;
            [start ^ cow, u32::from(cow != 0)].map(u64::from).to_vec()
        }
    }
}

fn rmap_key(raw: &[u8]) -> Vec<u64> {
    let key: &RawRmapKey = structure(raw);
    let offset = key.offset.get();
    let flags = [rmap_record::OFFSET_UNWRITTEN, rmap_record::OFFSET_ATTR_FORK, rmap_record::OFFSET_BMBT_BLOCK];
    let flags = flags.map(|flag| u64::from(offset & flag != 0));
    [&[u64::from(key.startblock.get()), key.owner.get(), offset & rmap_record::OFFSET_MASK][..], &flags].concat()
}

fn inode(image: &Image, path: &str) {
    let (printed, _) = image.print(&[format!("path {path}")]);
    let ino = printed.value("v3.inumber").and_then(number).expect("version 3 inodes carry their number");
    let offset = image.geometry.ino_offset(Ino(ino)).expect("invariant: the inode exists");
    let bytes = image.read(offset, image.geometry.inodes.size as usize);
    assert!(crc::matches(&bytes, RawDinode::CRC_OFFSET), "{path}");
    let dinode: &RawDinode = structure(&bytes);
    // the extent counters of xfs_db stand in other fields when they are large
    let kept = printed.fields.iter().filter(|field| !field.0.ends_with("extents")).cloned().collect();
    let plain = Printed { fields: kept, ..Printed::default() };
    assert_eq!(plain.compare::<RawDinode>(&bytes, "core."), 18, "{path}");
    assert_eq!(plain.compare::<RawDinode>(&bytes, "v3."), 7, "{path}");
    assert_eq!(plain.compare::<RawDinode>(&bytes, ""), 1, "{path}");
    assert_eq!(printed.value("core.nextents").and_then(number), Some(dinode.data_extents()), "{path}");
    assert_eq!(printed.value("core.naextents").and_then(number), Some(u64::from(dinode.attr_extents())), "{path}");
    let times = [("core.atime", dinode.core.atime), ("core.mtime", dinode.core.mtime), ("v3.crtime", dinode.crtime)];
    for (name, raw) in times {
        let time = dinode.timestamp(raw);
        assert_eq!(printed.value(&format!("{name}.sec")), Some(&*calendar(time)), "{path} {name}");
        let nanoseconds = printed.value(&format!("{name}.nsec")).and_then(number);
        assert_eq!(nanoseconds, Some(u64::from(time.nanoseconds)), "{path} {name}");
    }
    data_fork(image, path, &printed, &bytes[dinode.core.literal_offset()..], dinode);
}

fn data_fork(image: &Image, path: &str, printed: &Printed, literal: &[u8], dinode: &RawDinode) {
    let fork = &literal[..dinode.core.fork_offset()];
    match path {
        "/device" => {
            assert_eq!(printed.value("u3.dev").and_then(number), Some(u64::from(structure_be32(&fork[..4]))));
        }
        "/whole" | "/unwritten" => {
            let rows = printed.rows("u3.bmx");
            assert!(!rows.is_empty() && rows == extents(fork, rows.len()), "{path}");
        }
        "/shared" => {
            let root: &RawBmdrRoot = structure(fork);
            let count = usize::from(root.numrecs.get());
            let keys = fork[RawBmdrRoot::SIZE..].chunks(RawBmbtKey::SIZE).take(count);
            let keys: Vec<_> = keys.map(|raw| vec![structure::<RawBmbtKey>(raw).startoff.get()]).collect();
            assert_eq!(keys, printed.rows("u3.bmbt.keys"), "{path}");
            let start =
                RawBmdrRoot::SIZE + inode_root_max(BtreeKind::Bmbt, fork.len(), false) as usize * RawBmbtKey::SIZE;
            let pointers = fork[start..].chunks(8).take(count).map(be64).collect::<Vec<_>>();
            assert_eq!(pointers, printed.elements("u3.bmbt.ptrs"), "{path}");
            extent_leaf(image, path);
        }
        _ => {}
    }
}

fn extent_leaf(image: &Image, path: &str) {
    let (printed, daddr) = image.print(&[format!("path {path}"), "addr u3.bmbt.ptrs[1]".to_owned()]);
    let block = image.read(daddr.0 * 512, 1024);
    assert_eq!(printed.compare::<RawLongBlockV5>(&block, ""), 10);
    let rows = printed.rows("recs");
    assert!(rows.len() > 10 && rows == extents(&block[RawLongBlockV5::SIZE..], rows.len()));
}

fn extents(raw: &[u8], count: usize) -> Vec<Vec<u64>> {
    let extents = raw.chunks(RawExtent::SIZE).take(count).map(|raw| structure::<RawExtent>(raw).decode());
    extents.map(|e| vec![e.startoff, e.startblock, u64::from(e.blockcount), u64::from(e.unwritten)]).collect()
}

fn be64(raw: &[u8]) -> u64 {
    Be64::from_bytes(raw.try_into().expect("invariant: eight bytes")).get()
}

/// A time as `ctime` writes it in UTC.
fn calendar(time: Timestamp) -> String {
    run("date", ["-u".to_owned(), "-d".to_owned(), format!("@{}", time.seconds), "+%a %b %e %H:%M:%S %Y".to_owned()])
        .expect("date can be run")
}
