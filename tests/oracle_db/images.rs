//! The images of the comparison, made when they are asked for.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::reference::{Reference, run, said, unmount};

/// Where an image comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// mkfs.xfs of the reference makes it.
    Made {
        /// Its arguments.
        arguments: &'static [&'static str],
        /// Size of the data device.
        size: u64,
        /// Size of an external log device, if any.
        log: u64,
        /// Size of a realtime device, if any.
        realtime: u64,
        /// The words of `fill`, which fills it through a mount by this machine's kernel; `None` leaves it empty.
        fill: Option<&'static str>,
    },
    /// `testdata/db` has it: kernels that this machine does not run have filled it.
    Stored,
    /// `testdata/crash` has it, and this machine's kernel replays its log.
    Crash,
    /// A stored image, which commands of the reference have damaged.
    Damaged {
        /// The image.
        of: &'static str,
        /// The commands.
        commands: &'static [&'static str],
    },
}

/// An image, by the name that the rows use.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// Its name.
    pub name: &'static str,
    /// Where it comes from.
    pub source: Source,
}

const MIB: u64 = 1 << 20;

const fn filled(name: &'static str, size: u64, words: &'static str, arguments: &'static [&'static str]) -> Recipe {
    Recipe { name, source: Source::Made { arguments, size, log: 0, realtime: 0, fill: Some(words) } }
}

const fn fresh(name: &'static str, size: u64, realtime: u64, arguments: &'static [&'static str]) -> Recipe {
    Recipe { name, source: Source::Made { arguments, size, log: 0, realtime, fill: None } }
}

const fn stored(name: &'static str) -> Recipe {
    Recipe { name, source: Source::Stored }
}

const fn crash(name: &'static str) -> Recipe {
    Recipe { name, source: Source::Crash }
}

const fn damaged(name: &'static str, of: &'static str, commands: &'static [&'static str]) -> Recipe {
    Recipe { name, source: Source::Damaged { of, commands } }
}

/// All images.
pub const RECIPES: &[Recipe] = &[
    // mkfs.xfs's own choice of features
    filled("default", 600 * MIB, "", &[]),
    // btrees of several levels
    filled("small-blocks", 600 * MIB, "deep", &["-b", "size=1024"]),
    filled("large-blocks", 1500 * MIB, "", &["-b", "size=64k"]),
    // directory blocks of many blocks; small extent counters
    filled(
        "directory-blocks",
        600 * MIB,
        "deep",
        &["-b", "size=1024", "-n", "size=16384,parent=0", "-i", "nrext64=0,exchange=0"],
    ),
    // version 5 with little else
    filled(
        "plain",
        600 * MIB,
        "deep",
        &[
            "-m",
            "rmapbt=0,reflink=0,finobt=0,bigtime=0,inobtcount=0",
            "-i",
            "sparse=0,nrext64=0,exchange=0",
            "-n",
            "parent=0",
            "-b",
            "size=2k",
        ],
    ),
    // inode numbers of more than 32 bits
    filled("wide", 4 << 40, "few", &["-l", "size=64m", "-m", "reflink=0"]),
    Recipe {
        name: "external-log",
        source: Source::Made {
            arguments: &["-l", "logdev=LOG", "-s", "size=4096", "-i", "size=2048"],
            size: 400 * MIB,
            log: 100 * MIB,
            realtime: 0,
            fill: Some("few"),
        },
    },
    fresh("empty", 300 * MIB, 0, &["-L", "a label"]),
    fresh("stripes", 600 * MIB, 0, &["-d", "agcount=6,su=64k,sw=4", "-n", "version=ci", "-i", "maxpct=10"]),
    fresh("zoned", 300 * MIB, 2048 * MIB, &["-r", "rtdev=RT,zoned=1,rgsize=256m"]),
    // version 4 with blocks of 512 bytes; with file types and quota
    stored("v4"),
    stored("v4-quota"),
    stored("quota"),
    // realtime without groups and with them
    stored("realtime"),
    stored("groups"),
    crash("k73-default.1"),
    crash("k61-rr.1"),
    crash("i386-61.1"),
    damaged("damaged-headers", "quota", DAMAGED_HEADERS),
    damaged("damaged-trees", "v4", DAMAGED_TREES),
    damaged("damaged-inodes", "quota", DAMAGED_INODES),
    damaged("damaged-directories", "v4", DAMAGED_DIRECTORIES),
    damaged("damaged-quota", "quota", DAMAGED_QUOTA),
];

/// Counters and magic numbers of groups.
const DAMAGED_HEADERS: &[&str] = &[
    "agf 0",
    "write -d freeblks 7",
    "write -d longest 3",
    "agi 1",
    "write -d count 77",
    "write -d freecount 5",
    "write -d unlinked[3] 131",
    "agf 2",
    "write -d flcount 9",
    "write -d btreeblks 40",
    "sb 3",
    "write -d magicnum 1",
    "agf 3",
    "write -d versionnum 2",
];

/// Blocks of btrees.
const DAMAGED_TREES: &[&str] = &[
    "agf 1",
    "addr bnoroot",
    "addr ptrs[1]",
    "write -d recs[1].startblock 3",
    "agf 0",
    "addr cntroot",
    "write -d recs[1].blockcount 1",
    "write -d level 4",
    "agi 1",
    "addr root",
    "write -d level 3",
    "agi 0",
    "addr root",
    "write -d recs[1].freecount 60",
    "write -d recs[1].free 0xff00",
    "agf 2",
    "addr bnoroot",
    "write -d numrecs 900",
    "agi 2",
    "addr root",
    "write -d magic 1",
];

/// Fields of inodes, and extents that lie where others do.
const DAMAGED_INODES: &[&str] = &[
    "inode 72",
    "write -d core.nblocks 9",
    "inode 655433",
    "write -d core.mode 0",
    "inode 655434",
    "write -d core.format 1",
    "inode 655435",
    "write -d core.forkoff 200",
    "inode 786499",
    "write -d u3.bmx[0].startblock 10",
    "inode 262212",
    "write -d core.nextents 3",
    "inode 786496",
    "write -d core.size 3",
    "write -d next_unlinked 7",
    "inode 786502",
    "write -d core.version 1",
    "inode 655436",
    "write -d core.aformat 7",
];

/// Entries, indexes and free indexes of directories of every form.
const DAMAGED_DIRECTORIES: &[&str] = &[
    "inode 1310754",
    "dblock 0",
    "write -d btail.count 5",
    "write -d bu[5].inumber 0xffffffffffff",
    "inode 1572899",
    "dblock 0",
    "write -d bhdr.bestfree[0].length 9",
    "write -d bu[0].namelen 0",
    "inode 40",
    "dblock 0",
    "write -d dhdr.bestfree[1].offset 12",
    "write -d du[4].inumber 0xfffffff000000",
    "write -d du[9].tag 17",
    "dblock 67108864",
    "write -d lents[4].hashval 0x1234",
    "write -d lhdr.stale 2",
    "write -d lbests[0] 77",
    "inode 1310757",
    "dblock 134217728",
    "write -d fhdr.nused 1",
    "write -d fbests[1] 99",
    "dblock 67108864",
    "write -d nhdr.level 9",
    "inode 1572902",
    "dblock 8",
    "write -d dhdr.magic 7",
    "inode 1572896",
    "write -d u.sfdir2.hdr.i8count 3",
    "inode 1310752",
    "write -d u.sfdir2.list[0].namelen 200",
    "inode 524320",
    "write -d u.sfdir2.hdr.count 4",
];

/// Records of quota files.
const DAMAGED_QUOTA: &[&str] = &[
    "dquot -u 0",
    "write -d diskdq.id 5",
    "dquot -u 1",
    "write -d diskdq.magic 1",
    "dquot -g 0",
    "write -d diskdq.version 3",
    "dquot -p 0",
    "write -d diskdq.type 9",
];

/// An image that has been made.
#[derive(Clone, Debug)]
pub struct Image {
    /// The data device.
    pub data: PathBuf,
    /// The external log device, if any.
    pub log: Option<PathBuf>,
    /// The realtime device, if any.
    pub realtime: Option<PathBuf>,
}

impl Image {
    fn in_folder(folder: &Path) -> Self {
        let other = |name: &str| Some(folder.join(name)).filter(|path| path.exists());
        Image { data: folder.join("data"), log: other("log"), realtime: other("rt") }
    }

    /// What tells xfs_db or xfskit-db of the devices.
    pub fn arguments(&self) -> Vec<PathBuf> {
        let option =
            |letter: &str, path: &Option<PathBuf>| path.iter().flat_map(|path| [letter.into(), path.clone()]).collect();
        let log: Vec<PathBuf> = option("-l", &self.log);
        let realtime: Vec<PathBuf> = option("-R", &self.realtime);
        log.into_iter().chain(realtime).chain([self.data.clone()]).collect()
    }
}

/// Where images lie: in memory if there is room. `XFSKIT_DB_IMAGES` names a folder that keeps them for the next run.
pub struct Workshop {
    folder: PathBuf,
    made: Vec<OnceLock<Result<Image, String>>>,
    _temporary: Option<TempDir>,
}

impl Workshop {
    /// An empty one, unless images were kept.
    pub fn new() -> Self {
        let made = RECIPES.iter().map(|_| OnceLock::new()).collect();
        if let Some(folder) = std::env::var_os("XFSKIT_DB_IMAGES") {
            return Workshop { folder: folder.into(), made, _temporary: None };
        }
        let memory = Path::new("/dev/shm");
        let roomy = rustix::fs::statvfs(memory).is_ok_and(|space| space.f_bavail * space.f_frsize > 6 << 30);
        let parent = std::env::var_os("XFSKIT_WORK").map_or_else(std::env::temp_dir, PathBuf::from);
        let parent = if roomy { memory } else { &parent };
        let temporary = tempfile::Builder::new().prefix("xfskit-db.").tempdir_in(parent);
        let temporary = temporary.expect("the folder for images can be written");
        Workshop { folder: temporary.path().to_owned(), made, _temporary: Some(temporary) }
    }

    /// The image called `name`, made now if it has not been made yet.
    ///
    /// # Errors
    /// What went wrong, when there is none of that name, or it cannot be made.
    pub fn image(&self, name: &str, reference: &Reference) -> Result<Image, String> {
        let at = RECIPES.iter().position(|recipe| recipe.name == name).ok_or(format!("there is no image {name}"))?;
        let made = self.made[at].get_or_init(|| self.make(&RECIPES[at], reference));
        made.clone().map_err(|why| format!("image {name}: {why}"))
    }

    fn make(&self, recipe: &Recipe, reference: &Reference) -> Result<Image, String> {
        let folder = self.folder.join(recipe.name);
        if !folder.join("ready").exists() {
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
            make(recipe, &folder, reference)?;
            File::create(folder.join("ready")).map_err(|error| error.to_string())?;
        }
        Ok(Image::in_folder(&folder))
    }
}

fn make(recipe: &Recipe, folder: &Path, reference: &Reference) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    match recipe.source {
        Source::Made { arguments, size, log, realtime, fill } => {
            for (name, size) in [("data", size), ("log", log), ("rt", realtime)] {
                if size > 0 {
                    sparse(&folder.join(name), size)?;
                }
            }
            let words = arguments.iter().map(|word| word.replace("LOG", "log").replace("RT", "rt"));
            let mut mkfs = reference.tool("mkfs.xfs", ["-q", "-f"]);
            let output =
                mkfs.args(words).arg("data").current_dir(folder).output().map_err(|error| error.to_string())?;
            if !output.status.success() {
                return Err(said(&output));
            }
            if let Some(words) = fill {
                let mount = Mount::new(folder)?;
                let script = root.join("tests/oracle_db/fill");
                let words = words.split_whitespace().map(PathBuf::from);
                run("python3", [script, mount.point.clone()].into_iter().chain(words))?;
                mount.unmount()?;
            }
            Ok(())
        }
        Source::Stored => {
            let packed = |suffix: &str| root.join("testdata/db").join(format!("{}.{suffix}.zst", recipe.name));
            unpack(&packed("img"), &folder.join("data"))?;
            if packed("rt").exists() { unpack(&packed("rt"), &folder.join("rt")) } else { Ok(()) }
        }
        Source::Crash => {
            let packed = root.join("testdata/crash").join(format!("{}.img.zst", recipe.name));
            unpack(&packed, &folder.join("data"))?;
            Mount::new(folder)?.unmount()
        }
        Source::Damaged { of, commands } => {
            let data = folder.join("data");
            unpack(&root.join("testdata/db").join(format!("{of}.img.zst")), &data)?;
            let mut damage = reference.tool("xfs_db", ["-x"]);
            let output = damage.args(commands.iter().flat_map(|command| ["-c", command])).arg(&data).output();
            let output = output.map_err(|error| error.to_string())?;
            let text = String::from_utf8_lossy(&output.stdout);
            if text.contains("not found") || text.contains("error") { Err(text.into_owned()) } else { Ok(()) }
        }
    }
}

fn sparse(path: &Path, size: u64) -> Result<(), String> {
    let made = File::create(path).and_then(|file| file.set_len(size));
    made.map_err(|error| format!("{}: {error}", path.display()))
}

/// Unpacks a file, leaving out what is zero.
fn unpack(packed: &Path, to: &Path) -> Result<(), String> {
    let unpack = || -> std::io::Result<()> {
        let mut source = zstd::stream::read::Decoder::new(File::open(packed)?)?;
        source.window_log_max(31)?;
        let file = File::create(to)?;
        let (mut piece, mut at) = (vec![0; 1 << 16], 0);
        loop {
            let mut len = 0;
            while len < piece.len() {
                match source.read(&mut piece[len..])? {
                    0 => break,
                    more => len += more,
                }
            }
            if len == 0 {
                return file.set_len(at);
            }
            if piece[..len].iter().any(|byte| *byte != 0) {
                file.write_all_at(&piece[..len], at)?;
            }
            at += len as u64;
        }
    };
    unpack().map_err(|error| format!("{}: {error}", packed.display()))
}

/// A mounted image, and the loop device of its log.
struct Mount {
    point: PathBuf,
    log: Option<String>,
    mounted: bool,
}

impl Mount {
    fn new(folder: &Path) -> Result<Self, String> {
        let image = Image::in_folder(folder);
        let point = folder.join("mnt");
        fs::create_dir_all(&point).map_err(|error| error.to_string())?;
        let mut mount = Mount { point, log: None, mounted: false };
        let mut options = "loop,nouuid".to_owned();
        if let Some(log) = &image.log {
            let device = run("losetup", ["-f".as_ref(), "--show".as_ref(), log.as_os_str()])?;
            options.push_str(&format!(",logdev={device}"));
            mount.log = Some(device);
        }
        run(
            "mount",
            ["-t", "xfs", "-o", &options]
                .map(AsRef::as_ref)
                .into_iter()
                .chain([image.data.as_os_str(), mount.point.as_os_str()]),
        )?;
        mount.mounted = true;
        Ok(mount)
    }

    fn unmount(mut self) -> Result<(), String> {
        self.mounted = false;
        unmount(&self.point)?;
        self.log.take().map_or(Ok(()), |device| run("losetup", ["-d", &device]).map(|_| ()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // left only after an error, which is the one that counts
        if self.mounted {
            let _ = unmount(&self.point);
        }
        if let Some(device) = self.log.take() {
            let _ = run("losetup", ["-d", &device]);
        }
    }
}
