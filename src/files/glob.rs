//! Patterns for names, as in the shell: `*`, `?`, `[a-z]`, `[!a-z]`. Escapes of names are taken, and a backslash before any
//! other character takes away what that means.

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    tokens: Vec<Token>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// Any number of characters.
    Many,
    /// One character.
    One,
    /// This byte.
    Byte(u8),
    /// A character of one of these ranges, or of none of them.
    Class { ranges: Vec<(char, char)>, negated: bool },
}

impl Glob {
    /// The pattern that `text` means; `None` for a bracket that is not closed, or a backslash that ends it.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut tokens = Vec::new();
        let mut rest = text;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            tokens.push(match byte {
                b'*' => Token::Many,
                b'?' => Token::One,
                b'[' => class(&mut rest)?,
                b'\\' => Token::Byte(escaped(&mut rest)?),
                byte => Token::Byte(byte),
            });
        }
        Some(Glob { tokens })
    }

    /// Whether `name` as a whole is one of those that the pattern means.
    pub fn matches(&self, name: &[u8]) -> bool {
        let (mut token, mut at) = (0, 0);
        // where to go on with one character more for the star that came last
        let mut retry: Option<(usize, usize)> = None;
        loop {
            let step = match self.tokens.get(token) {
                Some(Token::Many) => {
                    retry = Some((token + 1, at));
                    token += 1;
                    continue;
                }
                Some(token) => token.step(&name[at..]),
                None if at == name.len() => return true,
                None => None,
            };
            match (step, retry) {
                (Some(len), _) => (token, at) = (token + 1, at + len),
                (None, Some((_, from))) if from == name.len() => return false,
                (None, Some((after, from))) => {
                    let next = from + character(&name[from..]).1;
                    retry = Some((after, next));
                    (token, at) = (after, next);
                }
                (None, None) => return false,
            }
        }
    }
}

impl Token {
    /// How many bytes of `rest` the token takes; `None` when it does not fit.
    fn step(&self, rest: &[u8]) -> Option<usize> {
        let first = *rest.first()?;
        match self {
            Token::Many => Some(0),
            Token::One => Some(character(rest).1),
            Token::Byte(byte) => (*byte == first).then_some(1),
            Token::Class { ranges, negated } => {
                let (c, len) = character(rest);
                let within = c.is_some_and(|c| ranges.iter().any(|&(low, high)| (low..=high).contains(&c)));
                (within != *negated).then_some(len)
            }
        }
    }
}

/// The character that `bytes`, which are not empty, begin with, and its length; a byte that begins none is one by itself.
fn character(bytes: &[u8]) -> (Option<char>, usize) {
    let head = &bytes[..bytes.len().min(4)];
    let valid = head.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
    (valid, valid.map_or(1, char::len_utf8))
}

/// What stands behind a backslash.
fn escaped(rest: &mut &[u8]) -> Option<u8> {
    let (&byte, after) = rest.split_first()?;
    let hexadecimal = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    match byte {
        b'n' | b't' | b'r' => {
            *rest = after;
            Some(if byte == b'n' {
                b'\n'
            } else if byte == b't' {
                b'\t'
            } else {
                b'\r'
            })
        }
        b'x' if after.len() >= 2 && after[..2].iter().all(u8::is_ascii_hexdigit) => {
            *rest = &after[2..];
            hexadecimal(&after[..2])
        }
        byte => {
            *rest = after;
            Some(byte)
        }
    }
}

/// The class that follows a bracket. A closing bracket that comes first is one of its characters.
fn class(rest: &mut &[u8]) -> Option<Token> {
    let negated = matches!(rest.first(), Some(b'!' | b'^'));
    if negated {
        *rest = &rest[1..];
    }
    let mut take = || {
        let (c, len) = if rest.is_empty() { return None } else { character(rest) };
        *rest = &rest[len..];
        c
    };
    let mut characters = Vec::new();
    loop {
        match take()? {
            ']' if !characters.is_empty() => break,
            c => characters.push(c),
        }
    }
    let mut ranges = Vec::new();
    let mut left = &characters[..];
    while let Some((&low, after)) = left.split_first() {
        match after {
            ['-', high, behind @ ..] => {
                ranges.push((low, *high));
                left = behind;
            }
            _ => {
                ranges.push((low, low));
                left = after;
            }
        }
    }
    Some(Token::Class { ranges, negated })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Glob::parse(pattern.as_bytes()).expect("a pattern").matches(name.as_bytes())
    }

    #[test]
    fn patterns() {
        for (pattern, name) in [
            ("", ""),
            ("*", ""),
            ("*", "abc"),
            ("a*c", "abbc"),
            ("*.txt", "a.b.txt"),
            ("?", "\u{e4}"),
            ("[a-c]x", "bx"),
            ("[!a-c]x", "dx"),
            ("[]]", "]"),
            ("[a-]", "-"),
            ("\\*", "*"),
            ("\\x61", "a"),
            ("a\\nb", "a\nb"),
            ("*a*b*c*", "xxaybzc"),
            ("[\u{e4}-\u{f6}]", "\u{eb}"),
            ("\\\\", "\\"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("", "a"), ("a", ""), ("a*c", "ab"), ("?", ""), ("?", "ab"), ("[a-c]", "d"), ("[!a]", "a"), ("*a", "b")]
        {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
        assert!(Glob::parse(b"[a").is_none() && Glob::parse(b"a\\").is_none());
        assert!(Glob::parse(b"?").is_some_and(|glob| glob.matches(b"\xff")));
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern = "a*".repeat(100);
        assert!(!matches(&pattern, &format!("{}b", "a".repeat(99))));
        assert!(!matches(&format!("{}c", "*a".repeat(60)), &"a".repeat(255)));
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(
            pattern in proptest::collection::vec(any::<u8>(), 0..30),
            name in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            if let Some(glob) = Glob::parse(&pattern) {
                glob.matches(&name);
            }
        }

        #[test]
        fn an_escaped_name_matches_itself(name in proptest::collection::vec(any::<u8>(), 0..60)) {
            let text = crate::report::name::escape(&name);
            let quoted: String = text.chars().flat_map(|c| match c {
                '*' | '?' | '[' => vec!['\\', c],
                c => vec![c],
            }).collect();
            prop_assert!(Glob::parse(quoted.as_bytes()).is_some_and(|glob| glob.matches(&name)));
        }
    }
}
