//! A manifest as `tests/oracle/tree_manifest` writes it.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

/// What a manifest says of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub ino: u64,
    pub mode: String,
    pub uid: u64,
    pub gid: u64,
    pub nlink: u64,
    pub size: u64,
    pub mtime: i128,
    pub ctime: i128,
    pub rdev: u64,
    pub content: String,
    /// Names as they are quoted there, and hashes of the values.
    pub xattrs: BTreeMap<String, String>,
}

impl Line {
    /// The target of a symbolic link.
    pub fn target(&self) -> Vec<u8> {
        unquote(&self.content)
    }
}

/// The lines by path.
pub fn lines(text: &str) -> BTreeMap<Vec<u8>, Line> {
    text.lines().map(line).collect()
}

fn line(text: &str) -> (Vec<u8>, Line) {
    let columns: Vec<&str> = text.split('\t').collect();
    let number = |column: usize| columns[column].parse().expect("a number");
    let (uid, gid) = columns[3].split_once(':').expect("an owner");
    let xattrs = columns[12].split(',').filter(|one| *one != "-").map(|one| {
        let (name, hash) = one.rsplit_once('=').expect("an attribute");
        (name.to_owned(), hash.to_owned())
    });
    let line = Line {
        ino: number(1),
        mode: columns[2].to_owned(),
        uid: uid.parse().expect("a number"),
        gid: gid.parse().expect("a number"),
        nlink: number(4),
        size: number(5),
        mtime: columns[6].parse().expect("a number"),
        ctime: columns[7].parse().expect("a number"),
        rdev: number(8),
        content: columns[11].to_owned(),
        xattrs: xattrs.collect(),
    };
    (unquote(columns[0]), line)
}

/// Python's `unicode_escape` of bytes that were decoded as UTF-8, with surrogates for what is none.
pub fn unquote(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        let kind = rest.next().expect("an escape");
        let digits = match kind {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        if digits == 0 {
            bytes.push(match kind {
                'n' => b'\n',
                't' => b'\t',
                'r' => b'\r',
                _ => b'\\',
            });
            continue;
        }
        let digits: String = rest.by_ref().take(digits).collect();
        let value = u32::from_str_radix(&digits, 16).expect("hexadecimal");
        match char::from_u32(value) {
            Some(c) => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
            None => bytes.push((value & 0xff) as u8),
        }
    }
    bytes
}

/// The hash of contents.
pub fn content(bytes: &[u8]) -> String {
    content_of(bytes.len() as u64, &[(0, bytes.to_vec())])
}

/// The hash of contents of `size` bytes, of which the pieces, which start at multiples of 4096, are not holes.
pub fn content_of(size: u64, pieces: &[(u64, Vec<u8>)]) -> String {
    let mut hash = Sha256::new();
    hash.update(size.to_string());
    for (start, bytes) in pieces {
        for (index, piece) in bytes.chunks(4096).enumerate().filter(|(_, piece)| piece.iter().any(|&byte| byte != 0)) {
            hash.update(format!("{}:", start + index as u64 * 4096));
            hash.update(piece);
        }
    }
    hex(&hash.finalize(), 16)
}

/// The hash of the value of an attribute.
pub fn value(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes), 12)
}

fn hex(bytes: &[u8], len: usize) -> String {
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    text[..len].to_owned()
}
