//! Field expressions as they are typed: `core.mode`, `u3.bmx[0-3].startblock`.

use crate::db::commands::number;
use crate::error::{Error, Result};

/// A field that is asked for, and perhaps a field in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// Its name.
    pub name: String,
    /// The first index.
    pub low: Option<usize>,
    /// The last index, if more than one is asked for.
    pub high: Option<usize>,
    /// The field in it.
    pub child: Option<Box<Expression>>,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// `Usage` when it is none.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || Error::Usage(format!("{text} is no field expression like core.mode or recs[1-3].startblock"));
        let mut steps = Vec::new();
        let mut rest = text;
        loop {
            let (step, after) = step(rest).ok_or_else(wrong)?;
            steps.push(step);
            rest = match after.strip_prefix('.') {
                Some(after) => after,
                // a dot may be left out behind a bracket, as in xfs_db
                None if after.starts_with(|c: char| c.is_ascii_lowercase()) => after,
                None if after.is_empty() => break,
                None => return Err(wrong()),
            };
        }
        let nested =
            steps.into_iter().rev().fold(None, |child, step| Some(Expression { child: child.map(Box::new), ..step }));
        nested.ok_or_else(wrong)
    }

    /// The same as it is typed.
    pub fn text(&self) -> String {
        let index = match (self.low, self.high) {
            (Some(low), Some(high)) => format!("[{low}-{high}]"),
            (Some(low), None) => format!("[{low}]"),
            (None, _) => String::new(),
        };
        let child = self.child.as_ref().map(|child| format!(".{}", child.text())).unwrap_or_default();
        format!("{}{index}{child}", self.name)
    }
}

/// One name with its indexes, and what follows.
fn step(text: &str) -> Option<(Expression, &str)> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let (name, rest) = take(text, is_name);
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return None;
    }
    let mut step = Expression { name: name.to_owned(), low: None, high: None, child: None };
    let Some(rest) = rest.strip_prefix('[') else { return Some((step, rest)) };
    let (low, mut rest) = index(rest)?;
    step.low = Some(low);
    if let Some(after) = rest.strip_prefix('-') {
        let (high, after) = index(after)?;
        step.high = Some(high);
        rest = after;
    }
    Some((step, rest.strip_prefix(']')?))
}

fn index(text: &str) -> Option<(usize, &str)> {
    let (digits, rest) = take(text, |c| c.is_ascii_hexdigit() || c == 'x' || c == 'X');
    Some((usize::try_from(number::value(digits)?).ok()?, rest))
}

fn take(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read_and_written() {
        for text in ["core", "core.mode", "u3.bmx[0-3]", "recs[1].startblock", "bu[12].inumber", "a[0x10]", "a_1[2]b"] {
            let expression = Expression::parse(text).expect("well formed");
            let written = expression.text();
            assert!(Expression::parse(&written).is_ok_and(|again| again == expression), "{text} {written}");
        }
        let nested = Expression::parse("u3.bmx[0x2-3].flag").expect("well formed");
        assert_eq!(nested.text(), "u3.bmx[2-3].flag");
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in [
            "",
            ".",
            "a.",
            "a[",
            "a[]",
            "a[1",
            "a[1-]",
            "a[-1]",
            "a[1]]",
            "1a",
            "A",
            "a b",
            "a..b",
            "[1]",
            "ä",
            "a[99999999999999999999]",
        ] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
    }
}
