//! Journals of kernels, and what is known of them.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A journal of `testdata/crash`.
pub struct Journal {
    pub name: &'static str,
    /// Options that it needs.
    pub arguments: &'static [&'static str],
    pub tail: u64,
    pub head: u64,
    pub checkpoints: usize,
    /// Types and counts of the items that are to be replayed.
    pub items: &'static str,
    /// Types and counts of the intents that are pending.
    pub pending: &'static str,
}

/// Counts are those of `xfs_logprint -t` 7.2, but of s390x-61.1: it refuses journals of big-endian writers, after it has said
/// head and tail. That one is here for the parser to stay as it is; the kernel's own replay of it agrees.
pub const JOURNALS: &[Journal] = &[
    Journal {
        name: "i386-61.1.img",
        arguments: &[],
        tail: 2,
        head: 1782,
        checkpoints: 16,
        items: "INODE 1784 BUF 497 ICREATE 9 RUI 2 RUD 2",
        pending: "",
    },
    Journal {
        name: "k61-rr.1.img",
        arguments: &[],
        tail: 2,
        head: 10000,
        checkpoints: 157,
        items: "INODE 6948 BUF 4008 ICREATE 5 RUI 24 RUD 24 CUI 22 EFI 7 EFD 7 CUD 22 BUI 2 BUD 2",
        pending: "",
    },
    Journal {
        name: "k73-default.1.img",
        arguments: &[],
        tail: 2,
        head: 12805,
        checkpoints: 202,
        items: "INODE 6341 BUF 5011 ICREATE 3 RUI 34 RUD 34 CUI 21 CUD 21 EFI 8 EFD 8 ATTRI 1 ATTRD 1",
        pending: "",
    },
    Journal {
        name: "s390x-61.1.img",
        arguments: &[],
        tail: 2,
        head: 1340,
        checkpoints: 13,
        items: "INODE 1415 BUF 383 ICREATE 9",
        pending: "",
    },
    Journal {
        name: "k510-wrap.log",
        arguments: &["-f"],
        tail: 17427,
        head: 21481,
        checkpoints: 62,
        items: "EFD 689 RUI 863 EFI 686 RUD 863 BUF 765 INODE 191 BUI 103 CUI 117 BUD 103 CUD 117",
        pending: "",
    },
    Journal {
        name: "k73-wrap.log",
        arguments: &["-f"],
        tail: 8794,
        head: 13845,
        checkpoints: 43,
        items: "RUD 30 BUF 1011 CUD 17 EFD 31 INODE 164 RUI 30 EFI 31 CUI 16",
        pending: "RUI 1 EFI 1",
    },
    Journal {
        name: "k73-rtg-wrap.log",
        arguments: &["-f"],
        tail: 11134,
        head: 17766,
        checkpoints: 155,
        items: "EFD_RT 38 RUD_RT 70 CUD_RT 32 BUF 1468 INODE 621 RUI_RT 70 EFI_RT 38 CUI_RT 32 XMI 46 BUI 75 BUD 73 XMD 45 \
                ATTRI 1 ATTRD 1 RUI 1 EFI 1 RUD 1 EFD 1",
        pending: "XMI 1 BUI 2 RUI_RT 1 CUI_RT 1 EFI_RT 1",
    },
];

/// Unpacks a journal into `folder`.
pub fn unpacked(journal: &Journal, folder: &Path) -> PathBuf {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/crash").join(format!("{}.zst", journal.name));
    let path = folder.join(journal.name);
    let file = File::open(&packed).unwrap_or_else(|error| panic!("{}: {error}", packed.display()));
    let mut source = zstd::stream::read::Decoder::new(file).expect("a zstd stream");
    source.window_log_max(27).expect("a window of 128 MiB");
    let mut target = File::create(&path).expect("the folder can be written");
    sparsely(&mut source, &mut target).expect("the journal can be unpacked");
    path
}

/// Copies, and leaves holes where there are zeroes.
fn sparsely(source: &mut impl std::io::Read, target: &mut File) -> std::io::Result<()> {
    use std::io::{Seek, SeekFrom, Write};
    let mut block = vec![0; 1 << 16];
    let mut len = 0;
    loop {
        let mut filled = 0;
        while filled < block.len() {
            match source.read(&mut block[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        if filled == 0 {
            return target.set_len(len);
        }
        if block[..filled].iter().any(|byte| *byte != 0) {
            target.seek(SeekFrom::Start(len))?;
            target.write_all(&block[..filled])?;
        }
        len += filled as u64;
    }
}

/// JSON in which no object has a name twice.
pub struct Strict(pub Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Strict(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((name, Strict(value))) = map.next_entry::<String, Strict>()? {
            if object.insert(name.clone(), value).is_some() {
                return Err(A::Error::custom(format!("{name} twice in an object")));
            }
        }
        Ok(Value::Object(object))
    }
}
