//! Extended attributes of records: the keys of star, GNU tar and Go (`SCHILY.xattr.`), in which GNU tar writes `%3D` for `=` and
//! `%25` for `%`; and those of libarchive, with names in URL encoding and values in base 64.

/// An attribute that a record holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Recorded<'r> {
    /// An attribute by Linux's name.
    Attribute(Vec<u8>, Vec<u8>),
    /// A list as text: whether it is the default one.
    List(bool, &'r [u8]),
    /// A list of NFSv4, for which XFS has no place.
    Foreign,
}

/// The attribute in a record, if it holds one; what is wrong with it.
pub(super) fn recorded<'r>(key: &[u8], value: &'r [u8]) -> Result<Option<Recorded<'r>>, &'static str> {
    if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
        return Ok(Some(Recorded::Attribute(keyword(name), value.to_vec())));
    }
    if let Some(name) = key.strip_prefix(b"LIBARCHIVE.xattr.") {
        let name = url(name).ok_or("the name of an attribute is no URL encoding")?;
        let value = base64(value).ok_or("the value of an attribute is no base 64")?;
        return Ok(Some(Recorded::Attribute(name, value)));
    }
    Ok(match key {
        b"SCHILY.acl.access" => Some(Recorded::List(false, value)),
        b"SCHILY.acl.default" => Some(Recorded::List(true, value)),
        b"SCHILY.acl.ace" => Some(Recorded::Foreign),
        b"RHT.security.selinux" => Some(Recorded::Attribute(b"security.selinux".to_vec(), value.to_vec())),
        _ => None,
    })
}

fn keyword(text: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, behind)) = rest.split_first() {
        let (byte, behind) = match rest {
            [b'%', b'3', b'D', behind @ ..] => (b'=', behind),
            [b'%', b'2', b'5', behind @ ..] => (b'%', behind),
            _ => (first, behind),
        };
        name.push(byte);
        rest = behind;
    }
    name
}

fn url(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    let digit = |rest: &mut std::slice::Iter<'_, u8>| u8::try_from(char::from(*rest.next()?).to_digit(16)?).ok();
    while let Some(&byte) = rest.next() {
        bytes.push(if byte == b'%' { digit(&mut rest)? << 4 | digit(&mut rest)? } else { byte });
    }
    Some(bytes)
}

fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    let (mut bits, mut held) = (0_u32, 0);
    for digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xfff;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 0xff).ok()?);
        }
    }
    (digits.len() % 4 != 1).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_many_programs() {
        let attribute = |name: &str, value: &[u8]| Some(Recorded::Attribute(name.as_bytes().to_vec(), value.to_vec()));
        assert_eq!(recorded(b"SCHILY.xattr.user.a%3Db%253D%x%", b"\0v"), Ok(attribute("user.a=b%3D%x%", b"\0v")));
        assert_eq!(recorded(b"LIBARCHIVE.xattr.user.%3D%25x", b"AHY="), Ok(attribute("user.=%x", b"\0v")));
        assert_eq!(recorded(b"RHT.security.selinux", b"x"), Ok(attribute("security.selinux", b"x")));
        assert_eq!(recorded(b"SCHILY.acl.default", b"u"), Ok(Some(Recorded::List(true, b"u"))));
        assert_eq!(recorded(b"mtime", b"1"), Ok(None));
        assert!(recorded(b"LIBARCHIVE.xattr.user.%3", b"").is_err());
        assert!(recorded(b"LIBARCHIVE.xattr.user.a", b"A").is_err());
    }

    #[test]
    fn base_64_with_and_without_padding() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zg", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("Zm9vYmFy", b"foobar"),
            ("/+8A", b"\xff\xef\0"),
        ] {
            assert_eq!(base64(text.as_bytes()).as_deref(), Some(bytes), "{text}");
        }
        for text in ["Z", "Zm9v!", "Z=g=", "Zm9vY"] {
            assert_eq!(base64(text.as_bytes()), None, "{text}");
        }
    }
}
