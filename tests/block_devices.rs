//! Block devices, by way of loop devices: needs root, `losetup`, `mke2fs` and `mount`, and says so where it has not.
#![allow(clippy::print_stderr)] // Says which tests could not be run.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use xfskit::device::{Access, Device, FileDevice, FileKind, OpenFile, Signature};
use xfskit::error::{DeviceRole, Error};

fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A file behind a loop device, both gone with the value.
struct Loop {
    folder: tempfile::TempDir,
    device: PathBuf,
    mounted: bool,
}

impl Loop {
    fn new(sector: u32) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = folder.path().join("backing file");
        File::create(&file).and_then(|file| file.set_len(32 << 20)).expect("the file can be made");
        let arguments = ["--find", "--show", "--sector-size", &sector.to_string(), file.to_str()?];
        let device = run("/sbin/losetup", &arguments);
        if device.is_none() {
            eprintln!("NOT TESTED: no loop device with sectors of {sector} bytes can be had here");
        }
        Some(Loop { folder, device: device?.into(), mounted: false })
    }

    fn path(&self) -> &str {
        self.device.to_str().expect("names of devices are ASCII")
    }

    fn backing_file(&self) -> PathBuf {
        self.folder.path().join("backing file")
    }

    fn mount(&mut self) -> bool {
        let point = self.folder.path().join("mount point");
        std::fs::create_dir_all(&point).expect("a folder can be made");
        self.mounted = run("/sbin/mke2fs", &["-q", "-F", self.path()]).is_some()
            && run("/bin/mount", &[self.path(), point.to_str().expect("ASCII")]).is_some();
        if !self.mounted {
            eprintln!("NOT TESTED: no filesystem can be mounted here");
        }
        self.mounted
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if self.mounted {
            run("/bin/umount", &[self.path()]);
        }
        run("/sbin/losetup", &["--detach", self.path()]);
    }
}

fn busy(path: &Path) -> String {
    match FileDevice::open(path, OpenFile::WRITE) {
        Err(Error::Io { error, .. }) if error.kind() == io::ErrorKind::ResourceBusy => error.to_string(),
        other => panic!("{} should be busy: {other:?}", path.display()),
    }
}

#[test]
fn sizes_writes_zeroes_and_discards() {
    for sector in [512, 4096] {
        let Some(loop_device) = Loop::new(sector) else { return };
        let device = FileDevice::open(&loop_device.device, OpenFile::WRITE).expect("nobody uses it");
        assert_eq!((device.kind(), device.len(), device.sector_size().logical), (FileKind::Block, 32 << 20, sector));
        // The file may lie on anything, so the loop device's own limits are not known here, only that they are told.
        let topology = device.topology().expect("the system tells");
        assert_eq!((topology.sector_size, topology.zones), (device.sector_size(), None));

        let pattern: Vec<u8> = (0..64 << 10).map(|at: u32| at.to_le_bytes()[0] | 1).collect();
        device.write_at(1_000_000, &pattern).expect("writable");
        device.write_zeroes(1_000_003, 40_000).expect("in whole sectors and parts of them");
        device.flush().expect("flushable");
        let mut read = vec![7; pattern.len()];
        device.read_at(1_000_000, &mut read).expect("readable");
        assert_eq!(read[..3], pattern[..3]);
        assert!(read[3..40_003].iter().all(|byte| *byte == 0) && read[40_003..] == pattern[40_003..]);
        let at_end = device.write_at((32 << 20) - 1, &[1, 2]);
        assert!(at_end.is_err(), "a device does not grow");
        device.discard(0, 32 << 20).expect("able to discard, or not");
        assert!(device.set_len(1 << 20).is_err());
    }
}

#[test]
fn a_mounted_device_is_not_written_and_neither_is_its_file() {
    let Some(mut loop_device) = Loop::new(512) else { return };
    let file = loop_device.backing_file();
    FileDevice::open(&file, OpenFile::WRITE).expect("a loop device that nobody uses does not matter");
    if !loop_device.mount() {
        return;
    }
    let on_device = busy(&loop_device.device);
    assert!(on_device.contains("mounted on") && on_device.ends_with("mount point"), "{on_device}");
    let on_file = busy(&file);
    assert!(on_file.contains(loop_device.path()) && on_file.contains("mounted on"), "{on_file}");
    for path in [&loop_device.device, &file] {
        let create = OpenFile { access: Access::Create, role: DeviceRole::Data };
        FileDevice::open(path, create).expect_err("creating is no way around");
        let device = FileDevice::open(path, OpenFile::READ).expect("reading is no harm");
        let found = Signature::all_on(&device).expect("readable");
        assert_eq!(found.first().map(|signature| signature.name), Some("ext2"));
    }
}

#[test]
fn a_device_that_another_program_claims_is_busy() {
    let Some(loop_device) = Loop::new(512) else { return };
    let first = FileDevice::open(&loop_device.device, OpenFile::WRITE).expect("nobody uses it");
    assert!(busy(&loop_device.device).contains("in use"));
    drop(first);
    FileDevice::open(&loop_device.device, OpenFile::WRITE).expect("the claim ends with its holder");
}
