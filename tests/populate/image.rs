//! New images in files, made by the library.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::uuid;
use xfskit::device::{Access, Device, FileDevice, OpenFile};
use xfskit::error::{DeviceRole, Result};
use xfskit::mkfs::devices::{DeviceFacts, DeviceKind, Devices};
use xfskit::mkfs::layout::{Layout, Timestamp};
use xfskit::mkfs::resolve::{Defaults, Environment, resolve};
use xfskit::mkfs::suboptions::Group;
use xfskit::mkfs::{self, Options};
use xfskit::populate::{BuildOptions, Builder, Content, Summary};

/// What is asked of mkfs: the size of the image in MiB, and lists of options by letter.
#[derive(Clone, Debug)]
pub struct Wish {
    /// A name for it.
    pub name: &'static str,
    /// Bytes of the image.
    pub size: u64,
    /// Lists of options: letter and list.
    pub lists: Vec<(char, String)>,
    /// Whether the log is to be as small as can be.
    pub smallest_log: bool,
}

impl Wish {
    /// An image of `mib` MiB with the options of a command line: `-b size=1k -m crc=0`.
    pub fn new(name: &'static str, mib: u64, options: &str) -> Self {
        let mut words = options.split_whitespace();
        let mut lists = Vec::new();
        while let (Some(letter), Some(list)) = (words.next(), words.next()) {
            lists.push((letter.chars().nth(1).expect("a letter"), list.to_owned()));
        }
        Wish { name, size: mib << 20, lists, smallest_log: false }
    }

    /// The layout that mkfs decides for.
    pub fn layout(&self) -> Result<Layout> {
        let mut options = Options::default();
        options.unsupported = true;
        options.smallest_log = self.smallest_log;
        for (letter, list) in &self.lists {
            let group = Group::ALL.into_iter().find(|group| group.letter() == *letter).expect("a group of options");
            options.add_list(group, list)?;
        }
        let environment = Environment {
            cpus: 4,
            time: Timestamp { sec: 1_700_000_000, nsec: 0 },
            seed: Some(0x5345_4544),
            uuid: uuid!("11111111-2222-3333-4444-555555555555"),
            discard: false,
            force: true,
            dry_run: false,
            test_suite: false,
        };
        let devices =
            Devices { data: DeviceFacts::file("image", DeviceKind::File, self.size), log: None, realtime: None };
        Ok(resolve(&options, &devices, &Defaults::default(), &environment)?.layout)
    }

    /// The same for an image of `blocks` blocks, with the smallest log.
    pub fn sized(&self, blocks: u64, block_size: u64) -> Self {
        Wish { size: blocks * block_size, smallest_log: true, ..self.clone() }
    }

    /// A new file of its size.
    pub fn file(&self, folder: &Path) -> (PathBuf, Arc<dyn Device>) {
        let path = folder.join(format!("{}.img", self.name));
        let file = std::fs::File::create(&path).expect("a file can be made");
        file.set_len(self.size).expect("a file can be sparse");
        let device = FileDevice::open(&path, OpenFile { access: Access::Write, role: DeviceRole::Data });
        (path, Arc::new(device.expect("it can be opened")))
    }

    /// Makes the filesystem on `device` and fills it with what `fill` makes.
    pub fn build(
        &self,
        device: &Arc<dyn Device>,
        fill: impl FnOnce(&mut Builder<'_>) -> Result<Content>,
    ) -> Result<Summary> {
        let layout = self.layout()?;
        let unfinished = mkfs::prepare(&layout, &**device, None, None, &mut || {})?;
        let options = BuildOptions { seed: layout.seed, trial: false };
        let mut builder = Builder::new(unfinished.superblock(), device, options)?;
        let content = fill(&mut builder)?;
        builder.finish(&content)
    }
}
