//! Options of a command: letters behind a minus, taken apart as the C library's `getopt` does.

use crate::error::{Error, Result};

/// The options and the other words of a command.
#[derive(Debug, Default)]
pub(in crate::db) struct Options {
    /// Each option, in order, with its value.
    given: Vec<(char, String)>,
    /// The words that are no options.
    pub(in crate::db) operands: Vec<String>,
}

impl Options {
    /// Takes `words` apart. `letters` are the options that there are, each followed by a colon if it takes a value.
    /// Options may stand behind other words; behind `--` there are none.
    ///
    /// # Errors
    /// `Usage` for an option that there is not, or one without its value.
    pub(in crate::db) fn parse(words: &[String], letters: &str) -> Result<Self> {
        let mut options = Options::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.strip_prefix('-') {
                Some("-") => options.operands.extend(words.by_ref().cloned()),
                Some(cluster) if !cluster.is_empty() => options.cluster(cluster, letters, &mut words)?,
                _ => options.operands.push(word.clone()),
            }
        }
        Ok(options)
    }

    /// Letters behind one minus: the first that takes a value has the rest as its value, or else the next word.
    fn cluster(&mut self, cluster: &str, letters: &str, words: &mut std::slice::Iter<'_, String>) -> Result<()> {
        let mut rest = cluster.chars();
        while let Some(letter) = rest.next() {
            let known = letters.split_once(letter).filter(|_| letter != ':');
            let (_, behind) = known.ok_or_else(|| Error::Usage(format!("there is no option -{letter} here")))?;
            let mut value = String::new();
            if behind.starts_with(':') {
                value = rest.as_str().to_owned();
                rest = "".chars();
                if value.is_empty() {
                    let next = words.next();
                    value.clone_from(next.ok_or_else(|| Error::Usage(format!("-{letter} needs a value")))?);
                }
            }
            self.given.push((letter, value));
        }
        Ok(())
    }

    /// Whether the option is given.
    pub(in crate::db) fn has(&self, letter: char) -> bool {
        self.given.iter().any(|(given, _)| *given == letter)
    }

    /// The last value of the option.
    pub(in crate::db) fn value(&self, letter: char) -> Option<&str> {
        self.given.iter().rev().find(|(given, _)| *given == letter).map(|(_, value)| value.as_str())
    }

    /// The last of these options that is given.
    pub(in crate::db) fn last_of(&self, letters: &str) -> Option<char> {
        self.given.iter().rev().map(|(letter, _)| *letter).find(|letter| letters.contains(*letter))
    }

    /// All options in order, with their values.
    pub(in crate::db) fn all(&self) -> impl Iterator<Item = (char, &str)> {
        self.given.iter().map(|(letter, value)| (*letter, value.as_str()))
    }

    /// Refuses words that are no options.
    ///
    /// # Errors
    /// `Usage` when there are any.
    pub(in crate::db) fn no_operands(&self) -> Result<()> {
        match self.operands.first() {
            None => Ok(()),
            Some(word) => Err(Error::Usage(format!("{word} is one argument too many"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words, "ab:cv")
    }

    fn parsed(line: &str) -> (String, String) {
        let options = parse(line).expect("correct usage");
        let given: Vec<_> = options.all().map(|(letter, value)| format!("{letter}{value}")).collect();
        (given.join(" "), options.operands.join(" "))
    }

    #[test]
    fn letters_values_and_words() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(parsed("-a -c x y"), pair("a c", "x y"));
        assert_eq!(parsed("x -acb7 y"), pair("a c b7", "x y"));
        assert_eq!(parsed("-b -a"), pair("b-a", ""));
        assert_eq!(parsed("-a -- -c"), pair("a", "-c"));
        assert_eq!(parsed("- -a"), pair("a", "-"));
        assert!(parse("-x").is_err() && parse("-b").is_err() && parse("-a:").is_err());
    }

    #[test]
    fn the_last_one_counts() {
        let options = parse("-b 1 -a -b 2 -c").expect("correct usage");
        assert_eq!(options.value('b'), Some("2"));
        assert_eq!(options.last_of("ab"), Some('b'));
        assert!(options.has('c') && !options.has('v'));
        assert!(options.no_operands().is_ok());
    }
}
