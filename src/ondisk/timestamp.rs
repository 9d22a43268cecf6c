//! Timestamps of inodes and of quota timers (Linux `xfs_format.h`, "XFS Timestamps", "XFS Quota Timers").

use super::Be64;

/// Seconds from the epoch of bigtime timestamps (the year 1901) to that of Unix.
pub const BIGTIME_EPOCH_OFFSET: i64 = 1 << 31;
/// Latest second of a bigtime timestamp, since the Unix epoch (the year 2486).
pub const BIGTIME_MAX: i64 = 16_299_260_424;
/// Latest value of a bigtime quota timer, as stored.
pub const DQ_BIGTIME_EXPIRY_MAX: u32 = 4_074_815_106;
const NANOSECONDS: u64 = 1_000_000_000;

/// A point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds since the Unix epoch.
    pub seconds: i64,
    /// Nanoseconds: below 10^9, save in a damaged inode.
    pub nanoseconds: u32,
}

impl Timestamp {
    /// Decodes the form of old: seconds (signed) and nanoseconds of 32 bits each.
    pub fn from_legacy(raw: Be64) -> Self {
        let [a, b, c, d, e, f, g, h] = raw.to_bytes();
        Timestamp {
            seconds: i64::from(i32::from_be_bytes([a, b, c, d])),
            nanoseconds: u32::from_be_bytes([e, f, g, h]),
        }
    }

    /// Encodes the form of old; `None` when the seconds do not fit 32 bits.
    pub fn to_legacy(self) -> Option<Be64> {
        let [a, b, c, d] = i32::try_from(self.seconds).ok()?.to_be_bytes();
        let [e, f, g, h] = self.nanoseconds.to_be_bytes();
        Some(Be64::from_bytes([a, b, c, d, e, f, g, h]))
    }

    /// Decodes the bigtime form: nanoseconds since the year 1901.
    #[allow(clippy::cast_possible_wrap, clippy::cast_possible_truncation)] // quotient and remainder are below 2^35 and 10^9
    pub fn from_bigtime(raw: Be64) -> Self {
        let raw = raw.get();
        Timestamp {
            seconds: (raw / NANOSECONDS) as i64 - BIGTIME_EPOCH_OFFSET,
            nanoseconds: (raw % NANOSECONDS) as u32,
        }
    }

    /// Encodes the bigtime form; `None` when it is out of range.
    pub fn to_bigtime(self) -> Option<Be64> {
        let seconds = u64::try_from(self.seconds.checked_add(BIGTIME_EPOCH_OFFSET)?).ok()?;
        let whole = seconds.checked_mul(NANOSECONDS)?;
        let nanoseconds = u64::from(self.nanoseconds);
        (nanoseconds < NANOSECONDS).then(|| whole.checked_add(nanoseconds).map(Be64::new))?
    }

    /// Decodes either form.
    pub fn decode(raw: Be64, bigtime: bool) -> Self {
        if bigtime { Self::from_bigtime(raw) } else { Self::from_legacy(raw) }
    }

    /// Encodes either form; `None` when it is out of range.
    pub fn encode(self, bigtime: bool) -> Option<Be64> {
        if bigtime { self.to_bigtime() } else { self.to_legacy() }
    }
}

/// The Unix second at which a quota timer runs out; 0 is no timer. Bigtime timers count in units of four seconds.
pub fn quota_timer_to_unix(raw: u32, bigtime: bool) -> u64 {
    if bigtime { u64::from(raw) << 2 } else { u64::from(raw) }
}

/// A quota timer as stored, rounded up to what it can hold; `None` when it is out of range.
pub fn quota_timer_from_unix(seconds: u64, bigtime: bool) -> Option<u32> {
    let raw = if bigtime { seconds.div_ceil(4) } else { seconds };
    let max = if bigtime { DQ_BIGTIME_EXPIRY_MAX } else { u32::MAX };
    u32::try_from(raw).ok().filter(|raw| *raw <= max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_forms_round_trip(raw: u64) {
            let raw = Be64::new(raw);
            for bigtime in [false, true] {
                prop_assert_eq!(Timestamp::decode(raw, bigtime).encode(bigtime), Some(raw));
            }
        }

        #[test]
        fn any_time_encodes_or_is_refused(seconds: i64, nanoseconds: u32) {
            let time = Timestamp { seconds, nanoseconds };
            for bigtime in [false, true] {
                if let Some(raw) = time.encode(bigtime) {
                    prop_assert_eq!(Timestamp::decode(raw, bigtime), time);
                }
            }
        }

        #[test]
        fn quota_timers_round_up(seconds in 1u64..16_299_260_424) {
            let raw = quota_timer_from_unix(seconds, true).expect("invariant: in range");
            let back = quota_timer_to_unix(raw, true);
            prop_assert!(back >= seconds && back < seconds + 4);
        }
    }

    #[test]
    fn limits_are_those_of_the_format() {
        let last = Timestamp { seconds: BIGTIME_MAX, nanoseconds: 999_999_999 };
        assert!(last.to_bigtime().is_some());
        assert_eq!(Timestamp::from_bigtime(Be64::new(0)).seconds, i64::from(i32::MIN));
        assert_eq!(Timestamp::from_legacy(Be64::new(0xffff_ffff_0000_0005)), Timestamp { seconds: -1, nanoseconds: 5 });
        assert_eq!(Timestamp { seconds: 1 << 31, nanoseconds: 0 }.to_legacy(), None);
        assert_eq!(quota_timer_to_unix(DQ_BIGTIME_EXPIRY_MAX, true), 16_299_260_424);
        assert_eq!(quota_timer_from_unix(1 << 32, false), None);
        assert_eq!(quota_timer_from_unix(16_299_260_425, true), None);
    }
}
