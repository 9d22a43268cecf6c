//! What is mounted where: from /proc/self/mountinfo, or from a table in the form of /proc/mounts (proc(5), fstab(5)).

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::major;

use crate::error::{Error, Place, Result};

/// Major number of loop devices.
const LOOP_MAJOR: u32 = 7;
/// The longest table of mounts that is read, in bytes.
const LONGEST_TABLE: u64 = 16 << 20;

/// A mounted XFS filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The data device, as it was named when it was mounted.
    pub source: PathBuf,
    /// Where it is mounted.
    pub point: PathBuf,
    /// The external log device.
    pub log: Option<PathBuf>,
    /// The realtime device.
    pub realtime: Option<PathBuf>,
}

/// The XFS filesystems that are mounted, in the order of the table: `table`, or the one of this process.
///
/// # Errors
/// `Io` when the table cannot be read. A missing /proc is no error: then nothing is known to be mounted.
pub fn mounted(table: Option<&Path>) -> Result<Vec<Mount>> {
    match table {
        Some(path) => {
            let bytes = read_table(path).map_err(|error| Error::io(Place::default(), error))?;
            Ok(parse_mounts(&String::from_utf8_lossy(&bytes)))
        }
        None => {
            let bytes = fs::read("/proc/self/mountinfo").unwrap_or_default();
            Ok(parse_mountinfo(&String::from_utf8_lossy(&bytes)))
        }
    }
}

/// The contents of a table that somebody named, unless it goes on for ever.
fn read_table(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(LONGEST_TABLE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_TABLE {
        return Err(io::Error::other(format!("longer than {LONGEST_TABLE} bytes, which are allowed")));
    }
    Ok(bytes)
}

/// The mount that `path` names: by its mount point, or by its device. The last one mounted on a place is the one to be seen
/// there; of several places the first counts, as for findmnt.
pub fn find<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let full = fs::canonicalize(path).ok();
    let full = full.as_deref().unwrap_or(path);
    let device = block_device_number(path);
    let by_point = mounts.iter().rev().find(|mount| mount.point == full);
    by_point.or_else(|| {
        let device = device?;
        mounts.iter().find(|mount| block_device_number(&mount.source) == Some(device))
    })
}

/// The device number of a block device; `None` for anything else.
fn block_device_number(path: &Path) -> Option<u64> {
    let metadata = fs::metadata(path).ok()?;
    metadata.file_type().is_block_device().then(|| metadata.rdev())
}

/// The loop device over a regular file; of several, the last in the order of their numbers.
pub fn loop_device_over(file: &Path) -> Option<PathBuf> {
    let wanted = fs::metadata(file).ok().filter(|metadata| metadata.file_type().is_file())?;
    let mut found: Vec<(u64, PathBuf)> = fs::read_dir("/sys/block")
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let number = name.strip_prefix("loop")?.parse().ok()?;
            let backing = fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
            let backing = fs::metadata(backing.trim_end_matches('\n')).ok()?;
            let same = backing.dev() == wanted.dev() && backing.ino() == wanted.ino();
            same.then(|| (number, Path::new("/dev").join(name)))
        })
        .filter(|(_, path)| block_device_number(path).is_some_and(|number| major(number) == LOOP_MAJOR))
        .collect();
    found.sort();
    found.pop().map(|(_, path)| path)
}

/// Parses /proc/self/mountinfo: fields up to a lone `-` describe the mount, those behind it the filesystem.
fn parse_mountinfo(text: &str) -> Vec<Mount> {
    let parse = |line: &str| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?;
        let mut words = filesystem.split(' ');
        let (kind, source, options) = (words.next()?, words.next()?, words.next().unwrap_or(""));
        (kind == "xfs").then(|| mount_of(source, point, options))
    };
    text.lines().filter_map(parse).collect()
}

/// Parses /proc/mounts, /etc/mtab or /etc/fstab.
fn parse_mounts(text: &str) -> Vec<Mount> {
    let parse = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (source, point, kind) = (words.next()?, words.next()?, words.next()?);
        let comment = source.starts_with('#');
        (kind == "xfs" && !comment).then(|| mount_of(source, point, words.next().unwrap_or("")))
    };
    text.lines().filter_map(parse).collect()
}

fn mount_of(source: &str, point: &str, options: &str) -> Mount {
    let option = |name: &str| {
        let value = options.split(',').find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
        value.map(|value| PathBuf::from(unescape(value)))
    };
    Mount {
        source: unescape(source).into(),
        point: unescape(point).into(),
        log: option("logdev"),
        realtime: option("rtdev"),
    }
}

/// Undoes the octal escapes of the tables: `\\040` is a space.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|digits| byte == b'\\' && digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        let value = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match value {
            Some(value) => {
                bytes.push(value);
                rest = &after[3..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mountinfo_with_devices_and_escapes() {
        let text = "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n\
                    40 35 7:0 / /mnt\\040three rw shared:5 - xfs /dev/loop0 rw,attr2,logdev=/dev/loop1,rtdev=/dev/sd\\134x\n\
                    broken line\n\
                    41 35 7:1 / /srv rw - xfs /dev/loop4 rw\n";
        let mounts = parse_mountinfo(text);
        let first = Mount {
            source: "/dev/loop0".into(),
            point: "/mnt three".into(),
            log: Some("/dev/loop1".into()),
            realtime: Some("/dev/sd\\x".into()),
        };
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0], first);
        assert_eq!((&mounts[1].log, &mounts[1].realtime), (&None, &None));
    }

    #[test]
    fn tables_of_three_columns_and_comments() {
        let text = "# /dev/sda1 / xfs\n/dev/sda1\t/ xfs\nproc /proc proc rw\n/dev/sdb /b xfs rw,rtdev=/dev/sdc 0 0\n";
        let points: Vec<_> = parse_mounts(text).into_iter().map(|mount| mount.point).collect();
        assert_eq!(points, [Path::new("/"), Path::new("/b")]);
    }

    #[test]
    fn escapes_that_are_none_stay() {
        assert_eq!(unescape(r"a\040b\777\0x\1"), r"a b\777\0x\1");
    }

    #[test]
    fn the_topmost_mount_of_a_place_counts() {
        let mount = |source: &str| Mount { source: source.into(), point: "/mnt".into(), log: None, realtime: None };
        let mounts = [mount("/below"), mount("/above")];
        assert_eq!(find(&mounts, Path::new("/mnt")).map(|mount| mount.source.as_path()), Some(Path::new("/above")));
        assert_eq!(find(&mounts, Path::new("/elsewhere")), None);
    }
}
