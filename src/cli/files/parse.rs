//! Conditions of `find` on the command line.

use std::cmp::Ordering;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use anyhow::{Context as _, bail};
use clap::ArgMatches;

use crate::files::{Comparison, Filter, Glob, time};
use crate::forms::FileType;
use crate::ondisk::Timestamp;

/// All conditions.
pub(super) fn filter(arguments: &ArgMatches) -> anyhow::Result<Filter> {
    let mut filter = Filter::default();
    for text in arguments.get_many::<OsString>("name").into_iter().flatten() {
        let glob = Glob::parse(text.as_bytes());
        filter.names.push(glob.with_context(|| format!("{}: is no pattern", text.to_string_lossy()))?);
    }
    for letters in arguments.get_many::<String>("type").into_iter().flatten() {
        for letter in letters.split(',') {
            filter.kinds.push(kind(letter)?);
        }
    }
    for text in arguments.get_many::<String>("size").into_iter().flatten() {
        filter.sizes.push(size(text).with_context(|| format!("{text}: is no size"))?);
    }
    if let Some(text) = arguments.get_one::<String>("owner") {
        (filter.uid, filter.gid) = owner(text).with_context(|| format!("{text}: is no owner"))?;
    }
    let point = |name: &str| -> anyhow::Result<Option<Timestamp>> {
        let Some(text) = arguments.get_one::<String>(name) else { return Ok(None) };
        time::parse(text).map(Some).with_context(|| format!("{text}: is no time"))
    };
    (filter.newer, filter.older) = (point("newer")?, point("older")?);
    Ok(filter)
}

fn kind(letter: &str) -> anyhow::Result<FileType> {
    Ok(match letter {
        "f" => FileType::Regular,
        "d" => FileType::Directory,
        "l" => FileType::Symlink,
        "b" => FileType::BlockDevice,
        "c" => FileType::CharDevice,
        "p" => FileType::Fifo,
        "s" => FileType::Socket,
        _ => bail!("{letter}: is no type; allowed: f, d, l, b, c, p, s"),
    })
}

/// `N`, `+N` or `-N`, in bytes, with a suffix of one letter.
fn size(text: &str) -> Option<Comparison> {
    let (ordering, digits) = match text.as_bytes().first()? {
        b'+' => (Ordering::Greater, &text[1..]),
        b'-' => (Ordering::Less, &text[1..]),
        _ => (Ordering::Equal, text),
    };
    let number = crate::cli::source::parse_bytes(digits).ok()?;
    Some(Comparison { ordering, number })
}

/// `UID`, `UID:GID` or `:GID`.
pub(super) fn owner(text: &str) -> Option<(Option<u32>, Option<u32>)> {
    let number = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
    let (uid, gid) = text.split_once(':').unwrap_or((text, ""));
    let both = (number(uid)?, number(gid)?);
    (both != (None, None)).then_some(both)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_owners() {
        assert!(size("+1m").is_some_and(|size| size.holds((1 << 20) + 1) && !size.holds(1 << 20)));
        assert!(size("-1").is_some_and(|size| size.holds(0) && !size.holds(1)));
        assert!(size("5").is_some_and(|size| size.holds(5) && !size.holds(6)));
        assert_eq!((size(""), size("+"), size("1x")), (None, None, None));
        assert_eq!(owner("1000"), Some((Some(1000), None)));
        assert_eq!(owner("1000:100"), Some((Some(1000), Some(100))));
        assert_eq!(owner(":100"), Some((None, Some(100))));
        assert_eq!((owner(""), owner(":"), owner("x"), owner("1:x")), (None, None, None, None));
    }
}
