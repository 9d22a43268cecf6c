//! Superblocks for tests: those of the samples in `testdata/headers`, and what damage makes of them.

use proptest::prelude::*;

use super::AgNumber;
use crate::ondisk::{OnDisk, RawSuperblock};

const SAMPLES: [(&str, &[u8]); 8] = [
    ("default", include_bytes!("../../testdata/headers/default.bin")),
    ("v4-old", include_bytes!("../../testdata/headers/v4-old.bin")),
    ("sector-stripe", include_bytes!("../../testdata/headers/sector-stripe.bin")),
    ("realtime", include_bytes!("../../testdata/headers/realtime.bin")),
    ("groups", include_bytes!("../../testdata/headers/groups.bin")),
    ("zoned-internal", include_bytes!("../../testdata/headers/zoned-internal.bin")),
    ("huge", include_bytes!("../../testdata/headers/huge.bin")),
    ("meta-uuid", include_bytes!("../../testdata/headers/meta-uuid.bin")),
];

/// The superblock of a sample.
pub(crate) fn superblock(name: &str) -> RawSuperblock {
    let (_, bytes) = SAMPLES.iter().find(|sample| sample.0 == name).expect("invariant: the sample is in the list");
    *RawSuperblock::prefix(bytes).expect("invariant: a sample starts with a superblock").0
}

/// Any of the samples' superblocks.
pub(crate) fn any_superblock() -> impl Strategy<Value = RawSuperblock> {
    proptest::sample::select(&SAMPLES[..]).prop_map(|(name, _)| superblock(name))
}

/// A sample's superblock with some of its fields set to something else: nothing, everything, powers of two and their
/// neighbours, noise.
pub(crate) fn damaged_superblock() -> impl Strategy<Value = RawSuperblock> {
    let value = prop_oneof![
        Just(0),
        Just(u64::MAX),
        (0_u32..64, -1_i64..=1).prop_map(|(bit, more)| (1_u64 << bit).wrapping_add_signed(more)),
        any::<u64>(),
    ];
    let fields = proptest::collection::vec((0..RawSuperblock::FIELDS.len(), value), 1..6);
    (any_superblock(), fields).prop_map(|(sb, fields)| {
        let mut bytes: [u8; RawSuperblock::SIZE] = zerocopy::transmute!(sb);
        for (index, value) in fields {
            let field = &RawSuperblock::FIELDS[index];
            let value = value.to_be_bytes();
            let used = field.size.min(8);
            bytes[field.offset..field.offset + used].copy_from_slice(&value[8 - used..]);
        }
        zerocopy::transmute!(bytes)
    })
}

/// A group number, mostly a small one.
pub(crate) fn any_agno() -> impl Strategy<Value = AgNumber> {
    prop_oneof![0_u32..10, any::<u32>()].prop_map(AgNumber)
}
