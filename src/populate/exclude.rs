//! Which files are left out.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::error::{Error, Result};

/// Patterns of paths that are left out, with all that is below them.
///
/// A pattern without a slash is held against the name of a file in whatever folder; one with a slash against the whole path
/// from the top. With a slash at its end it is about folders alone. `*` and `?` stand for no slash, `**` does.
#[derive(Clone, Debug, Default)]
pub struct Exclude {
    /// For files of all kinds.
    any: GlobSet,
    /// For folders.
    folders: GlobSet,
}

impl Exclude {
    /// From patterns.
    ///
    /// # Errors
    /// `Usage` for a pattern that is none.
    pub fn new(patterns: &[String]) -> Result<Self> {
        let mut any = GlobSetBuilder::new();
        let mut folders = GlobSetBuilder::new();
        for pattern in patterns {
            match pattern.strip_suffix('/') {
                Some(folder) => folders.add(anchored(folder)?),
                None => any.add(anchored(pattern)?),
            };
        }
        let build = |builder: GlobSetBuilder| {
            builder.build().map_err(|error| Error::Usage(format!("the patterns cannot be used together: {error}")))
        };
        Ok(Exclude { any: build(any)?, folders: build(folders)? })
    }

    /// Whether nothing is left out.
    pub(super) fn is_empty(&self) -> bool {
        self.any.is_empty() && self.folders.is_empty()
    }

    /// Whether the file at `path`, without a slash before it, is left out. Those above it are asked about on their own.
    pub(super) fn matches(&self, path: &[u8], is_folder: bool) -> bool {
        let path = Path::new(OsStr::from_bytes(path));
        !self.is_empty() && (self.any.is_match(path) || is_folder && self.folders.is_match(path))
    }

    /// Whether the file at `path`, or a folder above it, is left out.
    pub(super) fn matches_any_of(&self, path: &[u8], is_folder: bool) -> bool {
        let mut above = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at]);
        !self.is_empty() && (above.any(|folder| self.matches(folder, true)) || self.matches(path, is_folder))
    }
}

/// A pattern as one of whole paths.
pub(super) fn anchored(pattern: &str) -> Result<Glob> {
    let whole = match pattern.strip_prefix('/') {
        Some(path) => path.to_owned(),
        None if pattern.contains('/') => pattern.to_owned(),
        None => format!("**/{pattern}"),
    };
    let glob = GlobBuilder::new(&whole).literal_separator(true).backslash_escape(true).build();
    let glob = glob.map_err(|error| Error::Usage(format!("{pattern}: is no pattern: {}", error.kind())));
    if pattern.is_empty() { Err(Error::Usage("an empty pattern".into())) } else { glob }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exclude(patterns: &[&str]) -> Exclude {
        Exclude::new(&patterns.iter().map(|&pattern| pattern.to_owned()).collect::<Vec<_>>()).expect("patterns")
    }

    #[test]
    fn names_and_paths() {
        let exclude = exclude(&["*.o", "/var/cache/**", "etc/?.conf", "build/", "[ab]c"]);
        for path in ["a.o", "deep/down/a.o", "var/cache/x", "var/cache/x/y", "etc/a.conf", "x/ac"] {
            assert!(exclude.matches(path.as_bytes(), false), "{path}");
        }
        for path in
            ["a.oo", "var/cache", "usr/var/cache/x", "etc/ab.conf", "usr/etc/a.conf", "etc/x/y.conf", "build", "cc"]
        {
            assert!(!exclude.matches(path.as_bytes(), false), "{path}");
        }
        assert!(exclude.matches(b"x/build", true));
        assert!(exclude.matches_any_of(b"x/build/y/z", false) && !exclude.matches_any_of(b"x/build", false));
    }

    #[test]
    fn names_are_bytes() {
        let exclude = exclude(&["a*z", "?"]);
        for path in [&b"a\n\xff\xfez"[..], b"x/a\xffz", b"\xff", b"\n"] {
            assert!(exclude.matches(path, false), "{path:?}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for pattern in ["[", "{a", "", "/"] {
            let error = Exclude::new(&[pattern.to_owned()]);
            assert!(matches!(error, Err(Error::Usage(_))), "{pattern}");
        }
    }
}
