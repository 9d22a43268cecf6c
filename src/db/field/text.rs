//! Fields as text, to the byte as xfs_db prints them.

use std::io::{self, Write};

use super::calendar;
use super::format::{Format, Null, Radix, Shape};
use super::node::Node;
use super::object::Object;
use super::row::{Bits, Row};
use super::value::{NamedValue, inode_time, quota_timer};

/// Writes fields, one a line (records: one a line each).
///
/// # Errors
/// Those of `out`.
pub fn write_nodes(out: &mut dyn Write, nodes: &[Node], object: &Object<'_>, prefix: &str) -> io::Result<()> {
    for node in nodes {
        let mut name = format!("{prefix}{}", node.row.name);
        match node.range {
            Some((low, high)) if low == high => name += &format!("[{low}]"),
            Some((low, high)) => name += &format!("[{low}-{high}]"),
            None => {}
        }
        if !node.children.is_empty() {
            if !node.row.name.is_empty() {
                name.push('.');
            }
            write_nodes(out, &node.children, object, &name)?;
            continue;
        }
        write!(out, "{name} = ")?;
        match node.row.format.shape {
            Shape::Structure(_) if node.row.format.may_be_empty => out.write_all(b"(empty)")?,
            Shape::Structure(_) => out.write_all(b"Unrecognized metadata or type mismatch")?,
            _ => Elements::of(node, object).write(out, object)?,
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Elements of one format that follow each other.
struct Elements {
    format: Format,
    bit: Bits,
    count: usize,
    size: Bits,
    /// Index of the first one.
    base: usize,
    array: bool,
}

impl Elements {
    fn of(node: &Node, object: &Object<'_>) -> Self {
        Elements {
            format: node.row.format,
            bit: node.offset,
            count: node.count(object),
            size: node.size(object),
            base: node.range.map_or(0, |(low, _)| low),
            array: node.row.base.is_some(),
        }
    }

    /// The elements of a field of a record.
    fn of_record(row: &Row, object: &Object<'_>, start: Bits, index: usize) -> Self {
        Elements {
            format: row.format,
            bit: row.offset(object, start, index),
            count: row.count(object, start),
            size: row.size(object, start, index),
            base: row.base.unwrap_or(0),
            array: row.base.is_some(),
        }
    }

    fn write(&self, out: &mut dyn Write, object: &Object<'_>) -> io::Result<()> {
        match self.format.shape {
            Shape::Characters => self.write_characters(out, object),
            Shape::Number { radix, signed, null, skip_zero } => {
                self.write_numbers(out, object, &NumberStyle { radix, signed, null, skip_zero })
            }
            Shape::Records(rows) => self.write_records(out, object, rows),
            Shape::Structure(_) => out.write_all(b"(empty)"),
            _ => self.write_others(out, object),
        }
    }

    /// Where each element lies.
    fn places(&self) -> impl Iterator<Item = (usize, Bits)> + use<> {
        let (bit, size) = (self.bit, self.size);
        (0..self.count).map(move |index| (index, bit.saturating_add(index.saturating_mul(size))))
    }

    fn write_characters(&self, out: &mut dyn Write, object: &Object<'_>) -> io::Result<()> {
        out.write_all(b"\"")?;
        for &byte in object.from(self.bit).iter().take(self.count) {
            match byte {
                b'\\' | b'\'' | b'"' | b'?' => out.write_all(&[b'\\', byte])?,
                b' '..=b'~' => out.write_all(&[byte])?,
                // control characters from 7 on are named by letters from a on, in the order of their codes
                7..=13 => out.write_all(&[b'\\', byte - 7 + b'a'])?,
                _ => write!(out, "\\{byte:03o}")?,
            }
        }
        out.write_all(b"\"")
    }

    fn write_numbers(&self, out: &mut dyn Write, object: &Object<'_>, style: &NumberStyle) -> io::Result<()> {
        for (index, bit) in self.places() {
            let value = object.number(bit, self.size).unwrap_or(0);
            let null = value == only_ones(self.size);
            if (style.skip_zero && value == 0) || (style.null == Null::LeftOut && null) {
                continue;
            }
            if self.array && self.count > 1 {
                write!(out, "{}:", index + self.base)?;
            }
            if style.null == Null::Word && null {
                out.write_all(b"null")?;
            } else {
                style.write(out, value, self.size)?;
            }
            self.separate(out, index)?;
        }
        Ok(())
    }

    fn write_records(&self, out: &mut dyn Write, object: &Object<'_>, rows: &'static [Row]) -> io::Result<()> {
        let shown = || rows.iter().filter(|row| !row.hidden);
        let names: Vec<&str> = shown().map(|row| row.name).collect();
        write!(out, "[{}] ", names.join(","))?;
        for (index, bit) in self.places() {
            if self.array {
                write!(out, "\n{}:", index + self.base)?;
            }
            for (column, row) in shown().enumerate() {
                out.write_all(if column == 0 { b"[" } else { b"," })?;
                Elements::of_record(row, object, bit, index + self.base).write(out, object)?;
            }
            out.write_all(b"]")?;
            self.separate(out, index)?;
        }
        Ok(())
    }

    /// Elements of the shapes that always show their indexes in arrays.
    fn write_others(&self, out: &mut dyn Write, object: &Object<'_>) -> io::Result<()> {
        for (index, bit) in self.places() {
            if self.array {
                write!(out, "{}:", index + self.base)?;
            }
            self.write_other(out, object, bit)?;
            self.separate(out, index)?;
        }
        Ok(())
    }

    fn write_other(&self, out: &mut dyn Write, object: &Object<'_>, bit: Bits) -> io::Result<()> {
        let number = || object.number(bit, self.size).unwrap_or(0);
        match self.format.shape {
            Shape::Uuid => write!(out, "{}", super::value::uuid(object, bit)),
            Shape::Time => out.write_all(calendar::local(inode_time(object, bit).seconds).as_bytes()),
            Shape::Nanoseconds => write!(out, "{}", inode_time(object, bit).nanoseconds),
            Shape::QuotaTimer => match quota_timer(object, bit) {
                (seconds, true) => write!(out, "{seconds}"),
                (seconds, false) => {
                    out.write_all(calendar::local(i64::try_from(seconds).unwrap_or(i64::MAX)).as_bytes())
                }
            },
            Shape::Crc => {
                write_hexadecimal(out, number())?;
                write!(out, " ({})", object.crc.word())
            }
            Shape::Named(names) => match NamedValue::of(names, number(), self.size) {
                NamedValue { value, name: Some(name) } => write!(out, "{value} ({name})"),
                NamedValue { value, name: None } => write!(out, "{value}"),
            },
            _ => Ok(()),
        }
    }

    fn separate(&self, out: &mut dyn Write, index: usize) -> io::Result<()> {
        if index + 1 < self.count { out.write_all(b" ") } else { Ok(()) }
    }
}

/// The number of `size` bits that are all set.
pub(super) fn only_ones(size: Bits) -> u64 {
    1_u64.checked_shl(u32::try_from(size).unwrap_or(u32::MAX)).map_or(u64::MAX, |bit| bit - 1)
}

struct NumberStyle {
    radix: Radix,
    signed: bool,
    null: Null,
    skip_zero: bool,
}

impl NumberStyle {
    fn write(&self, out: &mut dyn Write, value: u64, size: Bits) -> io::Result<()> {
        match self.radix {
            _ if self.signed => write!(out, "{}", super::value::signed(value, size)),
            Radix::Decimal => write!(out, "{value}"),
            Radix::Hexadecimal => write_hexadecimal(out, value),
            Radix::Octal if value == 0 => out.write_all(b"0"),
            Radix::Octal => write!(out, "0{value:o}"),
        }
    }
}

/// As the C library does: zero has no prefix.
fn write_hexadecimal(out: &mut dyn Write, value: u64) -> io::Result<()> {
    if value == 0 { out.write_all(b"0") } else { write!(out, "{value:#x}") }
}
