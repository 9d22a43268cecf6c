//! A block under test, and what has been found.

use super::kind::Request;
use crate::error::{Check, Place, Rule, Verdict};
use crate::geometry::Geometry;

/// A structure under test: its geometry, where it lies, and the verdict so far.
pub(super) struct Checks<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) request: &'a Request,
    pub(super) bytes: &'a [u8],
    structure: &'static str,
    place: Place,
    verdict: Verdict,
}

impl<'a> Checks<'a> {
    pub(super) fn new(
        geometry: &'a Geometry,
        request: &'a Request,
        bytes: &'a [u8],
        structure: &'static str,
        place: Place,
    ) -> Self {
        Checks { geometry, request, bytes, structure, place, verdict: Verdict::new() }
    }

    pub(super) fn into_verdict(self) -> Verdict {
        self.verdict
    }

    /// Notes a failure of `field`.
    pub(super) fn fail(&mut self, field: &'static str, rule: Rule, detail: impl Into<String>) {
        self.note(Check::new(self.structure, field, rule), detail);
    }

    /// Notes a failure that a decoder found, unless it is one that is noted already.
    pub(super) fn note(&mut self, check: Check, detail: impl Into<String>) {
        if !self.verdict.has_failed(check) {
            self.verdict.fail(check, self.place.clone(), detail);
        }
    }

    /// Notes a failure of `field` unless `holds`.
    pub(super) fn require(&mut self, holds: bool, field: &'static str, rule: Rule, detail: impl FnOnce() -> String) {
        if !holds {
            self.fail(field, rule, detail());
        }
    }

    /// Notes a failure of `field` unless its value lies between `min` and `max`.
    pub(super) fn range(
        &mut self,
        field: &'static str,
        value: impl Into<u64>,
        min: impl Into<u64>,
        max: impl Into<u64>,
    ) {
        let (value, min, max) = (value.into(), min.into(), max.into());
        let detail = || format!("{value}, not in {min} to {max}");
        self.require(value >= min && value <= max, field, Rule::Range, detail);
    }

    /// Notes a failure of `field` unless its value is `expected`.
    pub(super) fn equal(&mut self, field: &'static str, rule: Rule, value: impl Into<u64>, expected: impl Into<u64>) {
        let (value, expected) = (value.into(), expected.into());
        self.require(value == expected, field, rule, || format!("{value}, expected {expected}"));
    }

    /// Notes that the bytes end before the structure does.
    pub(super) fn truncated(&mut self) {
        let len = self.bytes.len();
        self.fail("block", Rule::Truncated, format!("{len} bytes"));
    }
}
