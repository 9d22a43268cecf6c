//! What xfskit-db does with a request.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;

use super::command::Request;
use super::driver::Driver;
use super::one_shot;
use crate::buffer::{FoundSuperblock, Primary, SearchEffort, read_superblock};
use crate::cli::image::Reading;
use crate::cli::observer::Terminal;
use crate::cli::output::{complain, standard_output};
use crate::db::{DeviceNames, Session};
use crate::geometry::{AgNumber, Geometry};
use crate::image::{Image, ImageDevices};

/// Name of the tool.
pub(super) const NAME: &str = "xfskit-db";

/// Does what was asked for.
pub(super) fn run(request: &Request) -> anyhow::Result<ExitCode> {
    if request.version {
        let mut out = standard_output();
        writeln!(out, "{NAME} version {}", env!("CARGO_PKG_VERSION"))?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = request.image.as_deref().context("no image was named")?;
    let image = open(request, path)?;
    let name = request.program.as_deref().unwrap_or(NAME).to_owned();
    let mut session = Session::new(image, Arc::new(Terminal::new(NAME, true)));
    let device = |path: &Path| path.display().to_string();
    session.names = DeviceNames {
        data: device(path),
        log: request.devices.log.as_deref().map(device),
        realtime: request.devices.realtime.as_deref().map(device),
    };
    let mut driver = Driver::new(session, name, request.json);
    if !request.lines.is_empty() {
        driver.lines(&request.lines)?;
    } else if !request.words.is_empty() {
        driver.commands(&one_shot::commands(&request.words))?;
    } else if io::stdin().is_terminal() && io::stdout().is_terminal() {
        driver.prompt()?;
    } else {
        driver.standard_input()?;
    }
    Ok(driver.code())
}

fn open(request: &Request, path: &Path) -> anyhow::Result<Image> {
    let devices = request.devices.open(path, Reading::Calls)?;
    if request.force {
        return forced(devices).with_context(|| path.display().to_string());
    }
    let image = Image::open(devices, SearchEffort::Guesses).with_context(|| path.display().to_string())?;
    for damage in image.superblock().primary.damage() {
        complain(NAME, &format!("the primary superblock is damaged: {damage}"));
    }
    Ok(image)
}

/// The filesystem that the primary superblock describes, whatever it says.
fn forced(devices: ImageDevices) -> crate::error::Result<Image> {
    let read = read_superblock(&*devices.data, 0, AgNumber(0))?;
    let geometry = Geometry::assume(&read.sb);
    let superblock = FoundSuperblock {
        sb: read.sb,
        geometry,
        agno: AgNumber(0),
        offset: 0,
        primary: Primary::Damaged(read.verdict),
        agreeing: 1,
    };
    Ok(Image::of_superblock(devices, superblock, crate::buffer::BlockCache::DEFAULT_CAPACITY))
}
