//! Histograms of extent lengths, as `freesp` prints them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};

/// Where buckets begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Buckets {
    /// At 1, and every so many blocks.
    Equal(u64),
    /// At these lengths, which ascend.
    At(Vec<u64>),
}

/// How many extents there are of which lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    buckets: Buckets,
    /// The highest length of the last bucket; longer ones are in none.
    max: u64,
    /// By number of the bucket.
    found: BTreeMap<u64, Tally>,
    total: Tally,
}

/// Extents, and their blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Extents.
    pub extents: u64,
    /// Blocks.
    pub blocks: u64,
}

/// A bucket: lowest and highest length, what is in it, and what is in it and those above.
type Row = (u64, u64, Tally, Tally);

impl Tally {
    fn add(&mut self, other: Tally) {
        self.extents += other.extents;
        self.blocks = self.blocks.saturating_add(other.blocks);
    }
}

impl Buckets {
    /// Buckets that begin at 1 and at each power of `factor` below `max`.
    pub fn powers(factor: u64, max: u64) -> Self {
        let powers = std::iter::successors(Some(1_u64), |low| low.checked_mul(factor.max(2)));
        Buckets::At(powers.take_while(|low| *low < max).collect())
    }

    /// How many there are, up to `max`.
    fn count(&self, max: u64) -> u64 {
        match self {
            Buckets::Equal(step) => max.saturating_sub(1).div_ceil((*step).max(1)),
            Buckets::At(lows) => u64::try_from(lows.len()).unwrap_or(u64::MAX),
        }
    }

    fn low(&self, index: u64) -> u64 {
        match self {
            Buckets::Equal(step) => 1 + index * step,
            Buckets::At(lows) => usize::try_from(index).ok().and_then(|index| lows.get(index)).copied().unwrap_or(0),
        }
    }

    /// The bucket of a length: the first, when it lies before all.
    fn index(&self, len: u64) -> u64 {
        match self {
            Buckets::Equal(step) => len.saturating_sub(1) / (*step).max(1),
            Buckets::At(lows) => {
                let behind = lows.partition_point(|low| *low <= len);
                u64::try_from(behind.saturating_sub(1)).unwrap_or(0)
            }
        }
    }
}

impl Histogram {
    /// A histogram with nothing in it, whose last bucket ends at `max`.
    pub fn new(buckets: Buckets, max: u64) -> Self {
        Histogram { buckets, max, found: BTreeMap::new(), total: Tally::default() }
    }

    /// Adds an extent.
    pub fn add(&mut self, len: u64) {
        let one = Tally { extents: 1, blocks: len };
        self.total.add(one);
        let last = self.buckets.count(self.max).checked_sub(1);
        if let Some(last) = last.filter(|_| len <= self.max) {
            self.found.entry(self.buckets.index(len).min(last)).or_default().add(one);
        }
    }

    /// Adds what another histogram with the same buckets has.
    pub fn append(&mut self, other: &Histogram) {
        self.total.add(other.total);
        for (index, tally) in &other.found {
            self.found.entry(*index).or_default().add(*tally);
        }
    }

    /// All extents.
    pub fn total(&self) -> Tally {
        self.total
    }

    /// Blocks of an extent on the average.
    #[allow(clippy::cast_precision_loss)] // shown with six digits
    pub fn average(&self) -> f64 {
        self.total.blocks as f64 / self.total.extents as f64
    }

    /// The buckets that hold extents.
    fn rows(&self) -> Vec<Row> {
        let count = self.buckets.count(self.max);
        let mut above = Tally::default();
        let rows = self.found.iter().rev().map(|(index, tally)| {
            above.add(*tally);
            let high = if index + 1 == count { self.max } else { self.buckets.low(index + 1) - 1 };
            (self.buckets.low(*index), high, *tally, above)
        });
        let mut rows: Vec<_> = rows.collect();
        rows.reverse();
        rows
    }

    /// Writes a line for each bucket that holds extents.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let rows = self.rows();
        let width = |least: usize, number: &dyn Fn(&Row) -> u64| {
            rows.iter().map(|row| number(row).to_string().len()).max().unwrap_or(0).max(least)
        };
        let (from, to) = (width(7, &|row| row.0), width(7, &|row| row.1));
        let (extents, blocks) = (width(7, &|row| row.2.extents), width(6, &|row| row.2.blocks));
        writeln!(
            out,
            "{:>from$} {:>to$} {:>extents$} {:>blocks$} {:>6} {:>6} {:>6}",
            "from", "to", "extents", "blocks", "pct", "blkcdf", "extcdf"
        )?;
        for (low, high, tally, above) in &rows {
            let (here, sum, count) = self.percentages(*tally, *above);
            writeln!(
                out,
                "{low:>from$} {high:>to$} {:>extents$} {:>blocks$} {here:>6.2} {sum:>6.2} {count:>6.2}",
                tally.extents, tally.blocks
            )?;
        }
        Ok(())
    }

    /// Share of the blocks in a bucket; of the blocks and of the extents in it and those above.
    #[allow(clippy::cast_precision_loss)] // shown with two decimals
    fn percentages(&self, tally: Tally, above: Tally) -> (f64, f64, f64) {
        let share = |part: u64, whole: u64| part as f64 * 100.0 / whole as f64;
        (
            share(tally.blocks, self.total.blocks),
            share(above.blocks, self.total.blocks),
            share(above.extents, self.total.extents),
        )
    }

    /// The same as data.
    pub fn json(&self) -> Value {
        let rows = self.rows().into_iter().map(|(low, high, tally, above)| {
            json!({
                "from": low,
                "to": high,
                "extents": tally.extents,
                "blocks": tally.blocks,
                "blocks_from_here": above.blocks,
                "extents_from_here": above.extents,
            })
        });
        Value::Array(rows.collect())
    }
}

/// A number with six digits, as C's `%g` prints it.
pub fn six_digits(number: f64) -> String {
    if number.is_nan() {
        return "-nan".to_owned();
    }
    if number == 0.0 || number.is_infinite() {
        return if number == 0.0 { "0".to_owned() } else { "inf".to_owned() };
    }
    let scientific = format!("{number:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text.to_owned() }
    };
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = usize::try_from(5 - exponent).unwrap_or(0);
    trimmed(&format!("{number:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_fall_into_their_buckets() {
        let mut histogram = Histogram::new(Buckets::powers(2, 100), 100);
        for len in [1, 2, 3, 64, 100, 101] {
            histogram.add(len);
        }
        let rows: Vec<_> = histogram.rows().iter().map(|row| (row.0, row.1, row.2.extents, row.3.extents)).collect();
        assert_eq!(rows, [(1, 1, 1, 5), (2, 3, 2, 4), (64, 100, 2, 2)]);
        assert_eq!(histogram.total(), Tally { extents: 6, blocks: 271 });
        let mut equal = Histogram::new(Buckets::Equal(30), 100);
        for len in [0, 30, 31, 99, 100] {
            equal.add(len);
        }
        let rows: Vec<_> = equal.rows().iter().map(|row| (row.0, row.1, row.2.extents)).collect();
        assert_eq!(rows, [(1, 30, 2), (31, 60, 1), (91, 100, 2)]);
    }

    #[test]
    fn six_digits_as_c_prints_them() {
        let cases = [
            (2964.31, "2964.31"),
            (0.5, "0.5"),
            (3.0, "3"),
            (123_456.7, "123457"),
            (1_234_567.0, "1.23457e+06"),
            (0.000_01, "1e-05"),
            (999_999.9, "1e+06"),
            (f64::NAN, "-nan"),
            (0.0, "0"),
        ];
        for (number, text) in cases {
            assert_eq!(six_digits(number), text);
        }
    }
}
