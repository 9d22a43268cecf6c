//! Points in time as text, in UTC: `2026-11-30 23:57:29.123456789`.

use crate::ondisk::Timestamp;

const DAY: i64 = 86_400;
/// Days of four hundred years, after which the calendar repeats.
const ERA: i64 = 146_097;
/// Days from the first of March of the year 0 to the Unix epoch.
const EPOCH: i64 = 719_468;

/// The time with its nanoseconds.
pub fn show(time: Timestamp) -> String {
    format!("{}.{:09}", show_seconds(time), time.nanoseconds)
}

/// The time without its nanoseconds.
pub fn show_seconds(time: Timestamp) -> String {
    let (days, second) = (time.seconds.div_euclid(DAY), time.seconds.rem_euclid(DAY));
    let (year, month, day) = date_of(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// The date of a day, counted from the Unix epoch. Years begin in March here, so that a leap day is the last of one.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH;
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1460 + day / 36524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + next, month, day)
}

/// The day of a date, counted from the Unix epoch.
fn day_of(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    era * ERA + year * 365 + year / 4 - year / 100 + (153 * month + 2) / 5 + day - 1 - EPOCH
}

/// The time that `text` means: `@SECONDS` since the Unix epoch, or a date with or without a time of the day, in UTC.
/// `None` when it means none.
pub fn parse(text: &str) -> Option<Timestamp> {
    let (text, nanoseconds) = match text.split_once('.') {
        Some((text, digits)) if !digits.is_empty() && digits.len() <= 9 && is_digits(digits) => {
            (text, format!("{digits:0<9}").parse().ok()?)
        }
        Some(_) => return None,
        None => (text, 0),
    };
    if let Some(seconds) = text.strip_prefix('@') {
        return Some(Timestamp { seconds: seconds.parse().ok()?, nanoseconds });
    }
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00:00"));
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time.strip_suffix('Z').unwrap_or(time), ':')?;
    let days = day_of(year, month, day);
    let sound = date_of(days) == (year, month, day) && hour < 24 && minute < 60 && second < 60;
    sound.then_some(Timestamp { seconds: days * DAY + hour * 3600 + minute * 60 + second, nanoseconds })
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Three numbers of at most four digits with `separator` between; the last may be missing in a time.
fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let mut parts = text.split(separator);
    let mut next = || match parts.next() {
        Some(part) if !part.is_empty() && part.len() <= 4 && is_digits(part) => part.parse().ok(),
        None if separator == ':' => Some(0),
        _ => None,
    };
    let numbers = [next()?, next()?, next()?];
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_shown_is_taken(seconds in -62_135_596_800_i64..253_402_300_799, nanoseconds in 0_u32..1_000_000_000) {
            let time = Timestamp { seconds, nanoseconds };
            prop_assert_eq!(parse(&show(time)), Some(time));
            prop_assert_eq!(parse(&format!("@{seconds}")), Some(Timestamp { seconds, nanoseconds: 0 }));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}") {
            let _ = parse(&text);
        }
    }

    #[test]
    fn known_times() {
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("2000-02-29 12:30", 951_827_400),
            ("1901-12-13T20:45:52Z", -(1 << 31)),
            ("2038-01-19 03:14:08", 1 << 31),
            ("2486-07-02 20:20:24", 16_299_260_424),
        ] {
            assert_eq!(parse(text).map(|time| time.seconds), Some(seconds), "{text}");
        }
        assert_eq!(show(Timestamp { seconds: -1, nanoseconds: 5 }), "1969-12-31 23:59:59.000000005");
        for text in ["", "2001-02-29", "2001-13-01", "2001-1", "2001-01-01 24:00", "@", "@1.", "@1.1234567890", "x"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
