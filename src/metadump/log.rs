//! The journal in a dump.

use super::container::Format;
use super::dump::Dumper;
use super::order::{Added, Sink};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::geometry::limits::BASIC_BLOCK;
use crate::image::Image;
use crate::journal::{CleanLog, LogState};
use crate::ondisk::metadump::MetaDevice;
use crate::report::Observer;

/// What is copied at once, in bytes.
const PIECE: u64 = 1 << 18;

/// What is known of the journal.
pub(super) enum Journal {
    /// It is on a device that the format has no place for.
    Elsewhere,
    /// Everything in it is in its place; the cycle that it has come to.
    Clean(u32),
    /// It must be replayed.
    Dirty,
    /// Nobody can tell.
    Damaged,
}

impl Journal {
    /// Whether the head of the dump says that the log is dirty.
    pub(super) fn is_dirty(&self) -> bool {
        matches!(self, Journal::Dirty | Journal::Damaged)
    }
}

/// Looks at the journal of `image`.
pub(super) fn look(image: &Image, format: Format, observer: &dyn Observer) -> Journal {
    if format == Format::V1 && image.geometry().log.start.is_none() {
        return Journal::Elsewhere;
    }
    match image.journal() {
        Ok(scan) => match scan.state {
            LogState::Zeroed => Journal::Clean(0),
            LogState::Clean => Journal::Clean(scan.last_record.cycle()),
            LogState::Dirty => Journal::Dirty,
        },
        Err(error) => {
            observer.warn(&error);
            Journal::Damaged
        }
    }
}

/// Copies the log, or what takes its place: a clean log without anything in it. Whether names that should be replaced
/// are still in it.
pub(super) fn copy(dumper: &Dumper<'_>, sink: &mut Sink<'_>, journal: &Journal) -> Result<bool> {
    let geometry = dumper.geometry;
    let external = geometry.log.start.is_none();
    let device = if external { MetaDevice::Log } else { MetaDevice::Data };
    let start = geometry.log_daddr().map_or(0, |daddr| daddr.0);
    match journal {
        Journal::Elsewhere => Ok(false),
        Journal::Clean(cycle) if !dumper.is_plain() => {
            // no change of metadata may be younger than the log
            let cycle = if geometry.features.has_crc() { cycle.saturating_add(1) } else { 1 };
            let clean = CleanLog::new(geometry, cycle);
            for (at, bytes) in clean.pieces() {
                sink.append_to(device, start + u64::from(at), &bytes)?;
            }
            Ok(false)
        }
        _ => {
            copy_as_it_is(dumper, sink, dumper.image.log()?, device, start)?;
            Ok(dumper.options.obscure)
        }
    }
}

fn copy_as_it_is(
    dumper: &Dumper<'_>,
    sink: &mut Sink<'_>,
    from: &dyn Device,
    device: MetaDevice,
    start: u64,
) -> Result<()> {
    let (mut at, end) = (start, start + dumper.geometry.log_basic_blocks());
    while at < end {
        let len = ((end - at) * u64::from(BASIC_BLOCK)).min(PIECE);
        let bytes = usize::try_from(len).map_err(|_| Error::Internal("pieces are small".to_owned()))?;
        if let Added::Unreadable(error) = sink.copy(from, 0, device, at, bytes)? {
            dumper.unreadable(error)?;
        }
        at += len / u64::from(BASIC_BLOCK);
    }
    Ok(())
}
