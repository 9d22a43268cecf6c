//! A journal, and what is said of it before anything else.

use super::entry::{Entry, Value};
use crate::device::Device;
use crate::error::DeviceRole;
use crate::geometry::Geometry;
use crate::journal::{LogArea, LogScan, LogState, Order, scan};

/// A journal that is to be shown.
pub struct Journal<'a> {
    area: LogArea<'a>,
    geometry: Option<&'a Geometry>,
    device: DeviceRole,
    data: Option<&'a dyn Device>,
    scan: Result<LogScan, String>,
}

impl<'a> Journal<'a> {
    /// The journal in `area`, which lies on `device`. The geometry of its filesystem says where blocks are; a copy of a log has
    /// none. Head and tail are looked for; where they cannot be found, the journal can be shown all the same.
    pub fn new(area: LogArea<'a>, geometry: Option<&'a Geometry>, device: DeviceRole) -> Self {
        let scan = scan(&area).map_err(|error| error.to_string());
        Journal { area, geometry, device, data: None, scan }
    }

    /// The same with the data device of its filesystem, which tells what of the journal is in place already.
    #[must_use]
    pub fn with_data(self, data: &'a dyn Device) -> Self {
        Journal { data: Some(data), ..self }
    }

    /// The data device of its filesystem, if that is known.
    pub fn data(&self) -> Option<&'a dyn Device> {
        self.data
    }

    /// Its blocks.
    pub fn area(&self) -> &LogArea<'a> {
        &self.area
    }

    /// The geometry of its filesystem, if that is known.
    pub fn geometry(&self) -> Option<&'a Geometry> {
        self.geometry
    }

    /// Head and tail, if they were found.
    pub fn found(&self) -> Option<&LogScan> {
        self.scan.as_ref().ok()
    }

    /// What is said of it before anything else.
    pub fn entry(&self) -> Entry {
        let area = &self.area;
        let place = match (self.geometry, self.device) {
            (None, _) => "copy",
            (_, DeviceRole::Log) => "external",
            _ => "internal",
        };
        let mut fields = vec![
            ("place", Value::Word(place)),
            ("daddr", Value::from(area.start().0)),
            ("blocks", Value::from(area.blocks())),
            ("version", Value::from(area.version())),
            ("uuid", Value::Uuid(area.uuid())),
        ];
        match &self.scan {
            Err(problem) => {
                fields.push(("state", Value::Word("damaged")));
                fields.push(("problem", Value::Text(problem.clone())));
            }
            Ok(found) => {
                fields.push(("byte_order", byte_order(found.format)));
                fields.push(("state", Value::Word(state_word(found.state))));
                fields.push(("head", Value::from(found.head)));
                fields.push(("tail", Value::from(found.tail)));
                fields.push(("last_record", Value::Lsn(found.last_record)));
                if let Some(torn) = found.torn {
                    let torn = vec![("block", Value::from(torn.block)), ("head_without_it", Value::from(torn.head))];
                    fields.push(("torn", Value::Group(torn)));
                }
            }
        }
        Entry::new("log", "log:", fields)
    }
}

fn state_word(state: LogState) -> &'static str {
    match state {
        LogState::Zeroed => "zeroed",
        LogState::Clean => "clean",
        LogState::Dirty => "dirty",
    }
}

/// The byte order that a record header names.
pub(super) fn byte_order(format: u32) -> Value {
    match Order::of_format(format) {
        Some(Order::Little) => Value::Word("little"),
        Some(Order::Big) => Value::Word("big"),
        None => Value::Null,
    }
}
