//! Entries as text.

use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};

use super::entry::{Entry, Fields, Value};

/// Where lines are broken, in characters.
const WIDTH: usize = 116;
/// How far what belongs to an entry is indented, in characters.
const STEP: usize = 2;

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("-"),
            Value::Bool(yes) => f.write_str(if *yes { "yes" } else { "no" }),
            Value::Number(number) => Display::fmt(number, f),
            Value::Signed(number) => Display::fmt(number, f),
            Value::Hex(number) => write!(f, "{number:#x}"),
            Value::Percent(part) => write!(f, "{part:.1}%"),
            Value::Lsn(lsn) => write!(f, "{}:{}", lsn.cycle(), lsn.block()),
            Value::Block(block, None) => Display::fmt(block, f),
            Value::Block(block, Some((group, within))) => write!(f, "{block} ({group}/{within})"),
            Value::Range(offset, len) => write!(f, "{offset}+{len}"),
            Value::Time(seconds, nanoseconds) => write!(f, "{seconds}.{nanoseconds:09}"),
            Value::Uuid(uuid) => Display::fmt(&uuid::Uuid::from_bytes(*uuid), f),
            Value::Word(word) => f.write_str(word),
            Value::Words(words) if words.is_empty() => f.write_str("-"),
            Value::Words(words) => separated(f, words.iter(), "|"),
            Value::Text(text) => f.write_str(text),
            Value::Name(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Value::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Value::List(values) if values.is_empty() => f.write_str("-"),
            Value::List(values) => separated(f, values.chunk_by(|one, next| one == next).map(Run), ", "),
            Value::Slice(first, values) => {
                write!(f, "[{first}] ")?;
                separated(f, values.chunk_by(|one, next| one == next).map(Run), ", ")
            }
            Value::Group(fields) => {
                let fields = fields.iter().map(|(name, value)| Named(name, value));
                separated(f, fields, " ")
            }
        }
    }
}

/// Values that are equal, one after the other.
struct Run<'a>(&'a [Value]);

impl Display for Run<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            [one] => one.fmt(f),
            [first, ..] => write!(f, "{first} ({} times)", self.0.len()),
        }
    }
}

/// A field of a group: name and value.
struct Named<'a>(&'a str, &'a Value);

impl Display for Named<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.1)
    }
}

fn separated<T: Display>(f: &mut Formatter<'_>, items: impl Iterator<Item = T>, separator: &str) -> fmt::Result {
    for (index, item) in items.enumerate() {
        if index > 0 {
            f.write_str(separator)?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

/// Writes an entry and what belongs to it.
pub(super) fn write_entry(out: &mut dyn Write, entry: &Entry, line: &mut String) -> io::Result<()> {
    write_at(out, entry, 0, line)
}

fn write_at(out: &mut dyn Write, entry: &Entry, indent: usize, line: &mut String) -> io::Result<()> {
    write_line(out, &entry.heading, &entry.fields, indent, line)?;
    for (_, value) in &entry.fields {
        if let Value::Bytes(bytes) = value {
            write_bytes(out, bytes, indent + STEP, line)?;
        }
    }
    entry.children.1.iter().try_for_each(|child| write_at(out, child, indent + STEP, line))
}

/// Writes heading and fields, in as many lines as they need: a line breaks before a field, or between values of a list.
fn write_line(out: &mut dyn Write, heading: &str, fields: &Fields, indent: usize, line: &mut String) -> io::Result<()> {
    use fmt::Write as _;
    line.clear();
    line.extend(std::iter::repeat_n(' ', indent));
    line.push_str(heading);
    // where the last line begins in `line`
    let mut begin = 0;
    for (name, value) in fields.iter().filter(|(_, value)| !matches!(value, Value::Bytes(_))) {
        let before = line.len();
        // what is written to a String cannot fail
        let _ = write!(line, "  {name} {value}");
        if line.len() - begin <= WIDTH {
            continue;
        }
        let margin = " ".repeat(indent + 2 * STEP);
        if before - begin > margin.len() {
            line.replace_range(before..before + 2, &format!("\n{margin}"));
            begin = before + 1;
        }
        while let Some(at) = (line.len() - begin > WIDTH).then(|| last_break(&line[begin..])).flatten() {
            line.replace_range(begin + at..begin + at + 1, &format!("\n{margin}"));
            begin += at + 1;
        }
    }
    line.push('\n');
    out.write_all(line.as_bytes())
}

/// The last place within the width at which a list can be broken; else the first.
fn last_break(line: &str) -> Option<usize> {
    let mut places = line.match_indices(", ").map(|(at, _)| at + 1);
    let first = places.next()?;
    Some(places.take_while(|at| *at <= WIDTH).last().unwrap_or(first))
}

/// Writes bytes in rows of sixteen, with what is printable beside them.
fn write_bytes(out: &mut dyn Write, bytes: &[u8], indent: usize, line: &mut String) -> io::Result<()> {
    use fmt::Write as _;
    for (index, row) in bytes.chunks(16).enumerate() {
        line.clear();
        let _ = write!(line, "{:indent$}{:04x} ", "", index * 16);
        for (at, byte) in row.iter().enumerate() {
            let _ = write!(line, "{}{byte:02x}", if at % 4 == 0 { " " } else { "" });
        }
        let missing = 16 - row.len();
        line.extend(std::iter::repeat_n(' ', 2 * missing + missing / 4 + 2));
        line.extend(row.iter().map(|byte| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' }));
        line.push('\n');
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}
