//! What xfskit-db does with a request.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use serde_json::json;

use super::command::Request;
use super::one_shot;
use crate::buffer::{FoundSuperblock, Primary, SearchEffort, read_superblock};
use crate::cli::image::Reading;
use crate::cli::observer::Terminal;
use crate::cli::output::{complain, standard_output};
use crate::db::{Answer, DeviceNames, Session, interpret, line};
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
    let mut driver = Driver { session, name, json: request.json, log: None, failed: false };
    if !request.lines.is_empty() {
        driver.lines(&request.lines)?;
    } else if !request.words.is_empty() {
        driver.commands(&one_shot::commands(&request.words))?;
    } else {
        driver.standard_input()?;
    }
    Ok(if driver.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn open(request: &Request, path: &Path) -> anyhow::Result<Image> {
    let devices = request.devices.open(path, Reading::Mapped)?;
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

/// Runs commands and writes what they answer.
struct Driver {
    session: Session,
    name: String,
    json: bool,
    /// The file that `log` names, opened.
    log: Option<(PathBuf, File)>,
    failed: bool,
}

impl Driver {
    fn lines(&mut self, lines: &[String]) -> anyhow::Result<()> {
        let commands: Vec<_> = lines.iter().map(|line| line::words(line)).collect();
        self.commands(&commands)
    }

    fn commands(&mut self, commands: &[Vec<String>]) -> anyhow::Result<()> {
        for words in commands {
            self.command(words)?;
            if self.session.done {
                break;
            }
        }
        Ok(())
    }

    fn standard_input(&mut self) -> anyhow::Result<()> {
        for line in io::stdin().lock().lines() {
            self.command(&line::words(&line.context("cannot read commands")?))?;
            if self.session.done {
                break;
            }
        }
        Ok(())
    }

    /// Runs one command, and those of the scripts that it reads. What it has to complain about is written at once; only
    /// output that cannot be written ends the tool.
    fn command(&mut self, words: &[String]) -> anyhow::Result<()> {
        self.single(words)?;
        while !self.session.done {
            let Some(line) = self.session.script.pop() else { break };
            self.single(&line::words(&line))?;
        }
        Ok(())
    }

    fn single(&mut self, words: &[String]) -> anyhow::Result<()> {
        match interpret(&mut self.session, words) {
            Ok(Some(answer)) => self.write(words, &*answer)?,
            Ok(None) => {}
            Err(error) => {
                self.failed = true;
                complain(&self.name, &error.to_string());
            }
        }
        self.follow_log()
    }

    fn write(&mut self, words: &[String], answer: &dyn Answer) -> anyhow::Result<()> {
        let out = standard_output();
        let mut out = Tee { out, log: self.log.as_mut().map(|(_, file)| file) };
        if self.json {
            let object = json!({ "format": 1, "command": words, "result": answer.json() });
            writeln!(out, "{object}")?;
        } else {
            answer.write_text(&mut out)?;
        }
        out.flush()?;
        Ok(())
    }

    /// Opens or closes the log as the session says.
    fn follow_log(&mut self) -> anyhow::Result<()> {
        if self.session.log == self.log.as_ref().map(|(path, _)| path.clone()) {
            return Ok(());
        }
        self.log = match &self.session.log {
            Some(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                Some((path.clone(), file.with_context(|| format!("cannot open {}", path.display()))?))
            }
            None => None,
        };
        Ok(())
    }
}

/// An output that goes to a file, too.
struct Tee<'a, W: Write> {
    out: W,
    log: Option<&'a mut File>,
}

impl<W: Write> Write for Tee<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.out.write(bytes)?;
        if let Some(log) = &mut self.log {
            log.write_all(&bytes[..len])?;
        }
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
