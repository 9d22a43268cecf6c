//! The filesystems that readers are tried on: parsed from `images.txt`, made by mkfs.xfs, changed, described by xfskit.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use xfskit::device::{FileDevice, OpenFile};
use xfskit::geometry::Geometry;
use xfskit::info::{LogStateName, features_that_matter};
use xfskit::ondisk::feature_bits::incompat;
use xfskit::ondisk::{OnDisk, RawSuperblock, crc};
use xfskit::readers::Feature;
use zerocopy::IntoBytes;

use crate::reference::{Reference, said};

const SIZE: u64 = 320 << 20;
/// What `MIN` stands for, without the options of the naming section.
const MINIMAL: [(&str, &[&str]); 3] = [
    ("-m", &["crc=1", "finobt=0", "rmapbt=0", "reflink=0", "inobtcount=0", "bigtime=0", "metadir=0"]),
    ("-i", &["sparse=0", "nrext64=0", "exchange=0"]),
    ("-n", &["parent=0"]),
];
/// The contents of `/boot/hello`.
pub const HELLO: &str = "hello world\n";

/// What is changed after mkfs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    None,
    Incompat(u32),
    RoCompat(u32),
    Uuid,
    Log(u32),
}

/// A line of `images.txt`.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Its name.
    pub name: String,
    realtime: u64,
    change: Change,
    arguments: Vec<String>,
}

/// A filesystem that was made.
#[derive(Debug)]
pub struct Image {
    /// Name of its recipe.
    pub name: String,
    /// The data device.
    pub data: PathBuf,
    /// The realtime device.
    pub realtime: Option<PathBuf>,
    /// Whether it has a file `/boot/hello`.
    pub filled: bool,
    /// Bits for `features_log_incompat` of a dirty log.
    pub log_bits: Option<u32>,
    /// What decides who can read it.
    pub features: BTreeSet<Feature>,
}

/// The lines of `images.txt`.
pub fn recipes() -> Vec<Recipe> {
    let lines = include_str!("images.txt").lines();
    lines.filter(|line| !line.starts_with('#') && !line.trim().is_empty()).map(parse).collect()
}

fn parse(line: &str) -> Recipe {
    let mut words = line.split_whitespace();
    let mut word = || words.next().expect("a line has a name, a size and a change");
    let (name, size, change) = (word().to_owned(), word(), word());
    let number = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).expect("hexadecimal bits");
    let realtime = match size.split_at(size.len() - 1) {
        (count, "M") => count.parse::<u64>().expect("a size") << 20,
        (count, "G") => count.parse::<u64>().expect("a size") << 30,
        _ => 0,
    };
    let change = match change.split_once('=') {
        Some(("incompat", bits)) => Change::Incompat(number(bits)),
        Some(("ro_compat", bits)) => Change::RoCompat(number(bits)),
        Some(("log", bits)) => Change::Log(number(bits)),
        _ if change == "uuid" => Change::Uuid,
        _ => Change::None,
    };
    Recipe { name, realtime, change, arguments: arguments(words) }
}

/// The arguments of mkfs.xfs: `MIN` written out, with what follows it in place of its own values.
fn arguments<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let words: Vec<&str> = words.collect();
    let Some((&"MIN", words)) = words.split_first() else { return words.into_iter().map(str::to_owned).collect() };
    let name = |word: &str| word.split('=').next().map(str::to_owned);
    let overridden = |minimal: &str| words.iter().find(|word| name(word) == name(minimal)).copied();
    let mut arguments = Vec::new();
    for (option, values) in MINIMAL {
        let values: Vec<&str> = values.iter().map(|value| overridden(value).unwrap_or(value)).collect();
        arguments.extend([option.to_owned(), values.join(",")]);
    }
    let is_value =
        |word: &&&str| MINIMAL.iter().any(|(_, values)| values.iter().any(|value| name(value) == name(word)));
    arguments.extend(words.iter().filter(|word| !is_value(word)).map(|word| (*word).to_owned()));
    arguments
}

/// Makes a filesystem in `folder`.
pub fn make(recipe: &Recipe, folder: &Path, reference: &Reference) -> Result<Image, String> {
    let data = folder.join(format!("{}.img", recipe.name));
    let realtime = (recipe.realtime > 0).then(|| folder.join(format!("{}.rt", recipe.name)));
    let sized = |path: &Path, size| File::create(path).and_then(|file| file.set_len(size)).map_err(|e| e.to_string());
    sized(&data, SIZE)?;
    let mut mkfs = reference.tool("mkfs.xfs", ["-q", "-f"]);
    mkfs.args(&recipe.arguments);
    if let Some(realtime) = &realtime {
        sized(realtime, recipe.realtime)?;
        mkfs.arg("-r").arg(format!("rtdev={}", realtime.display()));
    }
    // mkfs.xfs fills no filesystem whose realtime volume is zoned
    let filled = !recipe.arguments.iter().any(|argument| argument.contains("zoned=1"));
    if filled {
        mkfs.arg("-p").arg(prototype(folder)?);
    }
    let made = mkfs.arg(&data).output().map_err(|error| error.to_string())?;
    if !made.status.success() {
        return Err(said(&made));
    }
    change(&recipe.change, &data, reference)?;
    let log_bits = if let Change::Log(bits) = recipe.change { Some(bits) } else { None };
    let features = features(&data, log_bits)?;
    Ok(Image { name: recipe.name.clone(), data, realtime, filled, log_bits, features })
}

/// A prototype file that describes a folder with one file.
fn prototype(folder: &Path) -> Result<PathBuf, String> {
    let (hello, proto) = (folder.join("hello"), folder.join("proto"));
    let text = format!("/\n0 0\nd--755 0 0\nboot d--755 0 0\nhello ---644 0 0 {}\n$\n$\n", hello.display());
    fs::write(&hello, HELLO).and_then(|()| fs::write(&proto, text)).map_err(|error| error.to_string())?;
    Ok(proto)
}

fn change(change: &Change, data: &Path, reference: &Reference) -> Result<(), String> {
    match change {
        Change::None | Change::Log(_) => Ok(()),
        Change::Uuid => {
            let output = reference.tool("xfs_db", ["-x", "-c", "uuid generate"]).arg(data).output();
            let output = output.map_err(|error| error.to_string())?;
            let (sb, _) = superblock(data)?;
            let done = sb.features_incompat.get() & incompat::META_UUID != 0;
            if done { Ok(()) } else { Err(said(&output)) }
        }
        Change::Incompat(bits) => edit(data, |sb| sb.features_incompat.set(sb.features_incompat.get() | bits)),
        Change::RoCompat(bits) => edit(data, |sb| sb.features_ro_compat.set(sb.features_ro_compat.get() | bits)),
    }
}

/// The primary superblock and its sector.
fn superblock(data: &Path) -> Result<(RawSuperblock, Vec<u8>), String> {
    let mut sector = vec![0; 512];
    File::open(data).and_then(|file| file.read_exact_at(&mut sector, 0)).map_err(|error| error.to_string())?;
    let (sb, _) = RawSuperblock::prefix(&sector).ok_or("no superblock")?;
    Ok((*sb, sector.clone()))
}

fn edit(data: &Path, edit: impl Fn(&mut RawSuperblock)) -> Result<(), String> {
    let (mut sb, mut sector) = superblock(data)?;
    edit(&mut sb);
    sector[..RawSuperblock::SIZE].copy_from_slice(sb.as_bytes());
    crc::stamp(&mut sector, RawSuperblock::CRC_OFFSET);
    let file = OpenOptions::new().write(true).open(data).map_err(|error| error.to_string())?;
    file.write_all_at(&sector, 0).map_err(|error| error.to_string())
}

/// What xfskit says decides who can read it.
fn features(data: &Path, log_bits: Option<u32>) -> Result<BTreeSet<Feature>, String> {
    let (mut sb, _) = superblock(data)?;
    let log = if log_bits.is_some() { LogStateName::Dirty } else { LogStateName::Clean };
    sb.features_log_incompat.set(log_bits.unwrap_or(0));
    // the image must be readable as a device, too
    FileDevice::open(data, OpenFile::READ).map_err(|error| error.to_string())?;
    Ok(features_that_matter(&Geometry::assume(&sb), log))
}
