//! What a new filesystem is filled with: from arguments to sources.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

use anyhow::{Context, bail};
use clap::ArgMatches;

use super::TOOL;
use crate::cli::observer::Terminal;
use crate::cli::source::parse_bytes;
use crate::error::{Error, Result};
use crate::mkfs::Options;
use crate::mkfs::devices::Devices;
use crate::mkfs::layout::Layout;
use crate::mkfs::numbers::{self, Units};
use crate::mkfs::suboptions::Key;
use crate::populate::{Archive, Content, DataSink, Exclude, FileIdentity, Headroom, Map, Prototype, Sources};

/// The longest file of changes that is read, in bytes.
const LONGEST_MAP: u64 = 16 << 20;
/// The name that stands for the standard input.
const STDIN: &str = "-";

/// What was asked for.
#[derive(Debug)]
pub(super) struct Fill {
    prototype: Option<Prototype>,
    archives: Vec<String>,
    exclude: Vec<String>,
    owner: Option<(u32, u32)>,
    map: Option<String>,
    /// Space that the smallest image is to have left, where the smallest is asked for.
    pub minimize: Option<Headroom>,
}

impl Fill {
    /// From the arguments and the suboptions of `-p`; `None` when nothing is to be put into the filesystem.
    ///
    /// # Errors
    /// `Usage`.
    pub fn from_matches(matches: &ArgMatches, options: &Options) -> Result<Option<Self>> {
        let all = |name: &str| matches.get_many::<String>(name).into_iter().flatten().cloned().collect::<Vec<_>>();
        let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
        let prototype = options.text(Key::ProtoFile).map(|path| Prototype {
            path: path.into(),
            atime: options.switch(Key::ProtoAtime).unwrap_or(false),
            slashes_are_spaces: options.switch(Key::ProtoSlashesAreSpaces).unwrap_or(false),
        });
        let (archives, exclude) = (all("tar"), all("exclude"));
        if archives.iter().filter(|name| *name == STDIN).count() > 1 {
            return Err(Error::Usage("--tar -: the standard input can be read only once".into()));
        }
        if prototype.is_none() && archives.is_empty() {
            let alone = [("exclude", "--exclude"), ("minimize", "--minimize")];
            let given = |name: &str| matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine);
            if let Some((_, option)) = alone.into_iter().find(|(name, _)| given(name)) {
                return Err(Error::Usage(format!("{option} is about files, which -p or --tar names")));
            }
            for key in [Key::ProtoAtime, Key::ProtoSlashesAreSpaces] {
                if options.given(key) {
                    let option = key.suboption().written();
                    return Err(Error::Usage(format!("{option} is about files, which -p FILE or -p FOLDER names")));
                }
            }
        }
        let headroom = text("headroom").map(headroom).transpose()?;
        let minimize = matches.get_flag("minimize").then(|| headroom.unwrap_or(Headroom::Bytes(0)));
        if headroom.is_some() && minimize.is_none() {
            return Err(Error::Usage("--headroom is about the smallest image, which --minimize asks for".into()));
        }
        let fill = Fill {
            prototype,
            archives,
            exclude,
            owner: text("owner").map(owner).transpose()?,
            map: text("map").map(str::to_owned),
            minimize,
        };
        let nothing =
            fill.prototype.is_none() && fill.archives.is_empty() && fill.owner.is_none() && fill.map.is_none();
        Ok(if nothing { None } else { Some(fill) })
    }

    /// Opens all sources, so that one that is not there is said before anything is made. `layout` says what a block and a
    /// sector are.
    pub fn open(&self, layout: &Layout) -> anyhow::Result<Input> {
        let archives = self.archives.iter().map(|name| -> anyhow::Result<(String, Box<dyn Read>)> {
            Ok(match name.as_str() {
                STDIN => ("the standard input".to_owned(), Box::new(io::stdin().lock())),
                path => (path.to_owned(), Box::new(File::open(path).with_context(|| path.to_owned())?)),
            })
        });
        let archives = archives.collect::<anyhow::Result<_>>()?;
        let exclude = Exclude::new(&self.exclude).context("--exclude")?;
        let map = self.map.as_deref().map(read_map).transpose()?;
        if let Some(prototype) = &self.prototype {
            fs::metadata(&prototype.path).with_context(|| prototype.path.display().to_string())?;
        }
        let units = Units { block: Some(layout.block.bytes()), sector: Some(layout.sector.bytes()) };
        Ok(Input { prototype: self.prototype.clone(), archives, exclude, owner: self.owner, map, units })
    }
}

/// Sources that are open.
pub(super) struct Input {
    prototype: Option<Prototype>,
    archives: Vec<(String, Box<dyn Read>)>,
    exclude: Exclude,
    owner: Option<(u32, u32)>,
    map: Option<Map>,
    units: Units,
}

impl Input {
    /// Reads everything. The bytes of files go to `sink`.
    ///
    /// # Errors
    /// Those of [`Sources::read`].
    pub fn read(self, devices: &Devices, sink: &mut dyn DataSink) -> Result<Content> {
        let size = |text: &str| numbers::size(text, self.units).and_then(|size| u64::try_from(size).ok());
        let archives = self.archives.into_iter().map(|(name, reader)| Archive { name, reader }).collect();
        let sources = Sources {
            prototype: self.prototype,
            archives,
            exclude: self.exclude,
            owner: self.owner,
            map: self.map,
            forbidden: identities(devices),
            size: &size,
        };
        sources.read(sink, &Terminal::new(TOOL, false))
    }
}

/// The files that are being written.
fn identities(devices: &Devices) -> HashSet<FileIdentity> {
    let all = [Some(&devices.data), devices.log.as_ref(), devices.realtime.as_ref()];
    let found = all.into_iter().flatten().filter_map(|facts| fs::metadata(&facts.name).ok());
    found.map(|found| FileIdentity { device: found.dev(), inode: found.ino() }).collect()
}

fn read_map(path: &str) -> anyhow::Result<Map> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST_MAP + 1).read_to_end(&mut text));
    read.with_context(|| format!("--map {path}"))?;
    if text.len() as u64 > LONGEST_MAP {
        bail!("--map {path}: longer than {LONGEST_MAP} bytes, which are allowed");
    }
    Ok(Map::parse(path, &text)?)
}

fn owner(text: &str) -> Result<(u32, u32)> {
    let id = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|id| digits && *id != u32::MAX)
    };
    let ids = text.split_once(':').and_then(|(uid, gid)| id(uid).zip(id(gid)));
    ids.ok_or_else(|| Error::Usage(format!("--owner {text}: allowed: UID:GID, numbers of 0 to 4294967294")))
}

fn headroom(text: &str) -> Result<Headroom> {
    let share = |text: &str| text.parse::<u8>().ok().filter(|share| *share < 100).map(Headroom::Percent);
    let headroom = match text.strip_suffix('%') {
        Some(text) => share(text),
        None => parse_bytes(text).ok().map(Headroom::Bytes),
    };
    let allowed = "allowed: bytes with a suffix of k, m, g, t, p or e, or 0% to 99%";
    headroom.ok_or_else(|| Error::Usage(format!("--headroom {text}: {allowed}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::mkfs::command;
    use crate::mkfs::suboptions::Group;

    fn fill(arguments: &[&str]) -> Result<Option<Fill>> {
        let matches = command().try_get_matches_from([&["xfskit-mkfs"], arguments].concat()).expect("known options");
        let mut options = Options::default();
        if let Some(list) = matches.get_one::<String>("proto") {
            options.add_list(Group::Proto, list)?;
        }
        Fill::from_matches(&matches, &options)
    }

    #[test]
    fn options_come_together() {
        assert!(fill(&["x.img"]).expect("allowed").is_none());
        let found = fill(&["-p", "a=b,atime=1", "--tar", "-", "--tar", "x", "--owner", "5:6", "x.img"]);
        let found = found.expect("allowed").expect("something");
        let prototype = found.prototype.expect("a prototype");
        assert_eq!((prototype.path.to_str(), prototype.atime), (Some("a=b"), true));
        assert_eq!((found.archives, found.owner), (vec!["-".to_owned(), "x".to_owned()], Some((5, 6))));
        let minimized = fill(&["-p", "a", "--minimize", "--headroom", "10%"]).expect("allowed").expect("something");
        assert_eq!(minimized.minimize, Some(Headroom::Percent(10)));
        let minimized = fill(&["-p", "a", "--minimize"]).expect("allowed").expect("something");
        assert_eq!(minimized.minimize, Some(Headroom::Bytes(0)));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (arguments, word) in [
            (&["--exclude", "x"][..], "--exclude"),
            (&["--minimize"], "--minimize"),
            (&["-p", "atime=1"], "-p atime"),
            (&["-p", "a,b"], "-p file"),
            (&["-p", "a", "--headroom", "5m"], "--headroom"),
            (&["-p", "a", "--minimize", "--headroom", "100%"], "100%"),
            (&["-p", "a", "--minimize", "--headroom", "-1"], "-1"),
            (&["--tar", "-", "--tar", "-"], "only once"),
            (&["--owner", "root"], "UID:GID"),
            (&["--owner", "1:4294967295"], "UID:GID"),
        ] {
            let error = fill(arguments).map(|_| ()).expect_err(word).to_string();
            assert!(error.contains(word), "{arguments:?}: {error}");
        }
    }
}
