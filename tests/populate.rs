//! Images that xfskit-mkfs fills, as a user fills them: options, errors, and the same bytes each time.

#[path = "populate/awkward.rs"]
mod awkward;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const MKFS: &str = env!("CARGO_BIN_EXE_xfskit-mkfs");
const FILES: &str = env!("CARGO_BIN_EXE_xfskit-files");
const UUID: &str = "uuid=5e2b6b0c-6f0b-4c1c-9a64-6f3f0e1c2d3e";

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn mkfs(arguments: &[&str], image: &Path, input: &[u8]) -> Output {
    let mut command = Command::new(MKFS);
    command.env("SOURCE_DATE_EPOCH", "1700000000").env("DETERMINISTIC_SEED", "1");
    command.args(["-q", "-f", "--unsupported", "--size", "48m", "-m", UUID]).args(arguments).arg(image);
    with_input(command, input)
}

fn with_input(mut command: Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it can be started");
    // it may end before it has read everything
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("it ends")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn made(arguments: &[&str], image: &Path) {
    let output = mkfs(arguments, image, b"");
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
}

/// What went wrong, with no image left.
fn refused(arguments: &[&str], input: &[u8]) -> String {
    let folder = folder();
    let image = folder.path().join("new.img");
    let output = mkfs(arguments, &image, input);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert!(!image.exists(), "{arguments:?}: an image is left");
    let existing = folder.path().join("old.img");
    File::create(&existing).and_then(|file| file.set_len(48 << 20)).expect("writable");
    assert_eq!(mkfs(arguments, &existing, input).status.code(), Some(1));
    let mut magic = [0; 4];
    File::open(&existing).and_then(|mut file| file.read_exact(&mut magic)).expect("readable");
    assert_ne!(&magic, b"XFSB", "{arguments:?}: what is left looks like a filesystem");
    said(&output)
}

fn text(path: &Path) -> String {
    path.to_str().expect("temporary folders have plain names").to_owned()
}

/// An archive of everything in the image.
fn archived(image: &Path) -> Vec<u8> {
    let output = Command::new(FILES).arg("tar").arg(image).output().expect("it can be started");
    // there are no sockets in archives, which is told
    assert!(output.stdout.len() > 1024, "{}", said(&output));
    output.stdout
}

fn extracted(image: &Path) -> TempDir {
    let to = folder();
    let output = Command::new(FILES).args(["get", "-r", &text(image), "/", &text(to.path())]).output();
    let output = output.expect("it can be started");
    assert!(output.status.success(), "{}", said(&output));
    to
}

/// Paths with what everybody can see of a file: mode, links, size, time, contents, target.
fn listed(top: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut left = vec![top.to_owned()];
    while let Some(path) = left.pop() {
        let stat = fs::symlink_metadata(&path).expect("it is there");
        let contents = if stat.is_dir() {
            left.extend(fs::read_dir(&path).expect("readable").map(|entry| entry.expect("readable").path()));
            String::new()
        } else if stat.is_symlink() {
            format!("{:?}", fs::read_link(&path).expect("a link"))
        } else if stat.is_file() && stat.size() < 1 << 25 {
            format!("{:x?}", fs::read(&path).expect("readable"))
        } else {
            stat.rdev().to_string()
        };
        let size = if stat.is_dir() { 0 } else { stat.size() };
        let links = if stat.is_dir() { 0 } else { stat.nlink() };
        let line = format!("{:o} {links} {size} {}.{} {contents}", stat.mode(), stat.mtime(), stat.mtime_nsec());
        found.push((path.strip_prefix(top).expect("below").to_owned(), line));
    }
    found.sort();
    found
}

#[test]
fn a_folder_comes_out_as_it_went_in() {
    let (source, folder) = (folder(), folder());
    awkward::make(source.path(), 300);
    let image = folder.path().join("image");
    made(&["-p", &text(source.path())], &image);
    let copy = extracted(&image);
    let (before, after) = (listed(source.path()), listed(copy.path()));
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        assert!(before == after, "{:?}: {:.300} became {:?}: {:.300}", before.0, before.1, after.0, after.1);
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let (source, folder) = (folder(), folder());
    awkward::make(source.path(), 500);
    let path = text(source.path());
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    for arguments in [&["-p", &path][..], &["-p", &path, "-b", "size=1k", "--owner", "5:6"]] {
        for image in [&one, &two] {
            // what was in free blocks would stay there
            let _ = fs::remove_file(image);
            made(arguments, image);
        }
        assert!(fs::read(&one).expect("readable") == fs::read(&two).expect("readable"), "{arguments:?}");
    }
    let archive = archived(&one);
    let (plain, packed) = (folder.path().join("plain"), folder.path().join("packed"));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&archive).expect("in memory");
    fs::write(folder.path().join("a.tar.zst"), zstd::encode_all(&archive[..], 1).expect("in memory"))
        .expect("writable");
    assert!(mkfs(&["--tar", "-"], &plain, &archive).status.success());
    assert!(mkfs(&["--tar", "-"], &packed, &gzip.finish().expect("in memory")).status.success());
    let plain = fs::read(&plain).expect("readable");
    assert!(plain == fs::read(&packed).expect("readable"));
    fs::remove_file(&packed).expect("it is there");
    made(&["--tar", &text(&folder.path().join("a.tar.zst"))], &packed);
    assert!(plain == fs::read(&packed).expect("readable"));
}

#[test]
fn an_archive_of_the_image_is_what_it_was_made_from() {
    let (source, folder) = (folder(), folder());
    awkward::make(source.path(), 100);
    fs::remove_file(source.path().join("socket")).expect("it is there");
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    made(&["-p", &format!("{},atime=1", text(source.path()))], &first);
    let archive = archived(&first);
    assert!(mkfs(&["--tar", "-"], &second, &archive).status.success());
    assert!(archive == archived(&second));
}

#[test]
fn layers_owners_and_changes() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    for (layer, name) in
        [("base", "etc/old"), ("base", "etc/keep"), ("top", "etc/.wh.old"), ("top", "usr/bin/sudo"), ("top", "x.o")]
    {
        let file = path(layer).join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("writable");
        fs::write(file, name).expect("writable");
    }
    for layer in ["base", "top"] {
        let archive = File::create(path(layer).with_extension("tar")).expect("writable");
        let mut builder = tar::Builder::new(archive);
        builder.append_dir_all(".", path(layer)).expect("readable");
        builder.finish().expect("writable");
    }
    fs::write(path("changes"), "/usr/bin/sudo mode=4755\n/dev/null char=1:3 mode=666 gid=9\n/etc/** uid=77\n")
        .expect("writable");
    let (base, top, changes) = (text(&path("base.tar")), text(&path("top.tar")), text(&path("changes")));
    let image = path("image");
    made(&["--tar", &base, "--tar", &top, "--owner", "5:6", "--map", &changes, "--exclude", "*.o"], &image);
    let archive = archived(&image);
    let mut archive = tar::Archive::new(&archive[..]);
    let entries = archive.entries().expect("an archive").map(|entry| {
        let entry = entry.expect("sound");
        let header = entry.header();
        let device = header.device_major().ok().flatten().unwrap_or(0);
        let owner = (header.uid().expect("a number"), header.gid().expect("a number"));
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        (path.trim_matches(['.', '/']).to_owned(), header.mode().expect("a number"), owner, device)
    });
    let mut found: Vec<_> = entries.filter(|(path, ..)| path.contains('/')).collect();
    found.sort();
    let plain = fs::metadata(path("base/etc/keep")).expect("it is there").mode() & 0o7777;
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(found[0], ("dev/null".to_owned(), 0o666, (5, 9), 1));
    assert_eq!(found[1], ("etc/keep".to_owned(), plain, (77, 6), 0));
    assert_eq!((&*found[2].0, &*found[3].0, found[3].1), ("usr/bin", "usr/bin/sudo", 0o4755));
}

#[test]
fn prototype_files() {
    let folder = folder();
    let (file, prototype, image) =
        (folder.path().join("file"), folder.path().join("prototype"), folder.path().join("image"));
    fs::write(&file, "contents").expect("writable");
    let words = format!("boot\n1 1\nd--750 1 2\na/b -u-644 3 4 {}\nr r--600 0 0 3b\n$\n", text(&file));
    fs::write(&prototype, words).expect("writable");
    made(&["-p", &format!("file={},slashes_are_spaces=1", text(&prototype))], &image);
    let copy = extracted(&image);
    assert_eq!(fs::read(copy.path().join("a b")).expect("it is there"), b"contents");
    assert_eq!(fs::metadata(copy.path().join("r")).expect("it is there").len(), 0);
    fs::write(folder.path().join("options"), format!("[proto]\nfile={}\nslashes_are_spaces=1\n", text(&prototype)))
        .expect("writable");
    let options = format!("options={}", text(&folder.path().join("options")));
    let again = folder.path().join("again");
    made(&["-c", &options], &again);
    assert!(fs::read(&image).expect("readable") == fs::read(&again).expect("readable"));
    let map = Command::new(FILES).args(["map", &text(&image), "/r"]).output().expect("it can be started");
    assert!(map.status.success(), "{}", said(&map));
}

#[test]
fn the_smallest_image() {
    let (source, folder) = (folder(), folder());
    awkward::make(source.path(), 50);
    let (small, roomy) = (folder.path().join("small"), folder.path().join("roomy"));
    for (image, more) in [(&small, &[][..]), (&roomy, &["--headroom", "20m"])] {
        let mut command = Command::new(MKFS);
        command.args(["-q", "--minimize", "-p", &text(source.path())]).args(more).arg(image);
        let output = with_input(command, b"");
        assert!(output.status.success(), "{}", said(&output));
    }
    let len = |path: &Path| fs::metadata(path).expect("it is there").len();
    let (less, more) = (len(&small), len(&roomy));
    assert!(less < 20 << 20 && (20 << 20..50 << 20).contains(&more), "{less}, {more}");
    assert_eq!(listed(extracted(&small).path()), listed(extracted(&roomy).path()));
    let with_size = refused(&["--minimize", "-p", &text(source.path())], b"");
    assert!(with_size.contains("--minimize finds the size"), "{with_size}");
}

#[test]
fn what_cannot_be_is_said_and_leaves_no_image() {
    let folder = folder();
    let top = text(folder.path());
    symlink("x".repeat(1024), folder.path().join("long")).expect("linked");
    File::create(folder.path().join("large")).and_then(|mut file| file.write_all(&[1; 1 << 20])).expect("writable");
    let prototype = folder.path().join("prototype");
    fs::write(&prototype, "boot\n1 1\nd--755 0 0\nx ---644 0 0 /not/there\n$\n").expect("writable");
    let huge = format!("{top}/huge");
    fs::write(&huge, "boot\n1 1\nd--755 0 0\nx r--644 0 0 1t\n$\n").expect("writable");
    let mut cut = tar::Builder::new(Vec::new());
    cut.append_path_with_name(folder.path().join("large"), "large").expect("readable");
    let mut cut = cut.into_inner().expect("in memory");
    cut.truncate(100_000);
    for (arguments, input, words) in [
        (&["-p", &top][..], &b""[..], &["/long: ", "1023 bytes"][..]),
        (&["-p", "/not/there"], b"", &["/not/there: ", "No such file"]),
        (&["-p", &text(&prototype)], b"", &["prototype:4: ", "/not/there"]),
        (&["-p", &huge], b"", &["full"]),
        (&["--tar", "-"], b"", &["the standard input: is empty"]),
        (&["--tar", "-"], b"no archive at all", &["the standard input: "]),
        (&["--tar", "-"], &cut, &["the standard input: ", "cut off"]),
        (&["--tar", "/not/there.tar"], b"", &["/not/there.tar: ", "No such file"]),
        (&["--tar", &top], b"", &["directory"]),
        (&["--tar", "-", "--exclude", "["], b"", &["--exclude", "["]),
        (&["--tar", "-", "--map", "/not/there"], b"", &["--map /not/there"]),
        (&["-p", &top, "--owner", "me"], b"", &["--owner me"]),
        (&["-p", &top, "-d", "rtinherit=1"], b"", &["realtime"]),
    ] {
        let said = refused(arguments, input);
        assert!(words.iter().all(|word| said.contains(word)), "{arguments:?}: {said}");
    }
}

#[test]
fn the_image_is_not_part_of_itself() {
    let source = folder();
    fs::write(source.path().join("a"), "a").expect("writable");
    let image = source.path().join("image");
    let output = mkfs(&["-p", &text(source.path())], &image, b"");
    assert!(said(&output).contains("--exclude leaves it out"), "{}", said(&output));
    made(&["-p", &text(source.path()), "--exclude", "image"], &image);
    assert_eq!(fs::read_dir(extracted(&image).path()).expect("readable").count(), 1);
}

#[test]
fn a_dry_run_reads_nothing() {
    let folder = folder();
    let output = mkfs(&["-N", "--tar", "-"], &folder.path().join("image"), b"no archive");
    assert!(output.status.success() && !folder.path().join("image").exists(), "{}", said(&output));
}
