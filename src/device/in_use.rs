//! Who uses a file or block device: mounts, loop devices, holders, locks.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock, major, minor};
use rustix::io::Errno;

/// A device number as the kernel writes it in /proc and /sys: `8:1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceNumber {
    /// The driver's number.
    pub(super) major: u32,
    /// The number among the driver's devices.
    pub(super) minor: u32,
}

impl DeviceNumber {
    /// Of a number as `stat` gives it.
    pub(super) fn of(raw: u64) -> Self {
        DeviceNumber { major: major(raw), minor: minor(raw) }
    }

    fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// The device's folder in sysfs.
    pub(super) fn sysfs(self) -> PathBuf {
        PathBuf::from(format!("/sys/dev/block/{}:{}", self.major, self.minor))
    }

    /// This device and the partitions on it.
    fn with_partitions(self) -> Vec<DeviceNumber> {
        let partitions = fs::read_dir(self.sysfs()).into_iter().flatten().flatten();
        let numbers = partitions
            .filter(|entry| entry.path().join("partition").exists())
            .filter_map(|entry| DeviceNumber::parse(&fs::read_to_string(entry.path().join("dev")).ok()?));
        std::iter::once(self).chain(numbers).collect()
    }
}

/// Why the file or block device behind `file` must not be written to, in words; `None` if nothing speaks against it.
pub(super) fn reason(file: &File) -> io::Result<Option<String>> {
    let metadata = file.metadata()?;
    if metadata.file_type().is_block_device() {
        return Ok(block_device_use(DeviceNumber::of(metadata.rdev())));
    }
    Ok(loop_devices_over(&metadata).into_iter().find_map(|(name, number)| {
        block_device_use(number).map(|reason| format!("it is the backing file of /dev/{name}, which {reason}"))
    }))
}

/// Why a block device is busy: mounted, swapped to, or part of another device.
fn block_device_use(number: DeviceNumber) -> Option<String> {
    let devices = number.with_partitions();
    if let Some(point) = mount_point(&devices) {
        return Some(format!("is mounted on {point}"));
    }
    if let Some(area) = swap_area(&devices) {
        return Some(format!("is used for swapping ({area})"));
    }
    devices.iter().find_map(|device| {
        let holder = fs::read_dir(device.sysfs().join("holders")).ok()?.flatten().next()?;
        Some(format!("is used by {}", holder.file_name().to_string_lossy()))
    })
}

/// Where one of `devices` is mounted.
fn mount_point(devices: &[DeviceNumber]) -> Option<String> {
    let table = fs::read("/proc/self/mountinfo").ok()?;
    mount_point_in(&String::from_utf8_lossy(&table), devices)
}

/// Searches a text in the format of /proc/self/mountinfo (proc(5)): the third word is the device, the fifth the place;
/// behind the separating dash, the second is the source, which tells where the third is a made-up number (btrfs).
fn mount_point_in(table: &str, devices: &[DeviceNumber]) -> Option<String> {
    table.lines().find_map(|line| {
        let (fields, source) = line.split_once(" - ")?;
        let mut fields = fields.split(' ');
        let number = DeviceNumber::parse(fields.nth(2)?)?;
        let point = fields.nth(1)?;
        let mounted_from = source.split(' ').nth(1).and_then(|name| block_device_number(Path::new(&unescape(name))));
        let hit = devices.contains(&number) || mounted_from.is_some_and(|source| devices.contains(&source));
        hit.then(|| unescape(point))
    })
}

fn swap_area(devices: &[DeviceNumber]) -> Option<String> {
    let table = fs::read_to_string("/proc/swaps").ok()?;
    table.lines().skip(1).find_map(|line| {
        let name = unescape(line.split_whitespace().next()?);
        devices.contains(&block_device_number(Path::new(&name))?).then_some(name)
    })
}

fn block_device_number(path: &Path) -> Option<DeviceNumber> {
    let metadata = path.is_absolute().then(|| fs::metadata(path).ok()).flatten()?;
    metadata.file_type().is_block_device().then(|| DeviceNumber::of(metadata.rdev()))
}

/// Names and numbers of the loop devices whose backing file is the file that `wanted` describes.
fn loop_devices_over(wanted: &fs::Metadata) -> Vec<(String, DeviceNumber)> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let backing = fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
            let backing = fs::metadata(backing.trim_end_matches('\n')).ok()?;
            let same = backing.dev() == wanted.dev() && backing.ino() == wanted.ino();
            let number = DeviceNumber::parse(&fs::read_to_string(entry.path().join("dev")).ok()?)?;
            same.then_some((name, number))
        })
        .collect()
}

/// Undoes the octal escapes that the kernel's tables use for blanks and backslashes.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(byte);
            rest = &tail[3..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Takes the advisory lock that tells other careful programs (and udev, on block devices) to keep off.
///
/// udev takes the same lock for moments while it looks at a device, so a first refusal is not the last word.
///
/// # Errors
/// `ResourceBusy` with the holder's name, or the system's error.
pub(super) fn lock(file: &File) -> io::Result<()> {
    for _ in 0..20 {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) => thread::sleep(Duration::from_millis(25)),
            // Some network filesystems have no locks; that is no reason not to work on them.
            Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    let metadata = file.metadata()?;
    let table = fs::read_to_string("/proc/locks").unwrap_or_default();
    let holder = lock_holder_in(&table, DeviceNumber::of(metadata.dev()), metadata.ino());
    let holder = holder.map_or_else(|| "another process".to_owned(), process_name);
    Err(io::Error::new(io::ErrorKind::ResourceBusy, format!("locked by {holder}")))
}

/// The process that holds an flock lock on an inode, from a text in the format of /proc/locks (proc(5)).
fn lock_holder_in(table: &str, device: DeviceNumber, ino: u64) -> Option<u32> {
    let inode = format!("{:02x}:{:02x}:{ino}", device.major, device.minor);
    table.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // A lock that is waited for has an arrow as its second word, and thereby is no match.
        let [_, "FLOCK", _, _, pid, place, ..] = words.as_slice() else { return None };
        (*place == inode).then(|| pid.parse().ok()).flatten()
    })
}

fn process_name(pid: u32) -> String {
    match fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(name) => format!("process {pid} ({})", name.trim_end()),
        Err(_) => format!("process {pid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_mounts_by_device_number() {
        let table = "36 35 98:0 /mnt1 /mnt\\040two rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n\
                     37 35 7:3 / /srv/img rw shared:9 - xfs /dev/loop3 rw\n";
        let find = |major, minor| mount_point_in(table, &[DeviceNumber { major, minor }]);
        assert_eq!(find(98, 0).as_deref(), Some("/mnt two"));
        assert_eq!(find(7, 3).as_deref(), Some("/srv/img"));
        assert_eq!(find(8, 1), None);
    }

    #[test]
    fn finds_the_holder_of_a_lock() {
        let table = "1: FLOCK  ADVISORY  WRITE 712 08:01:1179 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 713 08:01:1180 0 EOF\n\
                     3: POSIX  ADVISORY  READ 714 08:01:1180 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 715 08:01:1180 0 EOF\n";
        assert_eq!(lock_holder_in(table, DeviceNumber { major: 8, minor: 1 }, 1180), Some(715));
        assert_eq!(lock_holder_in(table, DeviceNumber { major: 8, minor: 2 }, 1180), None);
    }

    #[test]
    fn undoes_octal_escapes() {
        assert_eq!(unescape("a\\040b\\134c"), "a b\\c");
        assert_eq!(unescape("\\04"), "\\04");
        assert_eq!(unescape("\\777"), "\\777");
    }
}
