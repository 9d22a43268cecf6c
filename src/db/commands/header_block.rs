//! The headers of allocation groups as structures, for commands that need what they say.

use crate::buffer::{BlockKind, Request};
use crate::db::session::Session;
use crate::error::{Error, Result};
use crate::geometry::AgNumber;
use crate::ondisk::{OnDisk, RawAgf, RawAgi};

/// The AGF of a group, whatever it is worth; what is wrong with it is told the observer.
///
/// # Errors
/// `Io`; `Usage` when there is no such group.
pub(super) fn agf(session: &Session, agno: AgNumber) -> Result<RawAgf> {
    read(session, BlockKind::Agf, agno, RawAgf::SECTOR)
}

/// The AGI of a group, in the same way.
///
/// # Errors
/// As of [`agf`].
pub(super) fn agi(session: &Session, agno: AgNumber) -> Result<RawAgi> {
    read(session, BlockKind::Agi, agno, RawAgi::SECTOR)
}

fn read<T: OnDisk + Copy>(session: &Session, kind: BlockKind, agno: AgNumber, sector: u32) -> Result<T> {
    let geometry = session.geometry();
    let daddr = geometry.ag_header_daddr(agno, sector);
    let daddr = daddr.ok_or_else(|| Error::Usage(format!("there is no group {agno}")))?;
    let block = session.image.cache().read(Request::new(geometry, kind, daddr))?;
    session.warn_of(block.verdict());
    let header = T::prefix(block.bytes()).map(|(header, _)| *header);
    header.ok_or_else(|| Error::Internal("a sector holds a header".to_owned()))
}
