//! Recognises what a device holds already, so that it is not overwritten by mistake.
//!
//! Names are those that libblkid gives (`blkid -p`), offsets and magic numbers those of the formats' own headers.

use super::contract::{Device, length_of};
use super::partition::{PartitionTable, TableKind};
use crate::error::{Error, Result};

/// What kind of thing a signature belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// A filesystem, swap area, or member of a RAID, volume group or encrypted device.
    Filesystem,
    /// A partition table.
    PartitionTable,
}

/// Known contents of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The name by which libblkid knows it.
    pub name: &'static str,
    /// What it is.
    pub contents: Contents,
}

/// Magic bytes at a fixed place.
struct Row {
    name: &'static str,
    offset: u64,
    magic: &'static [u8],
}

const fn row(name: &'static str, offset: u64, magic: &'static [u8]) -> Row {
    Row { name, offset, magic }
}

/// Containers come first: what they hold may begin at the same place and shine through.
const FILESYSTEMS: &[Row] = &[
    row("crypto_LUKS", 0, b"LUKS\xba\xbe"),
    row("crypto_LUKS", 0x4000, b"SKUL\xba\xbe"),
    row("BitLocker", 3, b"-FVE-FS-"),
    row("LVM2_member", 24, b"LVM2 001"),
    row("LVM2_member", 512 + 24, b"LVM2 001"),
    row("LVM2_member", 1024 + 24, b"LVM2 001"),
    row("LVM2_member", 1536 + 24, b"LVM2 001"),
    row("DM_snapshot_cow", 0, b"SnAp"),
    row("DM_verity_hash", 0, b"verity\0\0"),
    row("DM_integrity", 0, b"integrt\0"),
    row("vdo", 0, b"dmvdo001"),
    row("stratis", 512 + 4, b"!Stra0tis\x86\xff\x02^\x41rh"),
    row("ceph_bluestore", 0, b"bluestore block device"),
    row("bcache", 4096 + 24, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    row("bcachefs", 4096 + 24, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    row("linux_raid_member", 0, b"\xfc\x4e\x2b\xa9\x01\0\0\0"),
    row("linux_raid_member", 4096, b"\xfc\x4e\x2b\xa9\x01\0\0\0"),
    row("xfs", 0, b"XFSB"),
    row("xfs_external_log", 0, b"\xfe\xed\xba\xbe"),
    row("btrfs", 65536 + 64, b"_BHRfS_M"),
    row("exfat", 3, b"EXFAT   "),
    row("ntfs", 3, b"NTFS    "),
    row("ReFS", 0, b"\0\0\0ReFS\0"),
    row("vfat", 0x52, b"FAT32   "),
    row("vfat", 0x52, b"MSWIN"),
    row("vfat", 0x36, b"MSDOS"),
    row("vfat", 0x36, b"FAT16   "),
    row("vfat", 0x36, b"FAT12   "),
    row("vfat", 0x36, b"FAT     "),
    row("f2fs", 1024, b"\x10\x20\xf5\xf2"),
    row("erofs", 1024, b"\xe2\xe1\xf5\xe0"),
    row("squashfs", 0, b"hsqs"),
    row("squashfs", 0, b"sqsh"),
    row("cramfs", 0, b"\x45\x3d\xcd\x28"),
    row("cramfs", 0, b"\x28\xcd\x3d\x45"),
    row("romfs", 0, b"-rom1fs-"),
    row("zonefs", 0, b"SFOZ"),
    row("apfs", 32, b"NXSB"),
    row("hfsplus", 1024, b"H+\0\x04"),
    row("hfsplus", 1024, b"HX\0\x05"),
    row("jfs", 32768, b"JFS1"),
    row("reiserfs", 65536 + 52, b"ReIsErFs"),
    row("reiserfs", 65536 + 52, b"ReIsEr2Fs"),
    row("reiserfs", 65536 + 52, b"ReIsEr3Fs"),
    row("reiserfs", 8192 + 52, b"ReIsErFs"),
    row("reiser4", 65536, b"ReIsEr4"),
    row("gfs2", 65536, b"\x01\x16\x19\x70"),
    row("ocfs2", 1024, b"OCFSV2"),
    row("ocfs2", 2048, b"OCFSV2"),
    row("ocfs2", 4096, b"OCFSV2"),
    row("ocfs2", 8192, b"OCFSV2"),
    row("ufs", 8192 + 1372, b"\x54\x19\x01\0"),
    row("ufs", 65536 + 1372, b"\x19\x01\x54\x19"),
    row("swap", 4096 - 10, b"SWAPSPACE2"),
    row("swap", 4096 - 10, b"SWAP-SPACE"),
    row("swap", 8192 - 10, b"SWAPSPACE2"),
    row("swap", 16384 - 10, b"SWAPSPACE2"),
    row("swap", 32768 - 10, b"SWAPSPACE2"),
    row("swap", 65536 - 10, b"SWAPSPACE2"),
    row("swsuspend", 4096 - 10, b"S1SUSPEND"),
    row("swsuspend", 4096 - 10, b"LINHIB0001"),
];

const PARTITION_TABLES: &[Row] = &[
    row("gpt", 512, b"EFI PART"),
    row("gpt", 4096, b"EFI PART"),
    row("mac", 512, b"PM\0\0"),
    row("sgi", 0, b"\x0b\xe5\xa9\x41"),
    row("bsd", 64, b"\x57\x45\x56\x82"),
    row("bsd", 512, b"\x57\x45\x56\x82"),
];

impl Signature {
    /// What `device` holds that is known, the most telling first; empty if there is nothing that would be missed.
    ///
    /// # Errors
    /// `Io` if the device cannot be read: then nothing is known, and nothing should be overwritten.
    pub fn all_on(device: &dyn Device) -> Result<Vec<Signature>> {
        let mut names = names_in(device, FILESYSTEMS)?;
        names.extend(raid_at_end(device)?);
        names.extend(ext(device)?);
        names.extend(optical(device)?);
        names.extend(zfs(device)?);
        let tables = partition_tables(device, &names)?;
        names.dedup();
        let found = |contents| move |name| Signature { name, contents };
        let filesystems = names.into_iter().map(found(Contents::Filesystem));
        Ok(filesystems.chain(tables.into_iter().map(found(Contents::PartitionTable))).collect())
    }
}

/// Bytes at a place; `None` where the device is too small to have them.
fn bytes_at<const N: usize>(device: &dyn Device, offset: u64) -> Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    if offset.checked_add(length_of(&bytes)).is_none_or(|end| end > device.len()) {
        return Ok(None);
    }
    device.read_at(offset, &mut bytes)?;
    Ok(Some(bytes))
}

fn has(device: &dyn Device, offset: u64, magic: &[u8]) -> Result<bool> {
    let mut bytes = vec![0; magic.len()];
    if offset.checked_add(length_of(magic)).is_none_or(|end| end > device.len()) {
        return Ok(false);
    }
    device.read_at(offset, &mut bytes)?;
    Ok(bytes == magic)
}

fn names_in(device: &dyn Device, rows: &[Row]) -> Result<Vec<&'static str>> {
    let mut names = Vec::new();
    for row in rows {
        if has(device, row.offset, row.magic)? {
            names.push(row.name);
        }
    }
    Ok(names)
}

/// Linux software RAID with its superblock at the end: format 1.0, and 0.90 in both byte orders.
fn raid_at_end(device: &dyn Device) -> Result<Option<&'static str>> {
    let old = (device.len() & !0xFFFF).checked_sub(0x10000);
    let new = (device.len() / 512).checked_sub(16).map(|sector| (sector & !7) * 512);
    let places =
        [(old, &b"\xfc\x4e\x2b\xa9"[..]), (old, &b"\xa9\x2b\x4e\xfc"[..]), (new, &b"\xfc\x4e\x2b\xa9\x01\0\0\0"[..])];
    for (place, magic) in places {
        if place.map_or(Ok(false), |place| has(device, place, magic))? {
            return Ok(Some("linux_raid_member"));
        }
    }
    Ok(None)
}

/// ext2, ext3 and ext4 differ by features only (the kernel's `fs/ext4/ext4.h` has the lists).
fn ext(device: &dyn Device) -> Result<Option<&'static str>> {
    const COMPAT_HAS_JOURNAL: u32 = 0x4;
    const INCOMPAT_JOURNAL_DEV: u32 = 0x8;
    /// filetype, recover, meta_bg
    const INCOMPAT_OF_EXT3: u32 = 0x2 | 0x4 | 0x10;
    /// sparse_super, large_file, btree_dir
    const RO_COMPAT_OF_EXT3: u32 = 0x7;
    let Some(superblock) = bytes_at::<108>(device, 1024)? else { return Ok(None) };
    let field = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| superblock[at + byte]));
    let (log_block_size, revision) = (field(24), field(76));
    if superblock[56..58] != *b"\x53\xef" || log_block_size > 6 || revision > 1 {
        return Ok(None);
    }
    let (compat, incompat, ro_compat) = (field(92), field(96), field(100));
    Ok(Some(if incompat & INCOMPAT_JOURNAL_DEV != 0 {
        "jbd"
    } else if incompat & !INCOMPAT_OF_EXT3 != 0 || ro_compat & !RO_COMPAT_OF_EXT3 != 0 {
        "ext4"
    } else if compat & COMPAT_HAS_JOURNAL != 0 {
        "ext3"
    } else {
        "ext2"
    }))
}

/// UDF and ISO 9660 share a row of descriptors of 2 KiB, from 32 KiB on; a disc may be both, and is UDF then.
fn optical(device: &dyn Device) -> Result<Option<&'static str>> {
    let mut found = None;
    for sector in 16..32 {
        match bytes_at::<5>(device, sector * 2048 + 1)?.as_ref().map(|id| &id[..]) {
            Some(b"NSR02" | b"NSR03") => return Ok(Some("udf")),
            Some(b"CD001") => found = Some("iso9660"),
            Some(b"BEA01" | b"BOOT2" | b"TEA01" | b"CDW02") => {}
            _ => break,
        }
    }
    Ok(found)
}

/// ZFS has four labels of 256 KiB, two at either end; the second half of each is a ring of 128 superblocks.
fn zfs(device: &dyn Device) -> Result<Option<&'static str>> {
    const LABEL: u64 = 256 << 10;
    const RING: u64 = 128 << 10;
    let end = device.len() / LABEL * LABEL;
    let labels = [Some(0), Some(LABEL), end.checked_sub(2 * LABEL), end.checked_sub(LABEL)];
    let mut ring = vec![0; 128 << 10];
    for label in labels.into_iter().flatten().filter(|label| label + LABEL <= device.len()) {
        device.read_at(label + RING, &mut ring)?;
        if ring.chunks_exact(1024).filter_map(|block| block.first_chunk()).any(is_uberblock) {
            return Ok(Some("zfs_member"));
        }
    }
    Ok(None)
}

/// The magic number 0x00bab10c in 64 bits, in either byte order.
fn is_uberblock(magic: &[u8; 8]) -> bool {
    const MAGIC: u64 = 0x00ba_b10c;
    u64::from_le_bytes(*magic) == MAGIC || u64::from_be_bytes(*magic) == MAGIC
}

/// Partition tables. A boot sector is no table if it belongs to a filesystem.
fn partition_tables(device: &dyn Device, filesystems: &[&str]) -> Result<Vec<&'static str>> {
    let mut names = names_in(device, PARTITION_TABLES)?;
    let boots = filesystems.iter().any(|name| matches!(*name, "vfat" | "ntfs" | "exfat" | "BitLocker" | "ReFS"));
    if names.is_empty() && !boots {
        match PartitionTable::read(device) {
            Ok(table) => names.push(match table.kind {
                TableKind::Gpt => "gpt",
                TableKind::Mbr => "dos",
            }),
            // A table that is there, but damaged or strange.
            Err(Error::Unsupported(_)) => names.push("gpt"),
            Err(Error::Usage(_)) => {}
            Err(error) => return Err(error),
        }
    }
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::device::{FileDevice, MemoryDevice, OpenFile};

    fn names_on(device: &dyn Device) -> Vec<&'static str> {
        let found = Signature::all_on(device).expect("invariant: the device is readable");
        found.iter().map(|signature| signature.name).collect()
    }

    #[test]
    fn every_row_is_found_and_nothing_else() {
        for row in FILESYSTEMS.iter().chain(PARTITION_TABLES) {
            let device = MemoryDevice::new(1 << 20);
            device.write_at(row.offset, row.magic).expect("invariant: in range");
            assert_eq!(names_on(&device), [row.name]);
        }
    }

    #[test]
    fn nothing_on_zeroes_or_patterns_of_any_size() {
        for size in [0, 1, 511, 512, 1100, 4096, 65536, 70_000, 1 << 20] {
            for byte in [0, 0xAA, 0xFF] {
                assert!(names_on(&MemoryDevice::from_bytes(&vec![byte; size])).is_empty(), "{size} times {byte:#x}");
            }
        }
    }

    #[test]
    fn raid_superblocks_at_the_end() {
        let size = 10 << 20;
        for (offset, magic) in [(size - 65536, &b"\xfc\x4e\x2b\xa9"[..]), (size - 8192, b"\xfc\x4e\x2b\xa9\x01\0\0\0")]
        {
            let device = MemoryDevice::new(size);
            device.write_at(offset, magic).expect("invariant: in range");
            assert_eq!(names_on(&device), ["linux_raid_member"]);
        }
    }

    #[test]
    fn the_last_zfs_label_is_enough() {
        let size = 10 << 20;
        let device = MemoryDevice::new(size);
        device.write_at(size - (256 << 10) + (128 << 10) + 1024, &0x00ba_b10c_u64.to_be_bytes()).expect("in range");
        assert_eq!(names_on(&device), ["zfs_member"]);
    }

    #[test]
    fn discs() {
        let device = MemoryDevice::new(1 << 20);
        device.write_at(0x8001, b"CD001").expect("invariant: in range");
        assert_eq!(names_on(&device), ["iso9660"]);
        device.write_at(0x8801, b"BEA01").expect("invariant: in range");
        device.write_at(0x9001, b"NSR03").expect("invariant: in range");
        assert_eq!(names_on(&device), ["udf"]);
    }

    #[test]
    fn a_boot_sector_is_a_table_unless_a_filesystem_owns_it() {
        let device = MemoryDevice::new(1 << 20);
        device.write_at(510, &[0x55, 0xAA]).expect("invariant: in range");
        let found = Signature::all_on(&device).expect("readable");
        assert_eq!(found, [Signature { name: "dos", contents: Contents::PartitionTable }]);
        device.write_at(3, b"NTFS    ").expect("invariant: in range");
        assert_eq!(names_on(&device), ["ntfs"]);
    }

    /// Runs a tool of the system; `false` if it is not installed.
    fn run(tool: &str, arguments: &[&str], path: &Path) -> bool {
        let file = std::fs::File::create(path).expect("invariant: writable");
        file.set_len(32 << 20).expect("invariant: writable");
        let status = Command::new(tool).args(arguments).arg(path).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    #[test]
    fn what_the_systems_own_tools_make() {
        let folder = tempfile::tempdir().expect("invariant: a temporary folder can be made");
        let path = folder.path().join("image");
        let mut checked = 0;
        for (tool, arguments, name) in [
            ("/sbin/mke2fs", &["-q", "-F", "-t", "ext2"][..], "ext2"),
            ("/sbin/mke2fs", &["-q", "-F", "-t", "ext3"], "ext3"),
            ("/sbin/mke2fs", &["-q", "-F", "-t", "ext4"], "ext4"),
            ("/sbin/mke2fs", &["-q", "-F", "-O", "journal_dev"], "jbd"),
            ("/sbin/mkswap", &["-q"], "swap"),
        ] {
            if run(tool, arguments, &path) {
                let device = FileDevice::open(&path, OpenFile::READ).expect("invariant: readable");
                assert_eq!(names_on(&device), [name]);
                checked += 1;
            }
        }
        assert!(checked > 0 || !Path::new("/sbin/mke2fs").exists(), "the tools are there, but none made an image");
    }
}
