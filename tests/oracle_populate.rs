//! Populated images judged from outside: `xfs_repair -n` of xfsprogs 7.2 finds nothing.

#![allow(clippy::print_stdout, reason = "a test's report is its output")]

#[allow(dead_code, reason = "shared with the other oracle tests")]
#[path = "oracle/reference.rs"]
mod reference;

#[allow(dead_code, reason = "shared with the other tests of populate")]
#[path = "populate/image.rs"]
mod image;
#[allow(dead_code, reason = "shared with the other tests of populate")]
#[path = "populate/maker.rs"]
mod maker;
#[path = "populate/wishes.rs"]
mod wishes;

use reference::{Reference, reference, said};
use std::path::Path;
use wishes::wishes;

fn repair(reference: &Reference, path: &Path) -> Result<(), String> {
    let mut command = reference.tool("xfs_repair", ["-n", "-f", "-o", "force_geometry"]);
    let output = command.arg(path).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("{}\n{}", said(&output), String::from_utf8_lossy(&output.stderr)))
    }
}

#[test]
fn xfs_repair_finds_nothing() {
    let Some(reference) = reference() else { return };
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let only = std::env::var("POPULATE_ONLY").ok();
    let mut wrong = Vec::new();
    for wish in wishes() {
        if only.as_deref().is_some_and(|only| only != wish.name) {
            continue;
        }
        let (path, device) = wish.file(folder.path());
        let built = wish.build(&device, |builder| maker::everything(builder, 50));
        let result = built.map_err(|error| error.to_string()).and_then(|_| repair(reference, &path));
        if let Err(why) = result {
            println!("{}: {why}", wish.name);
            wrong.push(wish.name);
        }
        std::fs::remove_file(&path).expect("it is there");
    }
    assert_eq!(wrong, Vec::<&str>::new());
}
