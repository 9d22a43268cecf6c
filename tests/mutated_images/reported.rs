//! Damage that is on record as having killed other tools: each of ours goes on, and says what is wrong and where.

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;
use xfskit::device::{Device, OverlayDevice};
use xfskit::ondisk::dinode::format;
use xfskit::ondisk::dir_leaf::{RawDir3FreeHdr, RawDir3LeafHdr};
use xfskit::ondisk::{OnDisk, RawDinode, crc};

use super::bases::{Base, stored};
use super::structures::{Site, Unit};

/// Two runs of a tool, and what it says of the damage.
struct Case {
    folder: TempDir,
    /// How messages name the place.
    place: String,
}

/// The image with `site` changed, its checksum right.
fn case(base: &Base, site: &Site, change: impl FnOnce(&mut [u8])) -> Case {
    let device = OverlayDevice::new(&base.data);
    let mut bytes = vec![0; site.len];
    device.read_at(site.offset, &mut bytes).expect("readable");
    change(&mut bytes);
    crc::stamp(&mut bytes, site.form.crc.expect("version 5"));
    device.write_at(site.offset, &bytes).expect("writable");
    let folder = tempfile::tempdir().expect("a folder");
    super::store(&device, &folder.path().join("image"));
    let place = match base.inode_at(site.offset).filter(|_| site.form.unit == Unit::Inode) {
        Some(ino) => format!("inode {ino}"),
        None => format!("daddr {}", site.offset / 512),
    };
    Case { folder, place }
}

fn run(binary: &str, folder: &Path, arguments: &[&str]) -> Output {
    let output = Command::new("timeout").arg("60").arg(binary).args(arguments).current_dir(folder).output();
    output.expect("the tool can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Case {
    /// All tools on the image; `seen` says whether the damage is in something that is read to archive files.
    fn check(&self, what: &str, ino: Option<u64>, seen: bool) {
        let folder = self.folder.path();
        for options in [&["-w"][..], &["-w", "-a", "-o", "-v", "1"], &["-w", "-v", "2"]] {
            let dumped = run(env!("CARGO_BIN_EXE_xfskit-metadump"), folder, &[options, &["image", "dump"]].concat());
            let told = text(&dumped.stderr);
            assert!(dumped.status.success(), "{what}, metadump {options:?}: {told}");
            // a block that is copied as it is need not be sound
            let believed = ino.is_none() && options.contains(&"-o");
            assert!(believed || told.contains(&self.place), "{what}, metadump {options:?}: {told}");
            let restored = run(env!("CARGO_BIN_EXE_xfskit-mdrestore"), folder, &["dump", "restored"]);
            assert!(restored.status.success(), "{what}, mdrestore {options:?}: {}", text(&restored.stderr));
        }
        let mut commands = vec!["-c", "blockget -n", "-c", "ncheck", "-c", "frag"];
        let go = ino.map(|ino| format!("inode {ino}"));
        if let Some(go) = &go {
            commands.extend(["-c", go, "-c", "print", "-c", "bmap", "-c", "btdump", "-c", "ls"]);
        }
        let looked = run(env!("CARGO_BIN_EXE_xfskit-db"), folder, &[&commands[..], &["image"]].concat());
        let (said, told) = (text(&looked.stdout), text(&looked.stderr));
        assert!(matches!(looked.status.code(), Some(0 | 1)) && !told.contains("panicked"), "{what}, db: {told}");
        let number = self.place.rsplit(' ').next().expect("a number");
        assert!(said.contains(number) || told.contains(&self.place), "{what}, db: {said}{told}");
        // everything is listed, but for the folder that is damaged
        let listed = run(env!("CARGO_BIN_EXE_xfskit-files"), folder, &["ls", "-l", "-R", "image"]);
        let (said, told) = (text(&listed.stdout), text(&listed.stderr));
        let known = ["hole-first", "to-link", "capability"].into_iter().filter(|name| said.contains(name));
        assert!(known.count() >= 2, "{what}, files: {told}");
        let archived = run(env!("CARGO_BIN_EXE_xfskit-files"), folder, &["tar", "-o", "/dev/null", "image"]);
        let also = text(&archived.stderr);
        let codes = (listed.status.code(), archived.status.code());
        assert!(!also.contains("panicked") && !told.contains("panicked"), "{what}, files: {told}{also}");
        if seen {
            assert_eq!(codes.1, Some(3), "{what}, files: {told}{also}");
            assert!(also.contains(&self.place), "{what}, files: {also}");
        }
    }
}

/// The first inode for which `is` holds.
fn inode(base: &Base, is: impl Fn(&RawDinode) -> bool) -> (Site, u64) {
    let mut sites = base.sites.all().filter(|site| site.form.unit == Unit::Inode);
    let found = sites.find(|site| {
        let mut bytes = vec![0; site.len];
        base.data.read_at(site.offset, &mut bytes).expect("readable");
        RawDinode::prefix(&bytes).is_some_and(|(inode, _)| is(inode))
    });
    let site = *found.expect("there is one");
    (site, base.inode_at(site.offset).expect("it has a number"))
}

/// The first structure with this magic number.
fn block(base: &Base, magic: u32) -> Site {
    *base.sites.all().find(|site| site.form.magic() == magic).expect("there is one")
}

#[test]
fn more_extents_than_an_inode_has_room_for() {
    let base = stored("files/tree");
    let (site, ino) = inode(&base, |inode| {
        let core = &inode.core;
        core.mode.get() & 0o170_000 == 0o100_000 && core.format == format::EXTENTS && core.nextents.get() > 0
    });
    for count in [(1 << 28) + 1, u32::MAX, 1000] {
        let case = case(&base, &site, |bytes| {
            let (inode, _) = RawDinode::prefix_mut(bytes).expect("long enough");
            inode.core.nextents = count.into();
        });
        case.check(&format!("{count} extents"), Some(ino), true);
    }
}

#[test]
fn a_device_that_claims_extents() {
    let base = stored("files/tree");
    let (site, ino) =
        inode(&base, |inode| inode.core.format == format::DEV && inode.core.mode.get() & 0o170_000 == 0o020_000);
    let case = case(&base, &site, |bytes| {
        let (inode, _) = RawDinode::prefix_mut(bytes).expect("long enough");
        inode.core.nextents = 3.into();
        inode.core.nblocks = 5.into();
    });
    // Linux does not mind either
    case.check("a device", Some(ino), false);
}

#[test]
fn blocks_of_a_directory_that_count_more_than_they_hold() {
    use xfskit::ondisk::dir_data::{DIR3_BLOCK_MAGIC, DIR3_DATA_MAGIC, RawDir3DataHdr};
    use xfskit::ondisk::dir_leaf::{DIR3_FREE_MAGIC, DIR3_LEAFN_MAGIC};
    let base = stored("files/tree");
    for count in [0x7fff, u32::MAX, 2017] {
        let case = case(&base, &block(&base, DIR3_FREE_MAGIC), |bytes| {
            let (header, _) = RawDir3FreeHdr::prefix_mut(bytes).expect("long enough");
            header.nvalid = count.into();
        });
        case.check(&format!("nvalid {count}"), None, false);
    }
    let case_of_leaf = case(&base, &block(&base, DIR3_LEAFN_MAGIC.into()), |bytes| {
        let (header, _) = RawDir3LeafHdr::prefix_mut(bytes).expect("long enough");
        header.count = 0xffff.into();
    });
    case_of_leaf.check("a leaf", None, false);
    for magic in [DIR3_DATA_MAGIC, DIR3_BLOCK_MAGIC] {
        let case = case(&base, &block(&base, magic), |bytes| {
            let (header, _) = RawDir3DataHdr::prefix_mut(bytes).expect("long enough");
            header.best_free[0].length = 0xfff8.into();
            header.best_free[1].offset = 0xffff.into();
            // the first entry is one that is gone, and longer than the block
            bytes[RawDir3DataHdr::SIZE..][..4].copy_from_slice(&[0xff, 0xff, 0xff, 0xf8]);
            // and what a block with an index of its own counts
            let tail = bytes.len() - 8;
            bytes[tail..].fill(0xff);
        });
        case.check(&format!("{magic:x}"), None, true);
    }
}
