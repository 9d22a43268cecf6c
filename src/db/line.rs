//! Splitting a line into words.

/// The words of a line: separated by blanks and tabs, but not by those in double quotes or behind a backslash. Quotes and
/// backslashes stay in the words, as in xfs_db.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut quoted, mut escaped) = (false, false);
    for c in line.chars() {
        let separates = matches!(c, ' ' | '\t') && !quoted && !escaped;
        if separates {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            continue;
        }
        word.push(c);
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == '"' {
            quoted = !quoted;
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_separate_outside_of_quotes() {
        for (line, expected) in [
            ("", &[][..]),
            ("  \t ", &[]),
            ("sb 0", &["sb", "0"]),
            ("\tp  core.mode  ", &["p", "core.mode"]),
            ("write fname \"a b\"", &["write", "fname", "\"a b\""]),
            ("ls a\\ b c", &["ls", "a\\ b", "c"]),
            ("echo \"open end", &["echo", "\"open end"]),
            ("echo \\\" x", &["echo", "\\\"", "x"]),
        ] {
            assert_eq!(words(line), expected, "{line}");
        }
    }
}
