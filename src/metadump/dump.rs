//! A dump from beginning to end.

use std::io::Write;

use super::chunk::{self, Batch};
use super::container::{Container, Flags, Format, Output};
use super::obscure::Obscurer;
use super::order::in_order;
use super::{group, log};
use crate::device::Device;
use crate::error::{Check, Corruption, Error, Place, Result};
use crate::forms::{Directory, Inode};
use crate::geometry::limits::BASIC_BLOCK;
use crate::geometry::{AgNumber, Daddr, Geometry, Ino};
use crate::image::Image;
use crate::ondisk::metadump::{
    COMPAT_DIRTYLOG, COMPAT_EXTERNALLOG, COMPAT_FULLBLOCKS, COMPAT_OBFUSCATED, INCOMPAT_RTDEVICE, INFO_FLAGS,
};
use crate::report::{Observer, Unit};

/// What goes into a dump, and how.
#[derive(Clone, Debug)]
pub struct DumpOptions {
    /// The format; `None` is version 1 where that can hold the filesystem.
    pub format: Option<Format>,
    /// Names, attribute values and targets of symbolic links are replaced.
    pub obscure: bool,
    /// Bytes of blocks that mean nothing become zero.
    pub zero_stale: bool,
    /// The first block that cannot be read ends the dump.
    pub stop_on_error: bool,
    /// The stream is compressed with zstd.
    pub compress: bool,
    /// Longer extents of metadata are taken for damage; in blocks.
    pub max_extent: u32,
    /// What names are replaced with follows from this; `None` takes random numbers, so that nobody can undo it.
    pub seed: Option<u64>,
}

/// What a dump has become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dumped {
    /// The format.
    pub format: Format,
    /// Bytes of metadata.
    pub bytes: u64,
    /// The log had to be kept as it is, with all names in it, although names are replaced.
    pub log_not_obscured: bool,
    /// The log was dirty.
    pub dirty_log: bool,
}

/// What all threads of a dump share.
pub(super) struct Dumper<'a> {
    pub(super) image: &'a Image,
    pub(super) geometry: &'a Geometry,
    pub(super) data: &'a dyn Device,
    pub(super) options: &'a DumpOptions,
    pub(super) observer: &'a dyn Observer,
    pub(super) names: Obscurer,
    /// The directory of files without a name.
    orphanage: Option<u64>,
}

/// The name of the directory of files without a name.
const ORPHANAGE: &[u8] = b"lost+found";

impl Dumper<'_> {
    /// Tells of damage.
    pub(super) fn warn_check(&self, check: Check, place: &Place, detail: impl Into<String>) {
        let corruption = Corruption { check, place: place.clone(), detail: detail.into() };
        self.observer.warn(&Error::Corrupt(Box::new(corruption)));
    }

    /// Whether anything in blocks is changed at all.
    pub(super) fn is_plain(&self) -> bool {
        !self.options.obscure && !self.options.zero_stale
    }

    /// Fills `bytes` from `daddr` of the data device; whether that could be done.
    ///
    /// # Errors
    /// `Io`, if errors end the dump.
    pub(super) fn read(&self, daddr: Daddr, bytes: &mut [u8]) -> Result<bool> {
        match self.data.read_at(daddr.0.saturating_mul(u64::from(BASIC_BLOCK)), bytes) {
            Ok(()) => Ok(true),
            Err(error) => self.unreadable(error).map(|()| false),
        }
    }

    /// Tells of an error of the device, or ends the dump with it.
    pub(super) fn unreadable(&self, error: Error) -> Result<()> {
        if self.options.stop_on_error {
            return Err(error);
        }
        self.observer.warn(&error);
        Ok(())
    }

    /// Whether `name`, by which directory `parent` names inode `child`, says nothing: the directory of files without
    /// a name, and those of the files in it that are named by their number.
    pub(super) fn keeps_name(&self, parent: u64, child: u64, name: &[u8]) -> bool {
        parent == self.geometry.rootino.0 && name == ORPHANAGE
            || self.orphanage == Some(parent) && name == child.to_string().as_bytes()
    }
}

/// Writes the metadata of `image` to `output`. Damage costs only what is damaged, and is told to `observer`.
///
/// # Errors
/// `Unsupported` for a format that cannot hold the filesystem; `Usage` when a device is missing or the output fails;
/// `Io` when a block cannot be read and the options say that this ends the dump.
pub fn dump(
    image: &Image,
    options: &DumpOptions,
    output: Box<dyn Write + Send>,
    observer: &dyn Observer,
) -> Result<Dumped> {
    let format = choose_format(image, options)?;
    let journal = log::look(image, format, observer);
    let names = Obscurer::new(image.geometry(), options.seed);
    let mut dumper =
        Dumper { image, geometry: image.geometry(), data: image.data(), options, observer, names, orphanage: None };
    if options.obscure {
        dumper.orphanage = find_orphanage(image);
    }
    let flags = flags_of(image, options, format, journal.is_dirty());
    let failed = |error: std::io::Error| Error::Usage(format!("cannot write the dump: {error}"));
    let output = Output::new(output, options.compress).map_err(failed)?;
    let mut container = Container::new(output, format, flags).map_err(failed)?;
    let dumper = &dumper;
    let batches = copy_groups(dumper, &mut container)?;
    copy_inodes(dumper, &mut container, &batches)?;
    let log_not_obscured = in_order(&mut container, 1, &|_, sink| log::copy(dumper, sink, &journal))?;
    if flags.incompat & INCOMPAT_RTDEVICE != 0 {
        in_order(&mut container, 1, &|_, sink| group::copy_realtime_superblock(dumper, sink))?;
    }
    let bytes = container.written();
    container.finish().map_err(failed)?;
    observer.end();
    Ok(Dumped { format, bytes, log_not_obscured: log_not_obscured.contains(&true), dirty_log: journal.is_dirty() })
}

/// Headers and btrees of all groups; gives the inode chunks in batches.
fn copy_groups(dumper: &Dumper<'_>, container: &mut Container) -> Result<Vec<Batch>> {
    let groups = dumper.geometry.agcount;
    dumper.observer.begin("Groups", u64::from(groups), Unit::Items("groups"));
    let count = usize::try_from(groups).unwrap_or(usize::MAX);
    let found = in_order(container, count, &|task, sink| {
        let agno = AgNumber(u32::try_from(task).unwrap_or(u32::MAX));
        let chunks = group::copy_group(dumper, sink, agno);
        dumper.observer.advance(1);
        chunks
    })?;
    Ok((0..).map(AgNumber).zip(found).flat_map(|(agno, chunks)| chunk::batches(agno, &chunks)).collect())
}

fn copy_inodes(dumper: &Dumper<'_>, container: &mut Container, batches: &[Batch]) -> Result<()> {
    let inodes = batches.iter().map(Batch::inodes).sum();
    dumper.observer.begin("Inodes", inodes, Unit::Items("inodes"));
    in_order(container, batches.len(), &|task, sink| {
        batches.get(task).map_or(Ok(()), |batch| chunk::copy_batch(dumper, sink, batch))
    })?;
    Ok(())
}

/// The format that is asked for, or the one that can hold the filesystem.
fn choose_format(image: &Image, options: &DumpOptions) -> Result<Format> {
    let geometry = image.geometry();
    let groups = geometry.features.has_rtgroups() && geometry.realtime.blocks > 0;
    let external_log = geometry.log.start.is_none();
    match options.format {
        Some(Format::V1) if groups => Err(Error::Unsupported(
            "version 1 of the format has no place for a realtime device: its superblock would take the place of that of \
             the data device; use version 2"
                .to_owned(),
        )),
        Some(format) => Ok(format),
        None if groups || external_log && image.devices().log.is_some() => Ok(Format::V2),
        None => Ok(Format::V1),
    }
    .and_then(|format| {
        if format == Format::V2 && external_log && image.devices().log.is_none() {
            return Err(Error::Usage("the log is on a device of its own, which must be named".to_owned()));
        }
        if format == Format::V2 && geometry.features.has_rtsb() && image.realtime().is_err() {
            return Err(Error::Usage("the realtime device must be named: its superblock is metadata".to_owned()));
        }
        Ok(format)
    })
}

fn flags_of(image: &Image, options: &DumpOptions, format: Format, dirty: bool) -> Flags {
    let bit = |condition: bool, bit: u32| if condition { bit } else { 0 };
    let (obscured, full) = (options.obscure, !options.zero_stale);
    match format {
        Format::V1 => {
            use crate::ondisk::metadump::{INFO_DIRTYLOG, INFO_FULLBLOCKS, INFO_OBFUSCATED};
            let flags = [(obscured, INFO_OBFUSCATED), (full, INFO_FULLBLOCKS), (dirty, INFO_DIRTYLOG)];
            let compat = flags.iter().fold(u32::from(INFO_FLAGS), |sum, flag| sum | bit(flag.0, u32::from(flag.1)));
            Flags { compat, incompat: 0 }
        }
        Format::V2 => Flags {
            compat: bit(obscured, COMPAT_OBFUSCATED)
                | bit(full, COMPAT_FULLBLOCKS)
                | bit(dirty, COMPAT_DIRTYLOG)
                | bit(image.geometry().log.start.is_none(), COMPAT_EXTERNALLOG),
            incompat: bit(image.geometry().features.has_rtsb(), INCOMPAT_RTDEVICE),
        },
    }
}

/// The directory of files without a name, where there is one.
fn find_orphanage(image: &Image) -> Option<u64> {
    let root = Inode::read(image.cache(), Ino(image.geometry().rootino.0)).ok()?;
    let directory = Directory::open(image.cache(), &root).ok()?;
    directory.lookup(ORPHANAGE).ok().flatten().map(|found| found.ino.0)
}
