//! The commands of xfskit-files that change an image, as a user runs them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A new image in a folder of its own.
struct Image {
    folder: TempDir,
    path: PathBuf,
}

impl Image {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("image");
        let mut mkfs = Command::new(env!("CARGO_BIN_EXE_xfskit-mkfs"));
        let made = mkfs.args(["-q", "--size", "400m"]).arg(&path).status().expect("mkfs runs");
        assert!(made.success());
        Image { folder, path }
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, command: &str, arguments: &[&str]) -> Output {
        let mut tool = Command::new(env!("CARGO_BIN_EXE_xfskit-files"));
        tool.arg(command).arg(&self.path).args(arguments).stdin(Stdio::null()).output().expect("the tool runs")
    }

    /// Runs a command that must work, and say nothing on the standard error; gives what it prints.
    fn good(&self, command: &str, arguments: &[&str]) -> String {
        let output = self.run(command, arguments);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && complaint.is_empty(), "{command} {arguments:?}: {complaint}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Runs a command that must fail with 1 and these words.
    fn bad(&self, command: &str, arguments: &[&str], words: &str) {
        let output = self.run(command, arguments);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command} {arguments:?}: {complaint}");
        assert!(complaint.contains(words), "{command} {arguments:?}: {complaint}");
    }

    /// Names, one a line.
    fn names(&self, path: &str) -> String {
        self.good("ls", &[path])
    }

    fn stat(&self, path: &str) -> String {
        self.good("stat", &[path])
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a name in UTF-8")
}

#[test]
fn files_come_and_go() {
    let image = Image::new();
    image.good("mkdir", &["-p", "/a/b/c"]);
    image.good("mkdir", &["-m", "700", "/d"]);
    image.bad("mkdir", &["/a"], "/a: file exists");
    image.bad("mkdir", &["/x/y"], "/x/y: no such file or directory");
    image.good("touch", &["-d", "@1000000000", "/a/f", "/a/g"]);
    assert!(image.stat("/a/f").contains("2001-09-09"), "{}", image.stat("/a/f"));
    image.good("mv", &["/a/f", "/a/g", "/d"]);
    assert_eq!((image.names("/a").as_str(), image.names("/d").as_str()), ("b\n", "f\ng\n"));
    image.good("mv", &["/d/f", "/d/h"]);
    image.good("ln", &["/d/h", "/a"]);
    image.good("ln", &["-s", "../a", "/d/up"]);
    image.good("touch", &["/d/up/through"]);
    assert_eq!(image.names("/a"), "b\nh\nthrough\n");
    assert!(image.stat("/a/h").contains("links        2"));
    image.bad("rm", &["/a"], "/a: is a directory");
    image.bad("mv", &["/a", "/a/b/c"], "invalid argument");
    image.bad("rm", &["/nothing"], "/nothing: no such file or directory");
    image.good("rm", &["-f", "/nothing"]);
    image.good("rm", &["-r", "/a"]);
    assert_eq!(image.names("/"), "d\n");
    image.bad("rm", &["-r", "/"], "operation not permitted");
}

#[test]
fn modes_owners_attributes_and_the_label() {
    let image = Image::new();
    image.good("mkdir", &["-p", "/a/b"]);
    image.good("touch", &["/a/f"]);
    image.good("chmod", &["u+x,go=", "/a/f"]);
    image.good("chmod", &["-R", "g+w", "/a"]);
    image.good("chown", &["-R", "1000:100", "/a"]);
    let stat = image.stat("/a/f");
    assert!(stat.contains("0720") && stat.contains("1000:100"), "{stat}");
    image.good("setfattr", &["-n", "user.note", "-v", "a\\tb", "/a/f"]);
    image.good("setfattr", &["-n", "trusted.raw", "-v", "0x00ff", "/a/f"]);
    let shown = image.good("xattr", &["/a/f"]);
    assert!(shown.contains("user.note") && shown.contains("a\\tb") && shown.contains("\\x00\\xff"), "{shown}");
    image.good("setfattr", &["-x", "user.note", "/a/f"]);
    image.bad("setfattr", &["-x", "user.note", "/a/f"], "no such attribute");
    image.bad("setfattr", &["-n", "other.note", "/a/f"], "attributes are in user, trusted or security");
    image.good("label", &["new label"]);
    image.bad("label", &["thirteen byte"], "invalid argument");
    let info = Command::new(env!("CARGO_BIN_EXE_xfskit-info")).arg("-v").arg(&image.path).output().expect("info runs");
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(info.contains("new label") && info.contains("clean"), "{info}");
}

#[test]
fn what_is_put_comes_out_again() {
    let image = Image::new();
    let source = image.beside("source");
    fs::create_dir_all(source.join("inner/empty")).expect("folders");
    let big: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    fs::write(source.join("big"), &big).expect("a file");
    fs::write(source.join("inner/small"), "small").expect("a file");
    fs::hard_link(source.join("big"), source.join("inner/again")).expect("a link");
    symlink("inner/small", source.join("link")).expect("a link");
    let sparse = fs::File::create(source.join("sparse")).expect("a file");
    sparse.set_len(20 << 20).expect("room");
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"end", (20 << 20) - 3).expect("room");
    fs::set_permissions(source.join("inner/small"), fs::Permissions::from_mode(0o640)).expect("a mode");
    image.bad("put", &[text(&source), "/"], "is a directory");
    image.good("put", &["-r", text(&source), "/"]);
    let taken = image.beside("taken");
    image.good("get", &["-r", "/source", text(&taken)]);
    let taken = taken.join("source");
    assert!(fs::read(taken.join("big")).expect("a file") == big);
    assert_eq!(fs::read_to_string(taken.join("link")).expect("through a link"), "small");
    let seen = |name: &str| taken.join(name).metadata().expect("a file");
    assert_eq!(seen("big").ino(), seen("inner/again").ino());
    assert_eq!(seen("inner/small").mode() & 0o7777, 0o640);
    assert_eq!(seen("inner/small").mtime_nsec(), source.join("inner/small").metadata().expect("a file").mtime_nsec());
    assert!(seen("sparse").len() == 20 << 20 && seen("sparse").blocks() < 1000);
    // what is there is replaced, and directories are filled
    fs::write(source.join("big"), "not big any more").expect("a file");
    image.good("put", &["-r", text(&source), "/"]);
    assert_eq!(image.good("cat", &["/source/big"]), "not big any more");
}

#[test]
fn contents_are_cut_punched_and_shared() {
    let image = Image::new();
    let file = image.beside("file");
    fs::write(&file, "0123456789".repeat(10_000)).expect("a file");
    image.good("put", &[text(&file), "/f"]);
    image.good("reflink", &["/f", "/g"]);
    image.good("truncate", &["-s", "5", "/f"]);
    assert_eq!(image.good("cat", &["/f"]), "01234");
    image.good("truncate", &["-s", "8", "/f"]);
    assert_eq!(image.good("cat", &["/f"]), "01234\0\0\0");
    image.good("punch", &["10", "8190", "/g"]);
    let seen = image.good("cat", &["/g"]);
    assert!(seen.len() == 100_000 && seen.starts_with("0123456789\0\0") && seen[8200..].starts_with("0123456789"));
    image.bad("truncate", &["-s", "8e", "/f"], "file too large");
}

#[test]
fn scripts_do_all_or_what_they_can() {
    let image = Image::new();
    let script = image.beside("script");
    fs::write(&script, "# a comment\nmkdir '/with blank'\n\ntouch \"/with blank/f\"\nrmdir /x\n").expect("a file");
    image.bad("script", &[text(&script)], "line 5");
    assert_eq!(image.names("/"), "", "a script that cannot be read was begun");
    fs::write(&script, "mkdir /a\ntouch /a/f\nrm /b\nmkdir /c\n").expect("a file");
    let before = fs::read(&image.path).expect("an image");
    image.bad("script", &["--all-or-nothing", text(&script)], "line 3: rm /b: /b: no such file or directory");
    assert!(before == fs::read(&image.path).expect("an image"), "nothing should have changed");
    image.bad("script", &[text(&script)], "line 3");
    assert_eq!(image.names("/"), "a\n");
    fs::write(&script, "rm -r /a\nmkdir /c\n").expect("a file");
    assert_eq!(image.good("script", &["-v", "--all-or-nothing", text(&script)]), "rm -r /a\nmkdir /c\n");
    assert_eq!(image.names("/"), "c\n");
}

#[test]
fn what_must_not_be_changed_is_refused() {
    let image = Image::new();
    let mut tool = Command::new(env!("CARGO_BIN_EXE_xfskit-files"));
    let wrong = tool.args(["mkdir"]).arg(&image.path).output().expect("the tool runs");
    assert_eq!(wrong.status.code(), Some(2));
    let other = image.path.clone();
    let _locked = xfskit::device::FileDevice::open(&other, xfskit::device::OpenFile::WRITE).expect("an image");
    image.bad("mkdir", &["/a"], "locked");
}
