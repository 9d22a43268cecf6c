//! Words of a prototype file. Blanks, tabs and newlines divide them; a word that begins with a colon begins a comment, which
//! ends with the line.

/// The words that are left.
pub(super) struct Words<'t> {
    text: &'t [u8],
    /// The line of the last word, from 1 on.
    line: u64,
}

impl<'t> Words<'t> {
    /// The words of a file.
    pub fn new(text: &'t [u8]) -> Self {
        Words { text, line: 1 }
    }

    /// The line of the last word.
    pub fn line(&self) -> u64 {
        self.line
    }

    fn skip(&mut self, count: usize) -> &'t [u8] {
        let (skipped, rest) = self.text.split_at(count.min(self.text.len()));
        self.text = rest;
        self.line += skipped.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        skipped
    }

    /// The next word.
    pub fn next(&mut self) -> Option<&'t [u8]> {
        loop {
            let blanks = self.text.iter().take_while(|byte| is_blank(**byte)).count();
            self.skip(blanks);
            if self.text.first()? != &b':' {
                let len = self.text.iter().take_while(|byte| !is_blank(**byte)).count();
                return Some(self.skip(len));
            }
            let comment = self.text.iter().take_while(|byte| **byte != b'\n').count();
            self.skip(comment);
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_comments_and_lines() {
        let mut words = Words::new(b"boot\n\t1 2\n: a comment : $\n  :\n d--755 x:y\r :end");
        let mut found = Vec::new();
        while let Some(word) = words.next() {
            found.push((word, words.line()));
        }
        assert_eq!(found, [(&b"boot"[..], 1), (b"1", 2), (b"2", 2), (b"d--755", 5), (b"x:y\r", 5)]);
    }
}
