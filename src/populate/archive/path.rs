//! Paths of members. As with GNU tar, a slash before a path is taken off, and `..` is refused.

/// The names on the way to a file; none for the root.
pub(super) fn names(path: &[u8]) -> Result<Vec<&[u8]>, &'static str> {
    if path.contains(&0) {
        return Err("there is a zero byte in its path");
    }
    let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".").collect();
    if names.contains(&&b".."[..]) {
        return Err("its path goes back up by \"..\", which could lead out of the tree");
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_tree() {
        let none: [&[u8]; 0] = [];
        for path in [&b""[..], b".", b"./", b"/", b"//./"] {
            assert_eq!(names(path).expect("the root"), none, "{path:?}");
        }
        for path in [&b"a/b"[..], b"/a/b", b"./a//b/", b"a/./b"] {
            assert_eq!(names(path).expect("a path"), [&b"a"[..], b"b"], "{path:?}");
        }
        assert_eq!(names(b"..a/b..").expect("a path"), [&b"..a"[..], b"b.."]);
        for path in [&b".."[..], b"a/../b", b"../a", b"a/..", b"a\0b"] {
            assert!(names(path).is_err(), "{path:?}");
        }
    }
}
