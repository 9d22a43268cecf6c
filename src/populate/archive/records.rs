//! Extended header records: `LENGTH KEY=VALUE`, each with a newline at its end.

use super::number::decimal;

/// Records of a member, and of all members.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    list: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Records {
    /// Adds records; what is wrong with them.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        let mut rest = bytes;
        while rest.first().is_some_and(|byte| *byte != 0) {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let len = decimal(&rest[..digits]).and_then(|len| usize::try_from(len).ok());
            let (record, behind) =
                len.and_then(|len| rest.split_at_checked(len)).ok_or("a record has no sound length")?;
            let record = record.get(digits..).and_then(|record| record.strip_prefix(b" "));
            let record = record.and_then(|record| record.strip_suffix(b"\n")).ok_or("a record has no sound length")?;
            let equals = record.iter().position(|byte| *byte == b'=').ok_or("a record has no value")?;
            self.list.push((record[..equals].to_vec(), record[equals + 1..].to_vec()));
            rest = behind;
        }
        Ok(())
    }

    /// The records that hold for a member: those of all members, then its own.
    pub fn over(&self, global: &Records) -> Records {
        Records { list: global.list.iter().chain(&self.list).cloned().collect() }
    }

    /// Keeps the last record of each key.
    pub fn keep_last(&mut self) {
        let mut seen = std::collections::HashSet::new();
        let mut list: Vec<_> = std::mem::take(&mut self.list).into_iter().rev().collect();
        list.retain(|(key, _)| seen.insert(key.clone()));
        self.list = list.into_iter().rev().collect();
    }

    /// The last value of a key; an empty one says that the header holds.
    pub fn last(&self, key: &str) -> Option<&[u8]> {
        let last = self.list.iter().rev().find(|(other, _)| other == key.as_bytes());
        last.map(|(_, value)| &value[..]).filter(|value| !value.is_empty())
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.list.iter().map(|(key, value)| (&key[..], &value[..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_record_counts() {
        let mut global = Records::default();
        global.read(b"12 path=abc\n9 uid=17\n").expect("records");
        let mut own = Records::default();
        own.read(b"11 path=x\n\n8 gid=1\n7 uid=\n").expect("records");
        let records = own.over(&global);
        assert_eq!((records.last("path"), records.last("gid")), (Some(&b"x\n"[..]), Some(&b"1"[..])));
        assert_eq!((records.last("uid"), records.last("mtime")), (None, None));
        global.read(b"9 uid=18\n").expect("records");
        global.keep_last();
        assert_eq!(global.iter().collect::<Vec<_>>(), [(&b"path"[..], &b"abc"[..]), (b"uid", b"18")]);
    }

    #[test]
    fn padding_ends_them() {
        let mut records = Records::default();
        records.read(b"8 gid=1\n\0\0\0").expect("records");
        assert_eq!(records.iter().count(), 1);
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for bytes in [
            &b"x"[..],
            b"5",
            b"99 path=x\n",
            b"0 path=x\n",
            b"8 path=x\n",
            b"10 path=x.",
            b"6 abc\n",
            b"3 =",
            b"2 \n",
            b"1\n",
        ] {
            assert!(Records::default().read(bytes).is_err(), "{bytes:?}");
        }
    }
}
