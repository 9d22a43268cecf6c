//! The argument sets of `mkfs/matrix.txt` and `mkfs/refused.txt`, parsed, and the choice among them.

use std::path::{Path, PathBuf};

/// What a file holds before a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Content {
    /// Nothing: a sparse file.
    Sparse,
    /// 0xAA in every byte.
    Filled,
    /// Another XFS.
    OldXfs,
    /// The file does not exist; the arguments make it.
    Absent,
}

/// One file of a set.
#[derive(Clone, Debug)]
pub struct FileSpec {
    /// `d`, `l` or `r`: the name among the arguments.
    pub role: char,
    /// Its size in bytes.
    pub size: u64,
    /// What it holds.
    pub content: Content,
    /// The sector size of the loop device through which it is reached, if it is.
    pub loop_sector: Option<u32>,
    /// The minimum and the optimal I/O size of the guest's disk that it becomes, if it does.
    pub stripe: Option<(u32, u32)>,
}

/// One argument set.
#[derive(Clone, Debug)]
pub struct Set {
    /// Its name, unique in its file.
    pub name: String,
    /// Its files.
    pub files: Vec<FileSpec>,
    /// The configuration file that `{c}` stands for.
    pub conf: Option<PathBuf>,
    /// Whether the arguments write a file `{o}`.
    pub writes_out: bool,
    /// Whether the variables are set with which fstests asks for unsupported sizes.
    pub fstests: bool,
    /// Whether `-f` is given in front of the arguments.
    pub force: bool,
    /// The arguments, with their placeholders.
    pub args: Vec<String>,
    /// What the error message must contain; only of sets that are refused.
    pub names: Option<String>,
}

impl Set {
    /// The file of `role`, if the set has one.
    pub fn file(&self, role: char) -> Option<&FileSpec> {
        self.files.iter().find(|file| file.role == role)
    }

    /// Whether the set needs a disk of the guest.
    pub fn is_for_guest(&self) -> bool {
        self.files.iter().any(|file| file.stripe.is_some())
    }

    /// Whether one of the arguments is, or has among its suboptions, `word`.
    pub fn has(&self, word: &str) -> bool {
        self.args.iter().any(|arg| arg.split(',').any(|part| part == word))
    }

    /// Whether mkfs.xfs makes what Linux does not mount: a sector of an external log that is larger than one of the data
    /// device (`xfs_log_mount`), and zones without the reverse mapping btree (`xfs_mountfs`).
    pub fn is_refused_by_linux(&self) -> bool {
        let large_log_sector = self.file('l').is_some()
            && self.options('l').any(|word| word.starts_with("sectsize=") && word != "sectsize=512")
            && !self.options('s').any(|word| word.starts_with("size="))
            && self.file('d').is_none_or(|file| file.loop_sector.is_none());
        large_log_sector || (self.has("rmapbt=0") && (self.has("zoned=1") || self.has("zoned")))
    }

    /// The suboptions of option `letter`.
    fn options(&self, letter: char) -> impl Iterator<Item = &str> {
        let option = format!("-{letter}");
        let pairs = self.args.windows(2).filter(move |pair| pair[0] == option);
        pairs.flat_map(|pair| pair[1].split(','))
    }

    /// Whether the set only prints what it would do.
    pub fn is_dry(&self) -> bool {
        self.has("-N")
    }

    /// The arguments with `{d}`, `{l}`, `{r}`, `{c}` and `{o}` replaced by what `path` says.
    pub fn arguments(&self, path: impl Fn(char) -> String) -> Vec<String> {
        let mut args = if self.force { vec!["-f".to_owned()] } else { Vec::new() };
        if !self.args.iter().any(|arg| arg.contains("uuid")) {
            args.extend(["-m".to_owned(), "uuid=5a5a1234-89ab-4cde-8123-0123456789ab".to_owned()]);
        }
        args.extend(self.args.iter().map(|arg| {
            "dlrco".chars().fold(arg.clone(), |arg, role| {
                let placeholder = format!("{{{role}}}");
                if arg.contains(&placeholder) { arg.replace(&placeholder, &path(role)) } else { arg }
            })
        }));
        args
    }
}

/// Where the data of this test lies.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle")
}

/// The sets that mkfs.xfs accepts.
pub fn accepted() -> Vec<Set> {
    parse("matrix.txt")
}

/// The sets that mkfs.xfs refuses.
pub fn refused() -> Vec<Set> {
    parse("refused.txt")
}

/// The sets that this run is about: those that `XFSKIT_SETS` names; else all with `XFSKIT_FULL=1`; else a fixed share,
/// one in `share`, chosen by a hash of the name.
pub fn chosen(sets: Vec<Set>, share: u64) -> Vec<Set> {
    if let Ok(filter) = std::env::var("XFSKIT_SETS") {
        let named = |name: &str| {
            filter.split(',').any(|word| word.strip_prefix('=').map_or(name.contains(word), |whole| whole == name))
        };
        return sets.into_iter().filter(|set| named(&set.name)).collect();
    }
    if std::env::var("XFSKIT_FULL").is_ok_and(|value| value == "1") {
        return sets;
    }
    self::share(sets, share)
}

/// One set in `share`.
pub fn share(sets: Vec<Set>, share: u64) -> Vec<Set> {
    sets.into_iter().filter(|set| hash(&set.name) % share == 0).collect()
}

/// FNV-1a, so that the share is the same on every machine.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)) >> 7
}

fn parse(file: &str) -> Vec<Set> {
    let path = folder().join("mkfs").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut sets: Vec<Set> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let set = parse_line(line).unwrap_or_else(|why| panic!("{}:{}: {why}", path.display(), number + 1));
        assert!(sets.iter().all(|other| other.name != set.name), "{}: {} stands twice", path.display(), set.name);
        sets.push(set);
    }
    sets
}

fn parse_line(line: &str) -> Result<Set, String> {
    let mut columns = line.split('|').map(str::trim);
    let mut column = |what: &str| columns.next().ok_or_else(|| format!("no {what}"));
    let mut set = Set {
        name: column("name")?.to_owned(),
        files: Vec::new(),
        conf: None,
        writes_out: false,
        fstests: false,
        force: false,
        args: Vec::new(),
        names: None,
    };
    for word in column("files")?.split_whitespace() {
        match word.split_once('=') {
            Some(("conf", name)) => set.conf = Some(folder().join("mkfs/conf").join(name)),
            Some(("env", "fstests")) => set.fstests = true,
            None if word == "out" => set.writes_out = true,
            Some((role @ ("d" | "l" | "r"), spec)) => {
                let (file, force) = parse_file(role.chars().next().unwrap_or('d'), spec)?;
                set.force |= force;
                set.files.push(file);
            }
            _ => return Err(format!("what is '{word}'?")),
        }
    }
    set.args = column("arguments")?.split_whitespace().map(str::to_owned).collect();
    set.names = columns.next().map(str::to_owned);
    Ok(set)
}

/// A file, and whether `-f` is needed for what it holds.
fn parse_file(role: char, spec: &str) -> Result<(FileSpec, bool), String> {
    let mut words = spec.split(',');
    let size = parse_size(words.next().unwrap_or(""))?;
    let mut file = FileSpec { role, size, content: Content::Sparse, loop_sector: None, stripe: None };
    let mut force = false;
    for word in words {
        if word == "aa" {
            file.content = Content::Filled;
        } else if word == "old" {
            (file.content, force) = (Content::OldXfs, true);
        } else if word == "noforce" {
            force = false;
        } else if word == "none" {
            file.content = Content::Absent;
        } else if let Some(sector) = word.strip_prefix("loop") {
            file.loop_sector = Some(sector.parse().map_err(|_| format!("sector size '{sector}'"))?);
        } else if let Some((least, best)) = word.strip_prefix("stripe").and_then(|rest| rest.split_once(':')) {
            let number = |text: &str| text.parse::<u32>().map_err(|_| format!("I/O size '{text}'"));
            file.stripe = Some((number(least)?, number(best)?));
        } else {
            return Err(format!("what is '{word}'?"));
        }
    }
    Ok((file, force))
}

fn parse_size(text: &str) -> Result<u64, String> {
    let shift = match text.chars().last() {
        Some('k') => 10,
        Some('m') => 20,
        Some('g') => 30,
        Some('t') => 40,
        _ => 0,
    };
    let digits = if shift == 0 { text } else { &text[..text.len() - 1] };
    digits.parse::<u64>().map(|number| number << shift).map_err(|_| format!("size '{text}'"))
}

#[test]
fn the_matrix_is_as_large_as_it_should_be() {
    let sets = accepted();
    let filled = sets.iter().filter(|set| set.files.iter().any(|file| file.content == Content::Filled)).count();
    let (looped, striped) = (
        sets.iter().filter(|set| set.files.iter().any(|file| file.loop_sector.is_some())).count(),
        sets.iter().filter(|set| set.is_for_guest()).count(),
    );
    println!("{} sets: {filled} on 0xAA, {looped} on loop devices, {striped} on striped disks", sets.len());
    assert!(sets.len() >= 250 && filled * 10 >= sets.len() && looped >= 10 && striped >= 5);
    assert!(refused().len() >= 80 && refused().iter().all(|set| set.names.is_some()));
}
