//! The headers of a group, as a transaction sees and changes them.

use crate::buffer::{BlockKind, Request};
use crate::error::{Check, Error, Place, Result, Rule};
use crate::geometry::{AgNumber, Geometry};
use crate::ondisk::{OnDisk, RawAgf, RawAgi};
use crate::transaction::{Store, Transaction};

/// The request for a header of a group.
pub(super) fn header(geometry: &Geometry, kind: BlockKind, agno: AgNumber, sector: u32) -> Result<Request> {
    let daddr = geometry.ag_header_daddr(agno, sector);
    let daddr = daddr.ok_or_else(|| Error::Usage(format!("there is no group {agno}")))?;
    Ok(Request::new(geometry, kind, daddr))
}

fn read<T: OnDisk + Copy>(store: &Store, request: &Request) -> Result<T> {
    let bytes = store.bytes_of(request)?;
    let raw = T::prefix(&bytes).ok_or_else(|| Error::Internal("a header fits into its sector".to_owned()))?;
    Ok(*raw.0)
}

fn change<T: OnDisk>(tx: &mut Transaction<'_>, request: &Request, change: impl FnOnce(&mut T)) -> Result<()> {
    tx.modify(request, |bytes| {
        let raw = T::prefix_mut(bytes).ok_or_else(|| Error::Internal("a header fits into its sector".to_owned()))?;
        change(raw.0);
        Ok(())
    })
}

/// The free space header of a group.
///
/// # Errors
/// `Usage` when there is no such group; `Io`; `Corrupt` when the header fails its checks.
pub fn agf(store: &Store, agno: AgNumber) -> Result<RawAgf> {
    read(store, &header(store.geometry(), BlockKind::Agf, agno, RawAgf::SECTOR)?)
}

/// Changes the free space header of a group.
///
/// # Errors
/// As [`agf`].
pub fn change_agf(tx: &mut Transaction<'_>, agno: AgNumber, with: impl FnOnce(&mut RawAgf)) -> Result<()> {
    let request = header(tx.store().geometry(), BlockKind::Agf, agno, RawAgf::SECTOR)?;
    change(tx, &request, with)
}

/// The inode header of a group.
///
/// # Errors
/// As [`agf`].
pub fn agi(store: &Store, agno: AgNumber) -> Result<RawAgi> {
    read(store, &header(store.geometry(), BlockKind::Agi, agno, RawAgi::SECTOR)?)
}

/// Changes the inode header of a group.
///
/// # Errors
/// As [`agf`].
pub fn change_agi(tx: &mut Transaction<'_>, agno: AgNumber, with: impl FnOnce(&mut RawAgi)) -> Result<()> {
    let request = header(tx.store().geometry(), BlockKind::Agi, agno, RawAgi::SECTOR)?;
    change(tx, &request, with)
}

/// Damage of a group.
pub(super) fn corrupt(structure: &'static str, field: &'static str, rule: Rule, agno: AgNumber) -> Error {
    Error::corrupt(Check::new(structure, field, rule), Place { agno: Some(agno.0), ..Place::default() })
}
