//! Names as text. A name is bytes; shown, it is UTF-8 on one line, and what is shown leads back to the bytes.
//!
//! A backslash is written twice. `\n`, `\t` and `\r` stand for these characters, `\xHH` for any other byte that is a
//! control character or no part of a UTF-8 character.

use std::fmt::Write;

/// `name` as text: a path keeps its slashes.
pub fn escape(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                '\r' => text.push_str("\\r"),
                c if c.is_control() || is_invisible(c) => {
                    c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| hexadecimal(byte, &mut text));
                }
                c => text.push(c),
            }
        }
        chunk.invalid().iter().for_each(|&byte| hexadecimal(byte, &mut text));
    }
    text
}

/// One component of a path as text: a slash in it, which no sound name has, is written `\x2f`.
pub fn escape_component(name: &[u8]) -> String {
    let text = escape(name);
    if text.contains('/') { text.replace('/', "\\x2f") } else { text }
}

/// The bytes that `text` stands for; `None` for a backslash that begins none of the forms.
pub fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(&byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'\\' => b'\\',
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'x' => {
                let mut digit = || u8::try_from(char::from(*rest.next()?).to_digit(16)?).ok();
                digit()? << 4 | digit()?
            }
            _ => return None,
        });
    }
    Some(bytes)
}

/// Marks that change how the text around them is shown, and separators of lines.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn hexadecimal(byte: u8, text: &mut String) {
    write!(text, "\\x{byte:02x}").expect("invariant: a String takes all that is written");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_shown_leads_back_to_the_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let text = escape(&bytes);
            prop_assert_eq!(unescape(text.as_bytes()), Some(bytes.clone()));
            prop_assert!(text.chars().all(|c| !c.is_control()));
            prop_assert_eq!(unescape(escape_component(&bytes).as_bytes()), Some(bytes));
            prop_assert!(!escape_component(text.as_bytes()).contains('/'));
        }

        #[test]
        fn what_is_typed_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = unescape(&bytes);
        }
    }

    #[test]
    fn the_forms() {
        assert_eq!(escape("a\\b\n\u{e4}\u{202e}".as_bytes()), "a\\\\b\\n\u{e4}\\xe2\\x80\\xae");
        assert_eq!(escape(b"\xff\xc3\x7f"), "\\xff\\xc3\\x7f");
        assert_eq!(escape_component(b"a/b"), "a\\x2fb");
        for text in ["\\", "\\x", "\\x1", "\\q", "\\xg0"] {
            assert_eq!(unescape(text.as_bytes()), None, "{text}");
        }
    }
}
