//! The image or device that a tool works on, and the arguments that say which part of it.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};

use super::image::{Reading, open_file};
use crate::device::{ByteRange, Device, FileDevice, OpenFile, PartDevice, PartitionTable};
use crate::error::{DeviceRole, Error};

/// Bytes of the smallest sector; no filesystem begins inside of one.
const SMALLEST_SECTOR: u64 = 512;

/// Arguments that pick a part of a file: nothing, a byte offset, or a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceArgs {
    /// Where the filesystem begins in the file, in bytes.
    pub offset: Option<u64>,
    /// The partition that holds the filesystem, from 1.
    pub partition: Option<u32>,
}

// Written out: a derived implementation would take the struct's documentation for the description of the command.
impl Args for SourceArgs {
    fn augment_args(command: Command) -> Command {
        command
            .arg(
                Arg::new("offset")
                    .long("offset")
                    .value_name("BYTES")
                    .value_parser(parse_bytes)
                    .conflicts_with("partition")
                    .help("Work on the filesystem that begins BYTES into the file; suffixes k, m, g, t, p, e"),
            )
            .arg(
                Arg::new("partition")
                    .long("partition")
                    .value_name("N")
                    .value_parser(value_parser!(u32).range(1..))
                    .help("Work on partition N of a whole-disk image (GPT or MBR)"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SourceArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(SourceArgs { offset: matches.get_one("offset").copied(), partition: matches.get_one("partition").copied() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// An opened file or device, and the part of it that was asked for.
pub struct Source {
    /// The whole file or device.
    pub file: Arc<FileDevice>,
    /// The part to work on; the same as `file` where no part was asked for.
    pub device: Arc<dyn Device>,
}

impl SourceArgs {
    /// Opens `path`, and in it the part that the arguments pick.
    ///
    /// # Errors
    /// Those of [`FileDevice::open`] and of the partition table, with the path.
    pub fn open(&self, path: &Path, how: OpenFile) -> anyhow::Result<Source> {
        let file = FileDevice::open(path, how)
            .map_err(of_system)
            .with_context(|| format!("cannot open {}", path.display()))?;
        let file = Arc::new(file);
        let whole: Arc<dyn Device> = Arc::clone(&file) as Arc<dyn Device>;
        let device = self.part_of(whole).with_context(|| path.display().to_string())?;
        Ok(Source { file, device })
    }

    /// Opens `path` for reading alone, and in it the part that the arguments pick.
    ///
    /// # Errors
    /// As [`SourceArgs::open`].
    pub fn open_as(&self, path: &Path, reading: Reading) -> anyhow::Result<Arc<dyn Device>> {
        let file = open_file(path, DeviceRole::Data, reading)?;
        self.part_of(file).with_context(|| path.display().to_string())
    }

    /// Whether only a part of the file is meant.
    pub fn is_part(&self) -> bool {
        self.offset.is_some() || self.partition.is_some()
    }

    fn part_of(&self, file: Arc<dyn Device>) -> crate::error::Result<Arc<dyn Device>> {
        if let Some(offset) = self.offset.filter(|offset| !offset.is_multiple_of(SMALLEST_SECTOR)) {
            return Err(Error::Usage(format!("--offset {offset} is no multiple of {SMALLEST_SECTOR}")));
        }
        let range = match (self.offset, self.partition) {
            (Some(start), _) if start > file.len() => {
                let len = file.len();
                return Err(Error::Usage(format!("--offset {start} lies behind the end; allowed: 0 to {len}")));
            }
            (Some(start), _) => ByteRange { start, len: file.len().saturating_sub(start) },
            (None, Some(number)) => PartitionTable::read(&*file)?.find(&*file, number)?,
            (None, None) => return Ok(file),
        };
        Ok(Arc::new(PartDevice::new(file, range)?))
    }
}

/// An error of the system without its place, where that is no device.
pub(super) fn of_system(error: Error) -> anyhow::Error {
    match error {
        Error::Io { error, .. } => error.into(),
        other => other.into(),
    }
}

/// A count of bytes, decimal or hexadecimal (`0x`), with an optional suffix of one letter.
pub(super) fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is no number of bytes");
    let (digits, shift) = match text.chars().last().map(|last| last.to_ascii_lowercase()) {
        _ if text.starts_with("0x") => (text, 0),
        Some('k') => (&text[..text.len() - 1], 10),
        Some('m') => (&text[..text.len() - 1], 20),
        Some('g') => (&text[..text.len() - 1], 30),
        Some('t') => (&text[..text.len() - 1], 40),
        Some('p') => (&text[..text.len() - 1], 50),
        Some('e') => (&text[..text.len() - 1], 60),
        _ => (text, 0),
    };
    let number = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    number.map_err(|_| wrong())?.checked_mul(1 << shift).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_with_suffixes() {
        for (text, expected) in
            [("0", 0), ("1048576", 1 << 20), ("1m", 1 << 20), ("3K", 3072), ("0x10", 16), ("15e", 15 << 60)]
        {
            assert_eq!(parse_bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "k", "-1", "+1x", "16e", "1kk", "0x", "1.5m", "ä", "18446744073709551616"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_offset_picks_the_rest_of_the_file() {
        let file = tempfile::NamedTempFile::new().expect("invariant: a temporary file can be made");
        std::fs::write(file.path(), [&[0; 512][..], b"456789"].concat()).expect("invariant: writable");
        let part = SourceArgs { offset: Some(512), partition: None };
        let source = part.open(file.path(), OpenFile::READ).expect("readable");
        assert_eq!((source.device.len(), source.file.len()), (6, 518));
        let mut buf = [0; 2];
        source.device.read_at(1, &mut buf).expect("readable");
        assert_eq!(&buf, b"56");
        let behind = SourceArgs { offset: Some(1024), partition: None };
        assert!(behind.open(file.path(), OpenFile::READ).is_err());
        let partition = SourceArgs { offset: None, partition: Some(1) };
        let error = partition.open(file.path(), OpenFile::READ).err().map(|error| format!("{error:#}"));
        assert!(error.is_some_and(|text| text.ends_with("there is no partition table")));
    }
}
