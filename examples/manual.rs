//! manual FOLDER: writes the man pages and the shell completions of all tools below FOLDER. `make man` runs it; it is not
//! installed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use xfskit::cli::manual::{SHELLS, TOOLS};

fn main() -> anyhow::Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).context("usage: manual FOLDER")?);
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("man");
    for tool in TOOLS {
        let source = written.join(format!("{}.roff", tool.name));
        let text = fs::read_to_string(&source).with_context(|| source.display().to_string())?;
        put(&folder.join("man/man8"), &tool.page_name(), &tool.page(&text)?)?;
        for &shell in SHELLS {
            let completions = folder.join("completions").join(shell.to_string());
            put(&completions, &tool.completions_name(shell), &tool.completions(shell))?;
        }
    }
    Ok(())
}

fn put(folder: &Path, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let path = folder.join(name);
    fs::write(&path, bytes).with_context(|| path.display().to_string())
}
