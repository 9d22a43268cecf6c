//! Dates in the form of the C library's `ctime`.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The date of a second since 1970, in the local time zone: `Thu Jan  1 00:00:00 1970`. The number itself where it has no
/// date.
pub(in crate::db) fn local(seconds: i64) -> String {
    let Ok(time) = Timestamp::from_second(seconds) else { return seconds.to_string() };
    time.to_zoned(TimeZone::system()).strftime("%a %b %e %H:%M:%S %Y").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_the_form_of_ctime() {
        let text = local(86_400 * 31 + 3600);
        assert_eq!(text.len(), 24, "{text}");
        assert!(text.contains(" Feb  1 ") || text.contains(" Jan 31 "), "{text}");
        assert_eq!(local(i64::MAX), i64::MAX.to_string());
    }
}
