//! What inodes say, as lines of text.

use crate::files::name::escape;
use crate::files::{Stat, time};
use crate::forms::FileType;

/// What a kind of file is called.
pub(super) fn kind(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "fifo",
        FileType::CharDevice => "character device",
        FileType::Directory => "directory",
        FileType::BlockDevice => "block device",
        FileType::Regular => "file",
        FileType::Symlink => "symlink",
        FileType::Socket => "socket",
    }
}

/// The letter of a kind of file, as ls has it.
fn letter(kind: FileType) -> char {
    match kind {
        FileType::Fifo => 'p',
        FileType::CharDevice => 'c',
        FileType::Directory => 'd',
        FileType::BlockDevice => 'b',
        FileType::Regular => '-',
        FileType::Symlink => 'l',
        FileType::Socket => 's',
    }
}

/// Kind and access bits in ten characters, as ls has them.
pub(super) fn mode(stat: &Stat) -> String {
    let bits = stat.permissions;
    let mut text = String::from(letter(stat.file_type));
    for (shift, special, set, alone) in [(6, 0o4000, 's', 'S'), (3, 0o2000, 's', 'S'), (0, 0o1000, 't', 'T')] {
        let bits_of_one = bits >> shift & 7;
        text.push(if bits_of_one & 4 != 0 { 'r' } else { '-' });
        text.push(if bits_of_one & 2 != 0 { 'w' } else { '-' });
        text.push(match (bits & special != 0, bits_of_one & 1 != 0) {
            (true, true) => set,
            (true, false) => alone,
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// A line of `ls -l`, up to the name.
pub(super) fn long(stat: &Stat) -> String {
    let size = match stat.device {
        Some(device) => format!("{}, {}", device.major, device.minor),
        None => stat.size.to_string(),
    };
    let time = time::show_seconds(stat.mtime);
    format!("{} {:>3} {:>5} {:>5} {size:>10} {time}", mode(stat), stat.nlink, stat.uid, stat.gid)
}

/// All that an inode says, in lines.
pub(super) fn stat(path: &[u8], stat: &Stat, target: Option<&[u8]>) -> String {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push(format!("{name:<12} {value}"));
    line("path", escape(path));
    if let Some(target) = target {
        line("target", escape(target));
    }
    line("inode", format!("{}, generation {}", stat.ino, stat.generation));
    line("type", kind(stat.file_type).to_owned());
    line("mode", format!("{:04o} {}", stat.permissions, mode(stat)));
    line("links", stat.nlink.to_string());
    line("owner", format!("{}:{}, project {}", stat.uid, stat.gid, stat.project));
    if let Some(device) = stat.device {
        line("device", format!("{}, {}", device.major, device.minor));
    }
    line("size", format!("{}, allocated {}", stat.size, stat.allocated));
    line("extents", format!("{}, of attributes {}", stat.extents, stat.attribute_extents));
    line("accessed", time::show(stat.atime));
    line("modified", time::show(stat.mtime));
    line("changed", time::show(stat.ctime));
    if let Some(created) = stat.crtime {
        line("created", time::show(created));
    }
    let flags: Vec<_> = stat.flags.names().collect();
    if !flags.is_empty() {
        line("flags", flags.join(", "));
    }
    lines.join("\n") + "\n"
}
