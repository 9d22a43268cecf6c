//! The tables on blocks that kernels have written, and on damaged ones.

use proptest::prelude::*;

use super::{Body, Family, TypeId, body};
use crate::db::crc_state::CrcState;
use crate::db::field::{Node, Object, Shape, all, encode, object_of, store, write_nodes};
use crate::geometry::Geometry;
use crate::ondisk::{OnDisk, RawSuperblock};

/// A block of `testdata/blocks`, and its type.
struct Sample {
    name: &'static str,
    ty: TypeId,
    superblock: &'static [u8],
    bytes: &'static [u8],
}

macro_rules! samples {
    ($( $folder:literal: $( $file:literal => $ty:ident ),*; )*) => {
        &[ $( $( Sample {
            name: concat!($folder, "/", $file),
            ty: TypeId::$ty,
            superblock: include_bytes!(concat!("../../../testdata/blocks/", $folder, "/Superblock.bin")),
            bytes: include_bytes!(concat!("../../../testdata/blocks/", $folder, "/", $file, ".bin")),
        }, )* )* ]
    };
}

const SAMPLES: &[Sample] = samples! {
    "filled": "AttrHash-3bee" => Attr, "AttrHash-3ebe" => Attr, "AttrRemote" => Attr, "Bmbt-0" => Bmapbtd,
        "DirBlock" => Dir2, "DirData" => Dir2, "DirFree" => Dir2, "DirHash-3dff" => Dir2, "DirHash-3ebe" => Dir2,
        "DirLeaf1" => Dir2, "Symlink" => Symlink, "Superblock" => Sb, "InodeCluster" => Inode;
    "groups": "Agf" => Agf, "Agfl" => Agfl, "Agi" => Agi, "Bnobt-0" => Bnobt, "Cntbt-0" => Cntbt,
        "DirBlock" => Dir2, "Finobt-0" => Finobt, "Inobt-0" => Inobt, "Refcountbt-0" => Refcntbt,
        "Rmapbt-0" => Rmapbt, "RtBitmap" => Rgbitmap, "RtSummary" => Rgsummary, "RtSuperblock" => Rtsb,
        "Rtrmapbt-0" => Rtrmapbt, "Symlink" => Symlink;
    "quota": "Bmbt-0" => Bmapbtd, "Dquots" => Dqblk, "Rmapbt-1" => Rmapbt;
    "v4": "Agf" => Agf, "Agfl" => Agfl, "Agi" => Agi, "Bnobt-0" => Bnobt, "Inobt-0" => Inobt;
};

fn geometry(superblock: &[u8]) -> Geometry {
    Geometry::assume(RawSuperblock::prefix(superblock).expect("invariant: a sample begins with a superblock").0)
}

/// The shown fields of the bytes as one of `ty`; `None` for types without fields.
fn nodes(ty: TypeId, object: &Object<'_>) -> Option<Vec<Node>> {
    let Body::Fields(format) = body(ty, Family::of(&object.geometry.features))? else { return None };
    Some(all(format.rows()?, object, 0).expect("invariant: fields that are there can be found"))
}

fn text(nodes: &[Node], object: &Object<'_>) -> String {
    let mut out = Vec::new();
    write_nodes(&mut out, nodes, object, "").expect("invariant: memory can be written to");
    String::from_utf8(out).expect("invariant: all bytes are shown as ASCII")
}

/// Every value by itself: elements of arrays, and fields of records.
fn values(nodes: &[Node], object: &Object<'_>, found: &mut Vec<Node>) {
    for node in nodes {
        let rows = match node.row.format.shape {
            Shape::Structure(_) => {
                values(&node.children, object, found);
                continue;
            }
            Shape::Characters => {
                found.push(node.clone());
                continue;
            }
            Shape::Records(rows) => rows,
            _ => &[],
        };
        for index in 0..node.count(object) {
            let at = node.offset + index * node.size(object);
            let number = node.range.map_or(0, |(low, _)| low) + index;
            if rows.is_empty() {
                let range = node.range.map(|_| (number, number));
                found.push(Node { offset: at, range, ..node.clone() });
            }
            let fields = rows.iter().map(|row| (row, row.offset(object, at, number)));
            found.extend(fields.map(|(row, offset)| Node {
                row,
                start: at,
                offset,
                range: None,
                children: Vec::new(),
            }));
        }
    }
}

/// What must be typed for the value that is shown.
fn typed(shown: &str, shape: &Shape) -> Option<String> {
    let shown = shown.split_once(" = ")?.1.trim_end();
    match shape {
        Shape::Crc | Shape::Named(_) => shown.split(' ').next().map(str::to_owned),
        Shape::QuotaTimer | Shape::Time if shown.contains(':') => None,
        // what is left out of a list
        _ if shown.is_empty() => None,
        _ => Some(shown.to_owned()),
    }
}

#[test]
fn what_is_shown_sets_the_same_bytes() {
    for sample in SAMPLES {
        let geometry = geometry(sample.superblock);
        let object = Object { bytes: sample.bytes, geometry: &geometry, crc: CrcState::Correct };
        let Some(nodes) = nodes(sample.ty, &object) else { continue };
        let mut found = Vec::new();
        values(&nodes, &object, &mut found);
        assert!(found.len() >= 4, "{}: {} values", sample.name, found.len());
        for node in found {
            let shown = text(std::slice::from_ref(&node), &object);
            let Some(typed) = typed(&shown, &node.row.format.shape) else { continue };
            // a field of zeroes, so that nothing is left of what was there
            let mut bytes = sample.bytes.to_vec();
            let bits = encode(&node, &typed, &object).unwrap_or_else(|error| panic!("{}: {shown}{error}", sample.name));
            assert!(store(&mut bytes, node.offset, &vec![false; bits.len()]).is_some(), "{}: {shown}", sample.name);
            assert!(store(&mut bytes, node.offset, &bits).is_some(), "{}: {shown}", sample.name);
            assert!(bytes == sample.bytes, "{}: {shown}", sample.name);
        }
    }
}

#[test]
fn a_directory_block_is_shown_in_full() {
    let sample = SAMPLES.iter().find(|sample| sample.name == "filled/DirBlock").expect("invariant: it is in the list");
    let geometry = geometry(sample.superblock);
    let object = Object { bytes: sample.bytes, geometry: &geometry, crc: CrcState::Correct };
    let nodes = nodes(sample.ty, &object).expect("invariant: directories have fields");
    let text = text(&nodes, &object);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "bhdr.hdr.magic = 0x58444233");
    assert!(lines.contains(&"bu[0].inumber = 128") && lines.contains(&"bu[0].name = \".\""), "{text}");
    assert!(lines.last().is_some_and(|line| line.starts_with("btail.stale = ")), "{text}");
    let json = object_of(&nodes, &object);
    assert_eq!(json["bu"][1]["name"], "..");
    assert_eq!(json["bleaf"].as_array().map(Vec::len), json["btail"]["count"].as_u64().and_then(|n| n.try_into().ok()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damage_is_shown_too(
        sample in 0..SAMPLES.len(),
        ty in proptest::option::of(proptest::sample::select(TypeId::ALL)),
        cut: Option<prop::sample::Index>,
        changes in proptest::collection::vec((0_usize..200, any::<u8>()), 0..12),
        far in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let sample = &SAMPLES[sample];
        let mut bytes = sample.bytes.to_vec();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        for (at, byte) in far {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let geometry = geometry(sample.superblock);
        let object = Object { bytes: &bytes, geometry: &geometry, crc: CrcState::Bad };
        if let Some(nodes) = nodes(ty.unwrap_or(sample.ty), &object) {
            prop_assert!(text(&nodes, &object).len() < 64 << 20);
            object_of(&nodes, &object);
        }
    }
}
