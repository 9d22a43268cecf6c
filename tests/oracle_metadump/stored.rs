//! Filesystems that this machine's kernel cannot fill, or not alone: version 4, quota, realtime sections, names without
//! case, external logs; and the bound of extents.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use super::reference::{Reference, reference, run, said, unmount};
use super::{can_mount, fill, find, folder, full, same};

/// Images of `testdata/db`; which of them have a realtime device, and which one version 1 cannot hold.
const STORED: [(&str, bool, bool); 6] = [
    ("v4", false, true),
    ("v4-quota", false, true),
    ("quota", false, true),
    ("ci", false, true),
    ("realtime", true, true),
    ("groups", true, false),
];

/// The devices of a filesystem beside its data device, `image`: letter of the option that names it, and file.
type Others = &'static [(char, &'static str)];

fn unpack(name: &str, folder: &Path, realtime: bool) {
    let packed = |suffix: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/db/{name}.{suffix}.zst"));
    for (suffix, file) in [("img", "image"), ("rt", "rt")] {
        if suffix == "img" || realtime {
            let mut source = zstd::Decoder::new(File::open(packed(suffix)).expect("it is there")).expect("zstd");
            source.window_log_max(27).expect("a window of 128 MiB");
            let mut target = File::create(folder.join(file)).expect("writable");
            std::io::copy(&mut source, &mut target).expect("unpacked");
        }
    }
}

/// A dump by our tool; what it says of damage.
fn our_dump(folder: &Path, others: Others, options: &[&str], dump: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xfskit-metadump"));
    for (letter, file) in others {
        command.arg(format!("-{letter}")).arg(file);
    }
    let output = command.args(options).args(["image", dump]).current_dir(folder).output();
    let output = output.expect("the tool can be started");
    assert!(output.status.success(), "{options:?}: {}", said(&output));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn their_dump(reference: &Reference, folder: &Path, others: Others, options: &[&str], dump: &str) {
    let mut arguments: Vec<String> = vec!["-i".to_owned(), "-p".to_owned(), "xfs_metadump".to_owned()];
    for (letter, file) in others {
        arguments.extend([format!("-{}", if *letter == 'r' { 'R' } else { *letter }), (*file).to_owned()]);
    }
    let command = format!("metadump {} {dump}", options.join(" "));
    arguments.extend(["-c".to_owned(), command, "image".to_owned()]);
    let output = reference.tool("xfs_db", arguments).current_dir(folder).output();
    let output = output.expect("the reference can be started");
    assert!(output.status.success(), "xfs_metadump {options:?}: {}", said(&output));
}

/// Arguments of both mdrestores, and the files that they write.
fn restoring(others: Others, version: &str, dump: &str, to: &str) -> (Vec<String>, Vec<String>) {
    let (mut arguments, mut files) = (Vec::new(), vec![to.to_owned()]);
    // version 1 holds the data device alone
    for (letter, file) in others.iter().filter(|_| version == "2") {
        files.push(format!("{to}.{file}"));
        arguments.extend([format!("-{letter}"), format!("{to}.{file}")]);
    }
    arguments.extend([dump.to_owned(), to.to_owned()]);
    (arguments, files)
}

fn our_restore(folder: &Path, others: Others, version: &str, dump: &str, to: &str) -> Vec<String> {
    let (arguments, files) = restoring(others, version, dump, to);
    let output = Command::new(env!("CARGO_BIN_EXE_xfskit-mdrestore")).args(&arguments).current_dir(folder).output();
    let output = output.expect("the tool can be started");
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    files
}

fn their_restore(
    reference: &Reference,
    folder: &Path,
    others: Others,
    version: &str,
    dump: &str,
    to: &str,
) -> Vec<String> {
    let (arguments, files) = restoring(others, version, dump, to);
    // it does not make these
    files.iter().skip(1).for_each(|file| drop(File::create(folder.join(file)).expect("writable")));
    let output = reference.tool("xfs_mdrestore", &arguments).current_dir(folder).output();
    let output = output.expect("the reference can be started");
    assert!(output.status.success(), "xfs_mdrestore {arguments:?}: {}", said(&output));
    files
}

/// Dumps of both tools with these options are put back by both tools: the devices are the same bytes.
fn compare(reference: &Reference, folder: &Path, others: Others, options: &[&str], version: &str, what: &str) {
    let options = [options, &["-a", "-o", "-v", version]].concat();
    our_dump(folder, others, &options, "ours");
    their_dump(reference, folder, others, &options, "theirs");
    let expected = their_restore(reference, folder, others, version, "theirs", "expected");
    let restored = [
        our_restore(folder, others, version, "ours", "a"),
        our_restore(folder, others, version, "theirs", "b"),
        their_restore(reference, folder, others, version, "ours", "c"),
    ];
    for files in restored {
        for (found, expected) in files.iter().zip(&expected) {
            let (found, expected) = (folder.join(found), folder.join(expected));
            let equal = same(&found, &expected) || what == "v4-quota" && only_lacks_dquots(&expected, &found);
            assert!(equal, "{what}, {options:?}: {} is not {}", found.display(), expected.display());
        }
        files.iter().for_each(|file| fs::remove_file(folder.join(file)).expect("it was made"));
    }
}

/// Whether all that `lacking` has not of `whole` are blocks of quota files: xfs_metadump knows these by a field that inodes of
/// version 4 do not have, and leaves them out there.
fn only_lacks_dquots(lacking: &Path, whole: &Path) -> bool {
    const BLOCK: usize = 4096;
    let [lacking, whole] = [lacking, whole].map(|path| fs::read(path).expect("readable"));
    let blocks = lacking.chunks(BLOCK).zip(whole.chunks(BLOCK));
    let differ: Vec<_> = blocks.filter(|(lacking, whole)| lacking != whole).collect();
    let of_dquots = |(lacking, whole): &(&[u8], &[u8])| **lacking == [0; BLOCK] && whole.starts_with(b"DQ");
    lacking.len() == whole.len() && !differ.is_empty() && differ.iter().all(of_dquots)
}

/// Whether xfs_repair finds nothing to do on a restored filesystem.
fn repair(reference: &Reference, folder: &Path, others: Others, files: &[String]) -> Result<(), String> {
    let mut arguments = vec!["-n".to_owned()];
    for ((letter, _), file) in others.iter().zip(files.iter().skip(1)) {
        arguments.extend([format!("-{letter}"), file.clone()]);
    }
    arguments.push(files[0].clone());
    let output = reference.tool("xfs_repair", &arguments).current_dir(folder).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(said(&output)) }
}

#[test]
fn stored_filesystems() {
    let Some(reference) = reference() else { return };
    // in short: version 4 with quota, and names without case
    let share = |image: &&(&str, bool, bool)| full() || matches!(image.0, "v4-quota" | "ci");
    for &(name, realtime, version_1) in STORED.iter().filter(share) {
        let folder = folder();
        let path = folder.path();
        unpack(name, path, realtime);
        let others: Others = if realtime { &[('r', "rt")] } else { &[] };
        for version in if version_1 { &["1", "2"][..] } else { &["2"] } {
            compare(reference, path, others, &[], version, name);
            for longest in ["1", "5"] {
                compare(reference, path, others, &["-m", longest], version, name);
            }
            let told = our_dump(path, others, &["-w", "-v", version], "hidden");
            assert_eq!(told, "", "{name}, version {version}");
            let mut files = our_restore(path, others, version, "hidden", "restored");
            if realtime && files.len() < 2 {
                files.push("rt".to_owned());
            }
            let clean = repair(reference, path, others, &files);
            assert!(clean.is_ok(), "{name}, version {version}: {clean:?}");
        }
    }
}

#[test]
fn an_external_log() {
    let Some(reference) = reference() else { return };
    if !can_mount() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    for (file, size) in [("image", 400 << 20), ("log", 100 << 20)] {
        File::create(path.join(file)).and_then(|file| file.set_len(size)).expect("a sparse file");
    }
    let made = reference.tool("mkfs.xfs", ["-q", "-f", "-l", "logdev=log", "image"]).current_dir(path).output();
    assert!(made.as_ref().is_ok_and(|made| made.status.success()), "{made:?}");
    let device = run("losetup", ["-f", "--show", &path.join("log").display().to_string()]).expect("a loop device");
    let point = path.join("mount");
    fs::create_dir(&point).expect("writable");
    let options = format!("loop,nouuid,logdev={device}");
    let (image, target) = (path.join("image").display().to_string(), point.display().to_string());
    let mounted = run("mount", ["-t", "xfs", "-o", &options, &image, &target]);
    let filled = mounted.map(|_| {
        let planted = fill(&point);
        unmount(&point).expect("it can be unmounted");
        planted
    });
    run("losetup", ["-d", &device]).expect("the loop device can be given back");
    let planted = filled.expect("the kernel mounts it").expect("the filesystem can be filled");
    let others: Others = &[('l', "log")];
    compare(reference, path, others, &[], "2", "external log");
    compare(reference, path, others, &[], "1", "external log");
    our_dump(path, others, &["-v", "2"], "hidden");
    let files = our_restore(path, others, "2", "hidden", "restored");
    let clean = repair(reference, path, others, &files);
    assert!(clean.is_ok(), "{clean:?}");
    let dump = fs::read(path.join("hidden")).expect("readable");
    assert_eq!(find(&dump, &planted), None);
}
