//! `make install`, `install-compat` and `uninstall`, into a folder for the purpose.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use xfskit::cli::manual::TOOLS;

fn make(target: &str, into: &Path) -> Output {
    let folder = into.to_str().expect("invariant: temporary folders have plain names");
    Command::new("make")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        // The tests themselves may have been started by make, with variables of its own.
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .env_remove("MFLAGS")
        .args(["--no-print-directory", target, "PROFILE=debug", "PREFIX=/usr"])
        .arg(format!("DESTDIR={folder}/root"))
        .arg(format!("DIST={folder}/dist"))
        .output()
        .expect("make can be started")
}

fn must(target: &str, into: &Path) {
    let output = make(target, into);
    assert!(output.status.success(), "make {target}: {}", String::from_utf8_lossy(&output.stderr));
}

/// All files and links below a folder, relative to it.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder).expect("invariant: it is below").display().to_string());
            }
        }
    }
    found
}

#[test]
fn what_is_installed_is_uninstalled_and_nothing_else() {
    let scratch = tempfile::tempdir().expect("invariant: a temporary folder can be made");
    let root = scratch.path().join("root");
    must("install", scratch.path());
    let mut expected = BTreeSet::new();
    for tool in TOOLS {
        let name = tool.name;
        expected.extend([
            format!("usr/bin/{name}"),
            format!("usr/share/man/man8/{name}.8"),
            format!("usr/share/bash-completion/completions/{name}"),
            format!("usr/share/zsh/site-functions/_{name}"),
            format!("usr/share/fish/vendor_completions.d/{name}.fish"),
        ]);
    }
    assert_eq!(files(&root), expected);

    must("install-compat", scratch.path());
    for tool in TOOLS {
        let Some(counterpart) = tool.xfsprogs_name else { continue };
        let link = root.join("usr/bin").join(counterpart);
        let version = Command::new(&link).arg("-V").output().expect("the link leads to the tool");
        assert!(version.status.success() && !version.stdout.is_empty(), "{}", link.display());
        let page = root.join(format!("usr/share/man/man8/{counterpart}.8"));
        assert!(fs::read_to_string(page).expect("the link leads to the page").contains(".SH EXAMPLES"));
        expected.insert(format!("usr/bin/{counterpart}"));
        expected.insert(format!("usr/share/man/man8/{counterpart}.8"));
    }
    assert_eq!(files(&root), expected);

    fs::write(root.join("usr/bin/other"), "not ours").expect("writable");
    must("uninstall", scratch.path());
    assert_eq!(files(&root), BTreeSet::from(["usr/bin/other".to_owned()]));
}

#[test]
fn the_real_xfsprogs_is_neither_overwritten_nor_removed() {
    let scratch = tempfile::tempdir().expect("invariant: a temporary folder can be made");
    let theirs = scratch.path().join("root/usr/bin/mkfs.xfs");
    fs::create_dir_all(theirs.parent().expect("invariant: it has one")).expect("writable");
    fs::write(&theirs, "theirs").expect("writable");
    let output = make("install-compat", scratch.path());
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("not ours"));
    must("uninstall", scratch.path());
    assert_eq!(fs::read_to_string(&theirs).expect("still there"), "theirs");
}
