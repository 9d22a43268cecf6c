//! Journals that this program writes, judged by others: `xfs_logprint -t` 7.2 reads each of them, and Linux replays them.

#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // sizes and patterns of test files
#![allow(clippy::print_stdout, reason = "a test's report is its output")]

#[allow(dead_code, reason = "shared with the other oracle tests")]
#[path = "oracle/reference.rs"]
mod reference;

#[allow(clippy::cast_possible_truncation, reason = "shared with the tests of forms, of patterns of bytes")]
#[path = "forms/populate.rs"]
mod populate;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reference::{Reference, missing, mkfs, reference, run, said, unmount};
use tempfile::TempDir;
use xfskit::btree::Step;
use xfskit::buffer::{BlockKind, SearchEffort};
use xfskit::device::{Device, FileDevice, OpenFile};
use xfskit::error::{DeviceRole, Result};
use xfskit::forms::{ChunkInodes, for_each_inode_chunk};
use xfskit::geometry::{AgBlock, AgNumber, Daddr, Geometry, Ino, Lsn};
use xfskit::image::{Image, ImageDevices};
use xfskit::journal::{
    BufferChange, BufferKey, Cil, CilOptions, Commit, DoneBody, FormatItem, InodeChange, IntentBody, ItemKey,
    LogPosition, LogState, LogWriter, LogWriterOptions, Order, Regions, TakenCheckpoint, WriterLayout,
};
use xfskit::ondisk::log_buffer::{BufType, CHUNK};
use xfskit::ondisk::log_inode::{InodeLogFormat, field};
use xfskit::ondisk::log_intent::{FreeItem, FreedExtent};
use xfskit::ondisk::log_item::LogItemType;
use xfskit::ondisk::{LittleEndian, OnDisk, RawDinode, RawSuperblock};

/// How a filesystem is made, and how its journal is written.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    mkfs: &'static [&'static str],
    external: bool,
    record_size: u32,
    layout: WriterLayout,
    /// Kernels that mount it; the first is what this machine's must be like.
    kernels: &'static [&'static str],
}

/// Features that the oldest kernel knows.
const OLD: &[&str] =
    &["-m", "rmapbt=1,bigtime=0,inobtcount=0,autofsck=0", "-i", "nrext64=0,exchange=0", "-n", "parent=0"];
const ALL: &[&str] = &["5.10", "6.1", "6.12", "7.3"];

const CASES: &[Case] = &[
    Case { name: "usual", mkfs: OLD, external: false, record_size: 32_768, layout: WriterLayout::USUAL, kernels: ALL },
    Case { name: "large", mkfs: OLD, external: false, record_size: 262_144, layout: WriterLayout::USUAL, kernels: ALL },
    // older kernels take the CRC of 32-bit x86 for a torn write
    Case {
        name: "i386",
        mkfs: OLD,
        external: false,
        record_size: 16_384,
        layout: WriterLayout::I386,
        kernels: &["6.12", "7.3"],
    },
    Case {
        name: "stripe",
        mkfs: &["-l", "su=64k", "-m", "rmapbt=0,autofsck=0", "-i", "exchange=0", "-n", "parent=0"],
        external: false,
        record_size: 65_536,
        layout: WriterLayout::USUAL,
        kernels: &["6.1", "6.12", "7.3"],
    },
    Case {
        name: "unit-of-3",
        mkfs: &["-l", "su=12k", "-m", "rmapbt=0,autofsck=0", "-i", "exchange=0", "-n", "parent=0"],
        external: false,
        record_size: 32_768,
        layout: WriterLayout::USUAL,
        kernels: &["6.12", "7.3"],
    },
    Case {
        name: "now",
        mkfs: &[],
        external: false,
        record_size: 131_072,
        layout: WriterLayout::USUAL,
        kernels: &["7.3"],
    },
    Case {
        name: "external",
        mkfs: OLD,
        external: true,
        record_size: 65_536,
        layout: WriterLayout::USUAL,
        kernels: &[],
    },
    Case {
        name: "v4",
        mkfs: &["-m", "crc=0", "-l", "version=1"],
        external: false,
        record_size: 32_768,
        layout: WriterLayout::USUAL,
        kernels: &["5.10", "6.1", "6.12"],
    },
    Case {
        name: "v4-i386",
        mkfs: &["-m", "crc=0", "-l", "version=2"],
        external: false,
        record_size: 16_384,
        layout: WriterLayout::I386,
        kernels: &["6.12"],
    },
    Case {
        name: "big-endian",
        mkfs: OLD,
        external: false,
        record_size: 32_768,
        layout: WriterLayout::BIG_ENDIAN,
        kernels: &[],
    },
];

/// An image whose journal is written.
struct Made {
    data: PathBuf,
    log: Option<PathBuf>,
}

/// A folder in memory where there is one: the journals are made of some thousand writes that are each flushed.
fn folder() -> TempDir {
    let memory = PathBuf::from("/dev/shm");
    let usual = || if memory.is_dir() { memory.clone() } else { std::env::temp_dir() };
    let parent = std::env::var_os("XFSKIT_WORK").map_or_else(usual, PathBuf::from);
    tempfile::Builder::new().prefix("xfskit-logwriter.").tempdir_in(parent).expect("the folder can be written")
}

fn device(path: &Path, role: DeviceRole) -> Arc<FileDevice> {
    let how = OpenFile::WRITE.on(role);
    Arc::new(FileDevice::open(path, how).expect("the file can be opened"))
}

impl Made {
    fn new(case: &Case, folder: &Path) -> Self {
        let data = folder.join(case.name);
        let log = case.external.then(|| folder.join("log"));
        let mut command = mkfs(case.mkfs.iter().copied());
        if let Some(log) = &log {
            command.args(["-l", &format!("logdev={},size=4128b", log.display())]);
            std::fs::File::create(log).and_then(|file| file.set_len(4128 << 12)).expect("a sparse file");
        } else {
            command.args(["-l", "size=4128b"]);
        }
        std::fs::File::create(&data).and_then(|file| file.set_len(640 << 20)).expect("a sparse file");
        let output = command
            .args(["-q", "-f", "--unsupported", "-d", "agcount=8"])
            .arg(&data)
            .output()
            .expect("mkfs can be started");
        assert!(output.status.success(), "{}: {}", case.name, said(&output));
        Made { data, log }
    }

    fn open(&self) -> Image {
        let mut devices = ImageDevices::of_data(device(&self.data, DeviceRole::Data));
        devices.log = self.log.as_ref().map(|log| device(log, DeviceRole::Log) as _);
        Image::open(devices, SearchEffort::Guesses).expect("a filesystem")
    }
}

/// Metadata as it is to become: the primary superblock, the root directory's inode, and the headers of all groups.
struct Contents {
    geometry: Geometry,
    superblock: Vec<u8>,
    root: Vec<u8>,
    cluster: (Daddr, u32, u32),
    /// Where each header lies, what it is, and its bytes.
    headers: BTreeMap<BufferKey, (BufType, Vec<u8>)>,
}

/// The time that the root directory is to have: whole seconds, so that both forms of timestamps tell it alike.
const MTIME: i32 = 1_234_567_890;

impl Contents {
    fn of(image: &Image) -> Self {
        let geometry = image.geometry().clone();
        let cache = image.cache();
        let read = |daddr: Daddr, len: u32| {
            let mut bytes = vec![0; len as usize];
            cache.read_raw(daddr.0 * 512, &mut bytes).expect("on the device");
            bytes
        };
        let (_, root) = cache.inode(geometry.rootino).expect("a sound inode");
        let ino = geometry.ino_parts(geometry.rootino).expect("an inode of this filesystem");
        let (agno, agbno) = geometry.fsb_parts(geometry.ino_fsb(geometry.rootino).expect("a block")).expect("a block");
        let daddr = geometry.ag_daddr(agno, agbno).expect("a block");
        let offset = ino.index * geometry.inodes.size;
        let mut headers = BTreeMap::new();
        for agno in geometry.ag_numbers() {
            let kinds = [
                (BlockKind::Superblock, BufType::Sb),
                (BlockKind::Agf, BufType::Agf),
                (BlockKind::Agi, BufType::Agi),
                (BlockKind::Agfl, BufType::Agfl),
            ];
            for (kind, buf_type) in kinds.into_iter().skip(usize::from(agno == AgNumber(0))) {
                let block = cache.read_header(kind, agno).expect("a header");
                let bytes = block.bytes().to_vec();
                headers.insert(BufferKey::of(block.request()), (buf_type, bytes));
            }
        }
        let superblock = read(Daddr(0), geometry.sectsize);
        Contents { cluster: (daddr, geometry.inodes.cluster_size, offset), superblock, root, headers, geometry }
    }

    /// Changes the label, and owner and times of the root directory.
    fn change(&mut self, round: u32) {
        let (superblock, _) = RawSuperblock::prefix_mut(&mut self.superblock).expect("a sector");
        superblock.fname = [0; 12];
        let label = format!("round {round}");
        superblock.fname[..label.len()].copy_from_slice(label.as_bytes());
        let (root, _) = RawDinode::prefix_mut(&mut self.root).expect("an inode");
        root.core.uid = (1000 + round).into();
        let time = xfskit::ondisk::Timestamp { seconds: i64::from(MTIME), nanoseconds: 0 };
        root.core.mtime = time.encode(root.has_bigtime()).expect("a time of both forms");
    }

    fn superblock_key(&self) -> BufferKey {
        BufferKey { device: DeviceRole::Data, daddr: Daddr(0), len: self.geometry.sectsize }
    }

    fn root_change(&self) -> InodeChange<'_> {
        let (daddr, cluster_len, offset) = self.cluster;
        InodeChange {
            ino: self.geometry.rootino,
            daddr,
            cluster_len,
            offset,
            bytes: &self.root,
            fields: field::CORE | field::DDATA,
        }
    }

    /// The whole buffer, as one run.
    fn buffer<T>(&self, key: &BufferKey, done: impl FnOnce(&BufferChange<'_>, &[u8]) -> T) -> T {
        let (kind, bytes) = match self.headers.get(key) {
            Some((kind, bytes)) => (*kind, bytes),
            None => (BufType::Sb, &self.superblock),
        };
        let fragments = [xfskit::buffer::Fragment { daddr: key.daddr, len: key.len }];
        let runs = [(0, bytes.len() / CHUNK)];
        done(&BufferChange { fragments: &fragments, kind, flags: 0, runs: &runs }, bytes)
    }

    fn commit(&self, layout: WriterLayout) -> Commit {
        let mut commit = Commit::default();
        for key in self.headers.keys().copied().chain([self.superblock_key()]) {
            commit.relogged.push((ItemKey::Buffer(key), self.buffer(&key, |change, _| change.size())));
        }
        let size = self.root_change().size(&self.geometry, layout.width).expect("a sound inode");
        commit.relogged.push((ItemKey::Inode(self.geometry.rootino), size));
        commit
    }
}

impl FormatItem for Contents {
    fn format(&self, key: &ItemKey, regions: &mut Regions) -> Result<()> {
        match key {
            ItemKey::Buffer(key) => self.buffer(key, |change, bytes| change.format(bytes, regions)),
            _ => self.root_change().format(&self.geometry, regions),
        }
    }
}

/// Checkpoints that are written: enough for the log to go round.
const ROUNDS: u32 = 150;
/// So many of the last ones are not in place, as the tail tells.
const KEPT: usize = 3;

/// Writes checkpoints without writing anything back: each logs all of the contents anew, so that the last one is what counts.
/// Gives the items by type that are in the log between tail and head.
fn write_journal(case: &Case, made: &Made) -> BTreeMap<&'static str, u64> {
    let image = made.open();
    let scan = image.journal().expect("a sound log");
    assert_eq!(scan.state, LogState::Clean);
    let mut contents = Contents::of(&image);
    let devices = image.devices();
    let (log, others) = match &devices.log {
        Some(log) => (log.clone(), vec![devices.data.clone()]),
        None => (devices.data.clone(), Vec::new()),
    };
    let options = LogWriterOptions { record_size: case.record_size, layout: case.layout };
    let geometry = &contents.geometry;
    let mut writer = LogWriter::open(log, others, geometry, LogPosition::after(&scan), options).expect("a sound log");
    let mut cil = Cil::new(CilOptions { whiteouts: false, ..CilOptions::of(geometry) });
    let mut written: Vec<xfskit::journal::WrittenCheckpoint> = Vec::new();
    let first = writer.head();
    for round in 0..ROUNDS {
        contents.change(round);
        // large regions, which do not matter in the end: an intent that is answered, half of them in the next checkpoint
        let extents = (0..4000).map(|at| FreedExtent { start: 64 + at, len: 1 }).collect();
        let intent = IntentBody::Free(FreeItem { kind: LogItemType::Efi, id: 0x7000 + u64::from(round), extents });
        let mut commit = contents.commit(case.layout);
        commit.intents.push(intent.format(case.layout).expect("it fits"));
        cil.commit(commit).expect("sound");
        let push = |cil: &mut Cil, writer: &mut LogWriter, written: &mut Vec<_>| {
            let taken: TakenCheckpoint = cil.take().expect("not empty");
            let tail = tail(written, writer.head());
            written.push(writer.write_checkpoint(&taken, &contents, tail).expect("there is room"));
        };
        if round % 2 == 0 {
            push(&mut cil, &mut writer, &mut written);
        }
        let done = DoneBody::of(&intent).format(case.layout).expect("it fits");
        cil.commit(Commit { dones: vec![done], ..Commit::default() }).expect("sound");
        if round % 2 == 1 {
            push(&mut cil, &mut writer, &mut written);
        }
    }
    // the last round's answer is in the log by then
    assert!(cil.is_empty() && writer.head().cycle() > first.cycle(), "{:?} {:?}", writer.head(), written.last());
    let mut items = BTreeMap::new();
    let kept = &written[written.len() - KEPT..];
    for (kind, total) in kept.iter().flat_map(|checkpoint| checkpoint.totals.iter().collect::<Vec<_>>()) {
        *items.entry(kind.name()).or_insert(0) += total.items;
    }
    assert_eq!(image.journal().expect("a sound log").tail, kept[0].start.block());
    items
}

/// The tail that a checkpoint states behind these.
fn tail(written: &[xfskit::journal::WrittenCheckpoint], head: Lsn) -> Lsn {
    written.iter().rev().take(KEPT - 1).next_back().map_or(head, |oldest| oldest.start)
}

/// The items by type that `xfs_logprint -t` 7.2 shows.
fn their_items(reference: &Reference, made: &Made) -> BTreeMap<&'static str, u64> {
    let mut command = reference.tool("xfs_logprint", ["-t"]);
    if let Some(log) = &made.log {
        command.arg("-l").arg(log);
    }
    let output = command.arg(&made.data).output().expect("the reference can be started");
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    let mut items = BTreeMap::new();
    for line in text.lines() {
        let Some((name, rest)) = line.trim().split_once(':') else { continue };
        if rest.starts_with(" cnt:") {
            let name = if name == "INO" { "INODE" } else { name };
            let kind = LogItemType::ALL.into_iter().find(|kind| kind.name() == name).expect("a type");
            *items.entry(kind.name()).or_insert(0) += 1;
        }
    }
    items
}

#[test]
fn xfs_logprint_reads_every_journal() {
    let Some(reference) = reference() else { return };
    let folder = folder();
    for case in CASES {
        let made = Made::new(case, folder.path());
        let items = write_journal(case, &made);
        assert!(items["BUF"] > 90 && items["EFI"] > 0, "{}: {items:?}", case.name);
        // it refuses big-endian writers, as kernels of other machines do
        if case.layout.order == Order::Little {
            assert_eq!(their_items(reference, &made), items, "{}", case.name);
        }
    }
}

/// Whether the filesystem is what the journal said, clean, and in order.
fn judge(reference: &Reference, case: &Case, made: &Made, who: &str) {
    let image = made.open();
    assert_eq!(image.journal().expect("a sound log").state, LogState::Clean, "{}: {who}", case.name);
    let geometry = image.geometry();
    assert_eq!(&geometry.label[..9], b"round 149", "{}: {who}", case.name);
    let (root, _) = image.cache().inode(geometry.rootino).expect("a sound inode");
    assert_eq!(root.core.uid.get(), 1000 + ROUNDS - 1, "{}: {who}", case.name);
    assert_eq!(root.timestamp(root.core.mtime).seconds, i64::from(MTIME), "{}: {who}", case.name);
    drop(image);
    let mut repair = reference.tool("xfs_repair", ["-n"]);
    if let Some(log) = &made.log {
        repair.arg("-l").arg(log);
    }
    let output = repair.arg(&made.data).output().expect("the reference can be started");
    assert!(output.status.success(), "{}: {who}: {}", case.name, said(&output));
}

#[test]
fn this_machines_kernel_replays_them() {
    let Some(reference) = reference() else { return };
    let folder = folder();
    let point = folder.path().join("point");
    std::fs::create_dir(&point).expect("the folder can be written");
    let Some(()) = mounted(&Made::new(&CASES[0], folder.path()).data, &point, |_| Ok(())) else { return };
    for case in CASES.iter().filter(|case| case.layout.order == Order::Little && !case.name.starts_with("v4")) {
        let made = Made::new(case, folder.path());
        write_journal(case, &made);
        let mut options = "loop".to_owned();
        let looped =
            made.log.as_ref().map(|log| run("losetup", ["--find".as_ref(), "--show".as_ref(), log.as_os_str()]));
        let looped = looped.transpose().map(|device| device.map(|device| device.trim().to_owned()));
        let Ok(looped) = looped else { return missing("a loop device") };
        if let Some(device) = &looped {
            options.push_str(&format!(",logdev={device}"));
        }
        let arguments =
            ["-t".as_ref(), "xfs".as_ref(), "-o".as_ref(), options.as_ref(), made.data.as_os_str(), point.as_os_str()];
        let mounted = run("mount", arguments);
        let unmounted = mounted.as_ref().map(|_| unmount(&point));
        if let Some(device) = &looped {
            run("losetup", ["--detach", device]).expect("it is not in use any more");
        }
        match unmounted {
            Ok(unmounted) => unmounted.expect("it is not in use"),
            Err(_) if case.name == "now" => continue,
            Err(why) => panic!("{}: {why}", case.name),
        }
        judge(reference, case, &made, "this machine's kernel");
    }
}

#[test]
fn kernels_old_and_new_replay_them() {
    let Some(reference) = reference() else { return };
    let folder = folder();
    let script = folder.path().join("script");
    let mount = "n=0\nfor d in /dev/vd?; do mount -t xfs $d /mnt/d && umount /mnt/d || { echo FAILED $d; n=1; }; done\nexit $n\n";
    std::fs::write(&script, mount).expect("the folder can be written");
    // a boot takes ten seconds
    let all = std::env::var_os("XFSKIT_FULL").is_some();
    for kernel in ["5.10", "7.3", "6.12", "6.1"].into_iter().take(if all { 4 } else { 2 }) {
        if !reference.has_kernel(kernel) {
            missing(&format!("Linux {kernel} for the guest (run tests/oracle/setup as root)"));
            continue;
        }
        let cases: Vec<&Case> = CASES.iter().filter(|case| case.kernels.contains(&kernel)).collect();
        let made: Vec<Made> = cases.iter().map(|case| Made::new(case, folder.path())).collect();
        for (case, made) in cases.iter().zip(&made) {
            write_journal(case, made);
        }
        let mut guest = reference.guest();
        guest.args(["-s", "-k", kernel]).arg(&script).args(made.iter().map(|made| &made.data));
        let output = guest.output().expect("the guest can be started");
        let names: Vec<&str> = cases.iter().map(|case| case.name).collect();
        assert!(output.status.success(), "Linux {kernel}, {names:?}: {}", String::from_utf8_lossy(&output.stdout));
        for (case, made) in cases.iter().zip(&made) {
            judge(reference, case, made, kernel);
        }
    }
}

/// Inodes of a filesystem, and where each lies.
struct Inodes {
    geometry: Geometry,
    found: BTreeMap<Ino, Vec<u8>>,
}

/// All parts that an inode can have.
const ALL_FIELDS: u32 =
    field::CORE | field::DDATA | field::DEXT | field::DBROOT | field::DEV | field::ADATA | field::AEXT | field::ABROOT;

impl Inodes {
    /// Those in use.
    fn of(image: &Image) -> Self {
        let mut found = BTreeMap::new();
        for agno in image.geometry().ag_numbers() {
            let mut take = |chunk: Result<ChunkInodes<'_>>| {
                let used = chunk?.inodes().filter(|inode| !inode.is_free).collect::<Vec<_>>();
                found.extend(used.iter().map(|inode| (inode.ino, inode.bytes.to_vec())));
                Ok(Step::Continue)
            };
            for_each_inode_chunk(image.cache(), agno, &mut take).expect("sound btrees");
        }
        Inodes { geometry: image.geometry().clone(), found }
    }

    fn change(&self, ino: Ino) -> InodeChange<'_> {
        let geometry = &self.geometry;
        let (agno, agbno) = geometry.fsb_parts(geometry.ino_fsb(ino).expect("a block")).expect("a block");
        let first = agbno.0 / geometry.inodes.cluster_blocks * geometry.inodes.cluster_blocks;
        let index = geometry.ino_parts(ino).expect("an inode of this filesystem").index;
        InodeChange {
            ino,
            daddr: geometry.ag_daddr(agno, AgBlock(first)).expect("a block"),
            cluster_len: geometry.inodes.cluster_size,
            offset: (agbno.0 - first) * geometry.blocksize + index * geometry.inodes.size,
            bytes: &self.found[&ino],
            fields: ALL_FIELDS,
        }
    }

    /// What the journal says of an inode, but for the point of the log at which it was last written.
    fn logged(&self, ino: Ino) -> Vec<Vec<u8>> {
        let mut bytes = self.found[&ino].clone();
        RawDinode::prefix_mut(&mut bytes).expect("an inode").0.lsn = 0.into();
        let mut regions = Regions::new(WriterLayout::USUAL);
        InodeChange { bytes: &bytes, ..self.change(ino) }.format(&self.geometry, &mut regions).expect("a sound inode");
        (0..regions.len()).filter_map(|index| regions.contents(index)).map(<[u8]>::to_vec).collect()
    }
}

impl FormatItem for Inodes {
    fn format(&self, key: &ItemKey, regions: &mut Regions) -> Result<()> {
        let ItemKey::Inode(ino) = key else { panic!("{key:?}") };
        self.change(*ino).format(&self.geometry, regions)
    }
}

/// Mounts and unmounts; says so and gives `None` where this machine cannot.
fn mounted(data: &Path, point: &Path, within: impl FnOnce(&Path) -> std::io::Result<()>) -> Option<()> {
    let arguments =
        ["-t".as_ref(), "xfs".as_ref(), "-o".as_ref(), "loop".as_ref(), data.as_os_str(), point.as_os_str()];
    if let Err(why) = run("mount", arguments) {
        missing(&format!("mounting by a loop device: {why}"));
        return None;
    }
    let result = within(point);
    unmount(point).expect("it is not in use");
    result.expect("the filesystem is in order");
    Some(())
}

/// All inodes of a filesystem are logged, and their forks zeroed on disk: what a kernel replays is what there was.
#[test]
fn forks_of_every_form_are_replayed() {
    let Some(reference) = reference() else { return };
    let folder = folder();
    let point = folder.path().join("point");
    std::fs::create_dir(&point).expect("the folder can be written");
    let case = &CASES[0];
    let made = Made::new(case, folder.path());
    let Some(()) = mounted(&made.data, &point, |root| populate::populate(root, 4096, 400)) else { return };
    let image = made.open();
    let inodes = Inodes::of(&image);
    let scan = image.journal().expect("a sound log");
    let log = image.devices().data.clone();
    let options = LogWriterOptions::of(&inodes.geometry.log);
    let position = LogPosition::after(&scan);
    let mut writer =
        LogWriter::open(log.clone(), Vec::new(), &inodes.geometry, position, options).expect("a sound log");
    let tail = writer.head();
    let mut cil = Cil::new(CilOptions::of(&inodes.geometry));
    let mut fields = 0;
    for (number, ino) in inodes.found.keys().enumerate() {
        let change = inodes.change(*ino);
        let size = change.size(&inodes.geometry, WriterLayout::USUAL.width).expect("a sound inode");
        let relogged = vec![(ItemKey::Inode(*ino), size)];
        cil.commit(Commit { relogged, ..Commit::default() }).expect("sound");
        fields |= fields_of(&inodes, *ino);
        let literal = RawDinode::SIZE as u64;
        let zeroes = u64::from(inodes.geometry.inodes.size) - literal;
        let at = change.daddr.0 * 512 + u64::from(change.offset) + literal;
        log.write_zeroes(at, zeroes).expect("on the device");
        if number % 1000 == 999 {
            writer.write_checkpoint(&cil.take().expect("not empty"), &inodes, tail).expect("there is room");
        }
    }
    if let Some(taken) = cil.take() {
        writer.write_checkpoint(&taken, &inodes, tail).expect("there is room");
    }
    // the attribute fork of no file is so fragmented that it needs a btree
    assert_eq!(fields, ALL_FIELDS & !field::ABROOT, "{fields:#x}");
    drop((image, log, writer));
    mounted(&made.data, &point, |_| Ok(()));
    let after = Inodes::of(&made.open());
    assert_eq!(after.found.len(), inodes.found.len());
    for ino in inodes.found.keys() {
        assert_eq!(after.logged(*ino), inodes.logged(*ino), "inode {ino}");
    }
    let output = reference.tool("xfs_repair", ["-n"]).arg(&made.data).output().expect("the reference can be started");
    assert!(output.status.success(), "{}", said(&output));
}

/// The parts of an inode that were logged.
fn fields_of(inodes: &Inodes, ino: Ino) -> u32 {
    let format = &inodes.logged(ino)[0];
    InodeLogFormat::decode::<LittleEndian>(format).expect("a format").0.fields
}
