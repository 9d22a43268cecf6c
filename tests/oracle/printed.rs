//! What xfs_db's `print` says, and structures compared with it.

use std::collections::BTreeMap;

use xfskit::ondisk::{Field, FieldKind, OnDisk};

/// Names of xfs_db that are not those of the specification.
const RENAMED: [(&str, &str); 20] = [
    ("bnoroot", "bno_root"),
    ("cntroot", "cnt_root"),
    ("rmaproot", "rmap_root"),
    ("refcntroot", "refcount_root"),
    ("bnolevel", "bno_level"),
    ("cntlevel", "cnt_level"),
    ("rmaplevel", "rmap_level"),
    ("refcntlevel", "refcount_level"),
    ("rmapblocks", "rmap_blocks"),
    ("refcntblocks", "refcount_blocks"),
    ("ino_blocks", "iblocks"),
    ("fino_blocks", "fblocks"),
    ("bno", "blkno"),
    ("onlink", "metatype"),
    ("nlinkv2", "nlink"),
    ("gen", "generation"),
    ("change_count", "changecount"),
    ("inumber", "ino"),
    ("type", "dqtype"),
    ("magicnum", "magic"),
];

/// The output of one `print`.
#[derive(Debug, Default)]
pub struct Printed {
    /// Lines of the form `name = value`.
    pub fields: Vec<(String, String)>,
    /// Lines of the form `1:[2,3]`, by the name of the array that they belong to.
    pub rows: BTreeMap<String, Vec<Vec<u64>>>,
}

impl Printed {
    /// Takes the lines apart.
    pub fn parse<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let mut printed = Printed::default();
        let mut array = String::new();
        for line in lines {
            let row = line.split_once(":[").filter(|(index, _)| index.parse::<u32>().is_ok());
            if let Some((_, row)) = row {
                let row = row.trim_end().trim_end_matches(']').split(',').map(|word| number(word).unwrap_or_default());
                printed.rows.entry(array.clone()).or_default().push(row.collect());
            } else if let Some((name, value)) = line.split_once(" = ").or_else(|| line.split_once(" =")) {
                name.split('[').next().unwrap_or_default().clone_into(&mut array);
                printed.fields.push((name.to_owned(), value.trim().to_owned()));
            }
        }
        printed
    }

    /// The value of a field.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|field| field.0 == name).map(|field| field.1.as_str())
    }

    /// The rows of an array.
    pub fn rows(&self, array: &str) -> &[Vec<u64>] {
        self.rows.get(array).map_or(&[], Vec::as_slice)
    }

    /// The elements of an array that is printed as `1:2 2:3`.
    pub fn elements(&self, array: &str) -> Vec<u64> {
        let all = self.fields.iter().filter(|field| field.0.split('[').next() == Some(array));
        let words = all.flat_map(|field| field.1.split(' '));
        words.filter_map(|word| Some(number(word.split_once(':')?.1).unwrap_or(u64::from(u32::MAX)))).collect()
    }

    /// Compares the fields whose names begin with `prefix` with those of `T` in `bytes`; returns how many. Fields that `T`
    /// does not have are left to the caller.
    ///
    /// # Panics
    /// When a field differs.
    pub fn compare<T: OnDisk>(&self, bytes: &[u8], prefix: &str) -> usize {
        let mut fields = Vec::new();
        flatten(T::FIELDS, 0, &mut fields);
        let mut compared = 0;
        for (printed, value) in self.fields.iter().filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, value)))
        {
            let name = printed.split('[').next().unwrap_or_default();
            let renamed = RENAMED.iter().find(|pair| pair.0 == name).map_or(name, |pair| pair.1);
            let Some((_, offset, field)) = fields.iter().find(|(own, ..)| *own == name || *own == renamed) else {
                continue;
            };
            let bytes = &bytes[*offset..offset + field.size];
            assert!(is_printed_as(bytes, field.kind, value), "{}.{printed} = {value}: {bytes:02x?}", T::NAME);
            compared += 1;
        }
        compared
    }
}

/// The fields of a structure and of those in it, with their offsets.
fn flatten(table: &'static [Field], base: usize, fields: &mut Vec<(&'static str, usize, &'static Field)>) {
    for field in table {
        match field.kind {
            FieldKind::Struct(inner) => flatten(inner, base + field.offset, fields),
            _ => fields.push((field.name, base + field.offset, field)),
        }
    }
}

/// A number as xfs_db writes it; negative ones stand for the upper half of 64 bits.
pub fn number(text: &str) -> Option<u64> {
    let text = text.split(' ').next()?;
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok().or_else(|| Some(u64::from_ne_bytes(text.parse::<i64>().ok()?.to_ne_bytes()))),
    }
}

/// Whether a field is what xfs_db wrote, for the ways that it writes headers and inodes in. It writes CRCs as if they were
/// big-endian too, and modes in octal.
fn is_printed_as(bytes: &[u8], kind: FieldKind, printed: &str) -> bool {
    let value = bytes.iter().take(8).fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    match kind {
        FieldKind::Int(size) => match printed {
            "null" => value == u64::MAX >> (64 - 8 * size),
            "" => value == 0,
            octal if octal.len() > 4 && octal.starts_with('0') => {
                u64::from_str_radix(octal, 8) == Ok(value) || number(octal) == Some(value)
            }
            _ => number(printed) == Some(value),
        },
        FieldKind::Bytes(16) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            printed.replace('-', "") == hex
        }
        FieldKind::Bytes(12) => {
            let escaped: String = bytes
                .iter()
                .map(|byte| if *byte == 0 { "\\000".to_owned() } else { char::from(*byte).to_string() })
                .collect();
            printed == format!("\"{escaped}\"")
        }
        FieldKind::Bytes(_) => printed == "0" && bytes.iter().all(|byte| *byte == 0),
        FieldKind::Array { .. } => printed.is_empty() && bytes.iter().all(|byte| *byte == 0xff),
        FieldKind::Struct(_) => false,
    }
}
