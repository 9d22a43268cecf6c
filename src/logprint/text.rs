//! Entries as text.

use std::fmt;
use std::io::{self, Write};
use std::ops::Range;

use super::entry::{Entry, Fields, Value};
use super::heading::Heading;

/// Where lines are broken, in characters.
const WIDTH: usize = 116;
/// How far what belongs to an entry is indented, in characters.
const STEP: usize = 2;

/// Appends a value. Numbers do without the formatter, which would take most of the time.
fn push(line: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => line.push(b'-'),
        Value::Bool(yes) => push_str(line, if *yes { "yes" } else { "no" }),
        Value::Number(number) | Value::Block(number, None) => push_number(line, *number),
        Value::Signed(number) => push_number(line, *number),
        Value::Hex(number) => push_hex(line, *number),
        Value::Mode(mode) => push_formatted(line, format_args!("{mode:#o}")),
        Value::Percent(part) => push_formatted(line, format_args!("{part:.1}%")),
        Value::Lsn(lsn) => {
            push_number(line, lsn.cycle());
            line.push(b':');
            push_number(line, lsn.block());
        }
        Value::Block(block, Some((group, within))) => push_formatted(line, format_args!("{block} ({group}/{within})")),
        Value::Range(offset, len) => {
            push_number(line, *offset);
            line.push(b'+');
            push_number(line, *len);
        }
        Value::Time(seconds, nanoseconds) => {
            push_number(line, *seconds);
            line.push(b'.');
            let mut number = itoa::Buffer::new();
            let digits = number.format(*nanoseconds);
            push_str(line, "000000000".get(digits.len()..).unwrap_or_default());
            push_str(line, digits);
        }
        Value::Uuid(uuid) => {
            let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
            push_str(line, uuid::Uuid::from_bytes(*uuid).as_hyphenated().encode_lower(&mut text));
        }
        Value::Word(word) => push_str(line, word),
        Value::Words(words) if words.is_empty() => line.push(b'-'),
        Value::Words(words) => push_separated(line, words, "|", |line, word| push_str(line, word)),
        Value::Text(text) => push_str(line, text),
        Value::Name(bytes) => {
            line.push(b'"');
            line.extend(bytes.escape_ascii());
            line.push(b'"');
        }
        Value::Bytes(bytes) => push_formatted(line, format_args!("{} bytes", bytes.len())),
        Value::List(values) => push_list(line, values),
        Value::Slice(first, values) => {
            push_formatted(line, format_args!("[{first}] "));
            push_list(line, values);
        }
        Value::Group(fields) => push_separated(line, fields, " ", |line, (name, value)| {
            push_str(line, name);
            line.push(b' ');
            push(line, value);
        }),
    }
}

pub(super) fn push_str(line: &mut Vec<u8>, text: &str) {
    line.extend_from_slice(text.as_bytes());
}

pub(super) fn push_number(line: &mut Vec<u8>, number: impl itoa::Integer) {
    push_str(line, itoa::Buffer::new().format(number));
}

pub(super) fn push_formatted(line: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    // a vector takes everything
    let _ = line.write_fmt(text);
}

fn push_separated<T>(
    line: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    separator: &str,
    push: impl Fn(&mut Vec<u8>, T),
) {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            push_str(line, separator);
        }
        push(line, item);
    }
}

/// Values of a list; those that are equal, one after the other, once.
fn push_list(line: &mut Vec<u8>, values: &[Value]) {
    if values.is_empty() {
        line.push(b'-');
    }
    push_separated(line, values.chunk_by(|one, next| one == next), ", ", |line, run| {
        run.iter().take(1).for_each(|value| push(line, value));
        if run.len() > 1 {
            push_formatted(line, format_args!(" ({} times)", run.len()));
        }
    });
}

/// The digits of a byte, high and low.
fn hex_digits(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xf)]]
}

fn push_hex(line: &mut Vec<u8>, number: u64) {
    push_str(line, "0x");
    push_digits(line, number, 1);
}

/// A number in hexadecimal, with so many digits or more.
fn push_digits(line: &mut Vec<u8>, number: u64, least: usize) {
    let mut digits = [0; 16];
    for (place, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        place.copy_from_slice(&hex_digits(byte));
    }
    let skipped = usize::try_from(number.leading_zeros() / 4).unwrap_or(0).min(digits.len() - least);
    line.extend_from_slice(&digits[skipped..]);
}

fn push_spaces(line: &mut Vec<u8>, count: usize) {
    line.resize(line.len() + count, b' ');
}

/// Writes an entry and what belongs to it, at some depth.
pub(super) fn write_entry(out: &mut dyn Write, entry: &Entry, depth: usize, line: &mut Vec<u8>) -> io::Result<()> {
    write_at(out, entry, depth * STEP, line)
}

fn write_at(out: &mut dyn Write, entry: &Entry, indent: usize, line: &mut Vec<u8>) -> io::Result<()> {
    write_line(out, &entry.heading, &entry.fields, indent, line)?;
    for (_, value) in &entry.fields {
        if let Value::Bytes(bytes) = value {
            write_bytes(out, bytes, indent + STEP, line)?;
        }
    }
    entry.children.1.iter().try_for_each(|child| write_at(out, child, indent + STEP, line))
}

/// Writes heading and fields, in as many lines as they need: a line breaks before a field, or between values of a list.
fn write_line(
    out: &mut dyn Write,
    heading: &Heading,
    fields: &Fields,
    indent: usize,
    line: &mut Vec<u8>,
) -> io::Result<()> {
    line.clear();
    push_spaces(line, indent);
    heading.push(line);
    let margin = indent + 2 * STEP;
    // where the last line begins in `line`
    let mut begin = 0;
    for (name, value) in fields.iter().filter(|(_, value)| !matches!(value, Value::Bytes(_))) {
        let before = line.len();
        push_str(line, "  ");
        push_str(line, name);
        line.push(b' ');
        push(line, value);
        if line.len() - begin <= WIDTH {
            continue;
        }
        if before - begin > margin {
            break_line(line, before..before + 2, margin);
            begin = before + 1;
        }
        while let Some(at) = (line.len() - begin > WIDTH).then(|| last_break(&line[begin..])).flatten() {
            break_line(line, begin + at..begin + at + 1, margin);
            begin += at + 1;
        }
    }
    line.push(b'\n');
    out.write_all(line)
}

/// Puts the end of a line, and the margin of the next one, in place of spaces.
fn break_line(line: &mut Vec<u8>, spaces: Range<usize>, margin: usize) {
    // the margin is at least as long as the spaces
    let (tail, more) = (spaces.end..line.len(), margin + 1 - spaces.len());
    push_spaces(line, more);
    line.copy_within(tail.clone(), tail.start + more);
    line[spaces.start] = b'\n';
    line[spaces.start + 1..tail.start + more].fill(b' ');
}

/// The last place within the width at which a list can be broken; else the first.
fn last_break(line: &[u8]) -> Option<usize> {
    let mut places = line.windows(2).zip(1..).filter(|(two, _)| *two == b", ").map(|(_, at)| at);
    let first = places.next()?;
    Some(places.take_while(|at| *at <= WIDTH).last().unwrap_or(first))
}

/// Bytes of a row.
const ROW: usize = 16;

/// Writes bytes in rows of sixteen, with what is printable beside them.
fn write_bytes(out: &mut dyn Write, bytes: &[u8], indent: usize, line: &mut Vec<u8>) -> io::Result<()> {
    line.clear();
    for (row, offset) in bytes.chunks(ROW).zip((0..).step_by(ROW)) {
        push_spaces(line, indent);
        push_digits(line, offset, 4);
        line.push(b' ');
        // a space before every four bytes, and two behind all
        let mut hexadecimal = [b' '; ROW * 2 + ROW / 4 + 2];
        for (at, byte) in row.iter().enumerate() {
            let place = at * 2 + at / 4 + 1;
            hexadecimal[place..place + 2].copy_from_slice(&hex_digits(*byte));
        }
        line.extend_from_slice(&hexadecimal);
        line.extend(row.iter().map(|byte| if (0x20..0x7f).contains(byte) { *byte } else { b'.' }));
        line.push(b'\n');
    }
    out.write_all(line)
}
