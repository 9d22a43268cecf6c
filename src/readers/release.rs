//! Releases of Linux and GRUB: the ones the tables cover, and how users write them.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// A mainline release of Linux, without its stable patch level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Linux {
    /// First number.
    pub major: u16,
    /// Second number.
    pub minor: u16,
}

/// A release of GRUB 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grub {
    /// What stands after `2.`, as a number: 2 is GRUB 2.02.
    pub minor: u16,
}

/// The oldest kernel of the table; what it reads is not traced further back.
pub const OLDEST_LINUX: Linux = Linux::new(4, 19);
/// The newest kernel of the table.
pub const NEWEST_LINUX: Linux = Linux::new(7, 3);
/// The last minor number of each major one, from the oldest to the newest kernel of the table.
const LAST_MINORS: [(u16, u16); 4] = [(4, 20), (5, 19), (6, 19), (7, 3)];

/// Every release of GRUB in the table.
pub const GRUB_RELEASES: [Grub; 5] = [Grub::new(2), Grub::new(4), Grub::new(6), Grub::new(12), Grub::new(14)];

impl Linux {
    /// The release `major.minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        Linux { major, minor }
    }

    /// Every release of the table, oldest first.
    pub fn all() -> impl Iterator<Item = Linux> {
        LAST_MINORS.iter().flat_map(|&(major, last)| {
            let first = if major == OLDEST_LINUX.major { OLDEST_LINUX.minor } else { 0 };
            (first..=last).map(move |minor| Linux { major, minor })
        })
    }

    /// The release before this one in the table.
    pub fn before(self) -> Option<Linux> {
        Linux::all().take_while(|release| *release < self).last()
    }
}

impl Grub {
    /// The release 2.`minor`.
    pub const fn new(minor: u16) -> Self {
        Grub { minor }
    }
}

impl fmt::Display for Linux {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl fmt::Display for Grub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "2.{:02}", self.minor)
    }
}

/// Splits `7.3.4-1-amd64` into 7 and 3; what follows must be set off by `.`, `-`, `+`, `~` or `_`.
fn two_numbers(text: &str) -> Option<(u16, u16)> {
    let (major, rest) = text.split_once('.')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (minor, tail) = rest.split_at(digits);
    let plain = |number: &str| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    if !plain(major) || !plain(minor) || !tail.is_empty() && !tail.starts_with(['.', '-', '+', '~', '_']) {
        return None;
    }
    Some((major.parse().ok()?, minor.parse().ok()?))
}

impl FromStr for Linux {
    type Err = Error;

    /// Reads `6.1`, `v6.1` or what `uname -r` prints; the patch level does not count, because stable releases add no features.
    ///
    /// # Errors
    /// [`Error::Usage`] when it is no kernel release, or none that the table covers.
    fn from_str(text: &str) -> Result<Self, Error> {
        let (major, minor) = two_numbers(text.strip_prefix('v').unwrap_or(text))
            .ok_or_else(|| Error::Usage(format!("'{text}' is not a kernel release such as 6.1")))?;
        let release = Linux { major, minor };
        if Linux::all().any(|known| known == release) {
            return Ok(release);
        }
        let why = if release < OLDEST_LINUX || release > NEWEST_LINUX {
            "is outside the table of kernels"
        } else {
            "does not exist"
        };
        Err(Error::Usage(format!("Linux {release} {why}, which covers {OLDEST_LINUX} to {NEWEST_LINUX}")))
    }
}

impl FromStr for Grub {
    type Err = Error;

    /// Reads `2.06`, or a distribution's version of it such as `2.06-13+deb12u1`.
    ///
    /// # Errors
    /// [`Error::Usage`] when it is no release of GRUB 2, or none that the table covers.
    fn from_str(text: &str) -> Result<Self, Error> {
        let known = || GRUB_RELEASES.map(|release| release.to_string()).join(", ");
        match two_numbers(text) {
            Some((2, minor)) if GRUB_RELEASES.contains(&Grub { minor }) => Ok(Grub { minor }),
            Some(_) => {
                Err(Error::Usage(format!("GRUB {text} is outside the table of GRUBs, which covers {}", known())))
            }
            None => Err(Error::Usage(format!("'{text}' is not a release of GRUB; known are {}", known()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_read_as_users_write_them() {
        assert_eq!("5.4".parse::<Linux>().unwrap(), Linux::new(5, 4));
        assert_eq!("v6.12".parse::<Linux>().unwrap(), Linux::new(6, 12));
        assert_eq!("6.1.0-13-amd64".parse::<Linux>().unwrap(), Linux::new(6, 1));
        for bad in
            ["", "6", "6.", "6.x", ".1", "6.1rc2", "six.1", "4.18", "7.4", "5.20", "6.20", "99999999.1", "-6.1", "+6.1"]
        {
            assert!(bad.parse::<Linux>().is_err(), "{bad}");
        }
    }

    #[test]
    fn grubs_are_read_as_users_write_them() {
        assert_eq!("2.06-13+deb12u1".parse::<Grub>().unwrap(), Grub::new(6));
        assert_eq!("2.12~rc1".parse::<Grub>().unwrap(), Grub::new(12));
        for bad in ["2", "2.11", "2.00", "3.02", "0.97", "2.02beta3"] {
            assert!(bad.parse::<Grub>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_list_of_kernels_has_no_holes() {
        let all: Vec<_> = Linux::all().collect();
        assert_eq!(all.first(), Some(&OLDEST_LINUX));
        assert_eq!(all.last(), Some(&NEWEST_LINUX));
        assert_eq!(all.len(), 2 + 20 + 20 + 4);
        assert!(all.is_sorted());
        assert_eq!(Linux::new(6, 0).before(), Some(Linux::new(5, 19)));
        assert_eq!(OLDEST_LINUX.before(), None);
    }
}
