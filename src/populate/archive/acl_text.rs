//! Access control lists as text (POSIX.1e draft 17, 23.3), as star, GNU tar and libarchive write them into records.
//!
//! Users and groups may be named there. Which numbers the names have is told by the fourth field that star and libarchive add,
//! by the owners of the archive's members, by `/etc/passwd` and `/etc/group` in the tree, and at last by those of this machine.

use std::collections::HashMap;

use super::number::decimal;
use crate::forms::{AclEntry, AclSubject, PosixAcl};

/// Numbers of users or groups by their names.
pub(super) type Numbers = HashMap<Vec<u8>, u32>;

/// Numbers that names have.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub users: Numbers,
    pub groups: Numbers,
}

/// The names in `/etc/passwd` or `/etc/group`: the number is the third field of both.
pub(super) fn accounts(text: &[u8]) -> Numbers {
    let line = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let number = decimal(fields.nth(1)?).and_then(|number| u32::try_from(number).ok());
        Some((name.to_vec(), number?))
    };
    // the first line of a name counts
    text.split(|byte| *byte == b'\n').rev().filter_map(line).collect()
}

/// Reads a list; what is wrong with it.
pub(super) fn parse(text: &[u8], names: &Names) -> Result<PosixAcl, String> {
    let mut entries = Vec::new();
    for line in text.split(|byte| matches!(byte, b',' | b'\n')) {
        let line = line.split(|byte| *byte == b'#').next().unwrap_or_default().trim_ascii();
        if !line.is_empty() {
            let shown = || crate::report::name::escape(line);
            entries.push(entry(line, names).map_err(|problem| format!("{}: {problem}", shown()))?);
        }
    }
    entries.sort_by_key(|entry| match entry.subject {
        AclSubject::Owner => (0, 0),
        AclSubject::User(id) => (1, id),
        AclSubject::OwningGroup => (2, 0),
        AclSubject::Group(id) => (3, id),
        AclSubject::Mask => (4, 0),
        AclSubject::Other => (5, 0),
    });
    Ok(PosixAcl { entries })
}

fn entry(line: &[u8], names: &Names) -> Result<AclEntry, &'static str> {
    let mut fields: Vec<&[u8]> = line.split(|byte| *byte == b':').map(<[u8]>::trim_ascii).collect();
    if matches!(fields.first(), Some(&(b"default" | b"d"))) {
        fields.remove(0);
    }
    // Solaris leaves the empty field of these out
    if fields.len() == 2 && matches!(fields[0], b"mask" | b"m" | b"other" | b"o") {
        fields.insert(1, b"");
    }
    let (&[tag, who, permissions], number) = fields.split_first_chunk().ok_or("is no entry of a list")?;
    let permissions = permissions.iter().try_fold(0, |bits, letter| match letter {
        b'r' => Some(bits | 4),
        b'w' => Some(bits | 2),
        b'x' => Some(bits | 1),
        b'-' => Some(bits),
        _ => None,
    });
    let permissions = permissions.ok_or("has no permissions of the letters r, w and x")?;
    let id = |numbers: &Numbers| {
        let told = number.first().and_then(|number| decimal(number)).or_else(|| decimal(who));
        let told = told.map(|number| u32::try_from(number).ok().filter(|number| *number != u32::MAX));
        let told = told.unwrap_or_else(|| if who == b"root" { Some(0) } else { numbers.get(who).copied() });
        told.ok_or(
            "no member of the archive tells the number of this user or group; tar --numeric-owner writes numbers",
        )
    };
    let subject = match (tag, who.is_empty()) {
        (b"user" | b"u", true) => AclSubject::Owner,
        (b"user" | b"u", false) => AclSubject::User(id(&names.users)?),
        (b"group" | b"g", true) => AclSubject::OwningGroup,
        (b"group" | b"g", false) => AclSubject::Group(id(&names.groups)?),
        (b"mask" | b"m", true) => AclSubject::Mask,
        (b"other" | b"o", true) => AclSubject::Other,
        _ => return Err("is no entry of a list"),
    };
    Ok(AclEntry { subject, permissions })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let mut names = Names::default();
        names.users.insert(b"lp".to_vec(), 7);
        names.groups.insert(b"games".to_vec(), 60);
        names
    }

    #[test]
    fn the_forms_of_many_programs() {
        let expected = "user::rwx,user:7:r-x,user:1000:rw-,group::r--,group:60:---,mask::rwx,other::--x";
        for text in [
            expected,
            "user::rwx,group::r--,other::--x,user:lp:r-x,user:1000:rw-,group:games:---,mask::rwx",
            "u::rwx\nu:strange:r-x:7\nu:1000:rw-\t#effective:r--\ng::r--\ng:games:\nm:rwx\no:--x\n\n",
            "default:user::rwx,d:u:lp:r-x,user:x:rw-:1000,group::r--,group:60:-,mask::rwx,other:x",
        ] {
            assert_eq!(parse(text.as_bytes(), &names()).expect(text).to_text(), expected, "{text}");
        }
        assert_eq!(parse(b"user:root:r", &names()).expect("a list").to_text(), "user:0:r--");
    }

    #[test]
    fn accounts_of_a_machine() {
        let numbers =
            accounts(b"root:x:0:0::/:/bin/sh\nlp:x:7:7:lp\n\n+::::\nbad:x:y:\n:x:5:\nlp:x:8:\nwide:x:4294967296:\n");
        let mut found: Vec<_> = numbers.into_iter().collect();
        found.sort_unstable();
        assert_eq!(found, [(b"lp".to_vec(), 7), (b"root".to_vec(), 0)]);
    }

    #[test]
    fn what_is_no_list() {
        for text in
            ["user", "user::rwz", "nobody::r", "mask:lp:r", "user:stranger:r", "user:4294967295:r", "user:a:r:x"]
        {
            assert!(parse(text.as_bytes(), &names()).is_err(), "{text}");
        }
    }
}
