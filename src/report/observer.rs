//! Who is told how far the work is, and what went wrong on the way.

use crate::error::Error;

/// What progress is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes: shown with a rate.
    Bytes,
    /// Anything else: allocation groups, inodes, records.
    Items(&'static str),
}

/// Is told how far the work is, and what went wrong on the way without ending it. Many threads may use one.
pub trait Observer: Sync {
    /// Work begins that is `total` units long. It ends with the next call of `begin` or with [`Observer::end`].
    fn begin(&self, what: &str, total: u64, unit: Unit);

    /// So many units more are done.
    fn advance(&self, units: u64);

    /// The work that began last is over.
    fn end(&self);

    /// Something could not be read or is not sound; the work goes on without it.
    fn warn(&self, problem: &Error);
}

/// Nobody listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn begin(&self, _what: &str, _total: u64, _unit: Unit) {}
    fn advance(&self, _units: u64) {}
    fn end(&self) {}
    fn warn(&self, _problem: &Error) {}
}
