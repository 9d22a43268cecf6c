//! The hash of names in directories and attributes (Linux `fs/xfs/libxfs/xfs_da_btree.c`, `xfs_dir2.c`).

/// How a filesystem hashes and compares the names in its directories. Attribute names are always [`NameHash::Bytes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameHash {
    /// Byte for byte.
    #[default]
    Bytes,
    /// Without regard to case, in ISO 8859-1 (the `ascii-ci` feature).
    AsciiCi,
}

impl NameHash {
    /// The hash of `name`.
    pub fn hash(self, name: &[u8]) -> u32 {
        match self {
            NameHash::Bytes => hash_name(name),
            NameHash::AsciiCi => hash_name_ci(name),
        }
    }

    /// Whether two names are the same name.
    pub fn same(self, a: &[u8], b: &[u8]) -> bool {
        match self {
            NameHash::Bytes => a == b,
            NameHash::AsciiCi => a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| fold(a) == fold(b)),
        }
    }
}

/// The plain hash: each byte is mixed in after the value has been rotated left by 7 bits.
///
/// The kernel takes four bytes in one step. That is the same function, because the four rotations add up to 28 and
/// none of the shifted bytes reaches bit 32.
pub fn hash_name(name: &[u8]) -> u32 {
    name.iter().fold(0u32, |hash, &byte| hash.rotate_left(7) ^ u32::from(byte))
}

/// The hash of the `ascii-ci` feature: the plain hash of the folded bytes.
pub fn hash_name_ci(name: &[u8]) -> u32 {
    name.iter().fold(0u32, |hash, &byte| hash.rotate_left(7) ^ u32::from(fold(byte)))
}

/// Lower case of an ISO 8859-1 letter; other bytes as they are. 0xd7 is the multiplication sign, no letter.
pub fn fold(byte: u8) -> u8 {
    match byte {
        0x41..=0x5a | 0xc0..=0xd6 | 0xd8..=0xde => byte + 0x20,
        _ => byte,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition in steps of four bytes, as the kernel computes it.
    fn by_fours(name: &[u8]) -> u32 {
        let mut hash = 0u32;
        let chunks = name.chunks_exact(4);
        let rest = chunks.remainder();
        for chunk in chunks {
            let step = chunk.iter().zip([21, 14, 7, 0]).fold(0, |sum, (&b, shift)| sum ^ (u32::from(b) << shift));
            hash = step ^ hash.rotate_left(28);
        }
        rest.iter().fold(hash, |hash, &b| u32::from(b) ^ hash.rotate_left(7))
    }

    #[test]
    fn known_hashes() {
        // what xfs_db's "hash" command prints
        assert_eq!(hash_name(b"."), 0x2e);
        assert_eq!(hash_name(b".."), 0x172e);
        assert_eq!(hash_name(b"lost+found"), 0x021a_a60c);
        assert_eq!(hash_name(b"security.selinux"), 0xab38_c83b);
        assert_eq!(hash_name_ci(b"ABC"), hash_name(b"abc"));
        assert!(NameHash::AsciiCi.same(b"\xc4h", b"\xe4H"));
        assert!(!NameHash::AsciiCi.same(b"\xd7", b"\xf7"));
    }

    proptest! {
        #[test]
        fn bytewise_equals_the_steps_of_four(name in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(hash_name(&name), by_fours(&name));
        }
    }
}
