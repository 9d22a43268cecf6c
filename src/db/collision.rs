//! Names of equal length and equal hash (xfsprogs `db/obfuscate.c`, which gives the same names for the same random
//! numbers).
//!
//! The hash turns left by seven bits before each byte, so that the last five bytes of a name reach all of its 32 bits:
//! whatever stands before them, they can be chosen to make the hash come out right.

use super::c_random::CRandom;
use crate::ondisk::name_hash::NameHash;

/// Characters of the part that may be anything.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Bytes at the end that make the hash come out right.
const TAIL: usize = 5;
/// How often another beginning is tried where case does not count.
const TRIES: usize = 1001;

/// Neither can be part of a name.
fn is_invalid(byte: u8) -> bool {
    matches!(byte, 0 | b'/')
}

/// A name as long as `name` and with the same `hash`. Names of fewer than five bytes leave no choice and come back as
/// they are; so do those for which, where case does not count, no other is found.
pub fn other_name(name: &[u8], hash: NameHash, random: &mut CRandom) -> Vec<u8> {
    let wanted = hash.hash(name);
    let Some(free) = name.len().checked_sub(TAIL) else { return name.to_vec() };
    for _ in 0..TRIES {
        let mut other = Vec::with_capacity(name.len());
        for _ in 0..free {
            let index = usize::try_from(random.draw()).unwrap_or(0) % ALPHABET.len();
            other.push(ALPHABET[index]);
        }
        let rest = hash.hash(&other).rotate_left(3) ^ wanted;
        // a name whose tail holds letters that the hash takes for others has another hash than wanted
        if let Some(tail) = tail_of(rest).filter(|tail| tail.iter().all(|byte| keeps(hash, *byte))) {
            other.extend(tail);
            return other;
        }
    }
    name.to_vec()
}

/// Whether the hash takes `byte` for itself.
fn keeps(hash: NameHash, byte: u8) -> bool {
    hash.hash(&[byte]) == u32::from(byte)
}

/// Five bytes that make up `rest` of a hash. Where one cannot be part of a name, its lowest bit is turned, and with it
/// the highest of the next byte, which reaches the same bit of the hash.
#[allow(clippy::cast_possible_truncation)] // seven bits each
fn tail_of(rest: u32) -> Option<[u8; TAIL]> {
    let mut tail = [28, 21, 14, 7, 0].map(|shift| (rest >> shift & 0x7f) as u8);
    let mut carry = 0;
    for byte in &mut tail {
        *byte ^= carry;
        carry = 0;
        if is_invalid(*byte) {
            *byte ^= 1;
            carry = 0x80;
        }
    }
    if carry != 0 {
        // the last byte's bit is that of the first one, four bits higher
        tail[0] ^= 0x10;
    }
    Some(tail).filter(|tail| !tail.iter().any(|byte| is_invalid(*byte)))
}

/// Pairs of a byte and a bit each that reach the same bit of the hash, counted from the first byte of those that matter;
/// ordered by the second byte.
const PAIRS: [[(usize, u8); 2]; 14] = [
    [(0, 0), (1, 7)],
    [(1, 0), (2, 7)],
    [(2, 0), (3, 7)],
    [(0, 4), (4, 0)],
    [(0, 5), (4, 1)],
    [(0, 6), (4, 2)],
    [(0, 7), (4, 3)],
    [(3, 0), (4, 7)],
    [(0, 0), (5, 3)],
    [(0, 1), (5, 4)],
    [(0, 2), (5, 5)],
    [(0, 3), (5, 6)],
    [(0, 4), (5, 7)],
    [(4, 0), (5, 7)],
];

/// What came of turning bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alternate {
    /// Another name of the same hash.
    Name,
    /// No name: the bits that were turned stay turned.
    Invalid,
    /// There are not so many of them.
    Exhausted,
}

/// Turns `name` into the one that the bits of `sequence` choose among those of the same length and hash. 0 is the name
/// itself.
pub fn alternate(name: &mut [u8], sequence: u32) -> Alternate {
    if sequence == 0 {
        return Alternate::Name;
    }
    for bit in (0..u32::BITS).filter(|bit| sequence >> bit & 1 != 0) {
        match turn(name, usize::try_from(bit).unwrap_or(usize::MAX)) {
            Alternate::Name => {}
            other => return other,
        }
    }
    Alternate::Name
}

/// Turns one pair of bits, the ones nearest to the end of the name first.
fn turn(name: &mut [u8], number: usize) -> Alternate {
    let usable = PAIRS.iter().take_while(|[_, second]| second.0 < name.len()).count();
    let Some(index) = usable.checked_sub(1).and_then(|last| last.checked_sub(number)) else {
        return Alternate::Exhausted;
    };
    let start = name.len() - (PAIRS[usable - 1][1].0 + 1);
    let [first, second] = PAIRS[index].map(|(byte, bit)| (start + byte, 1_u8 << bit));
    let turned = [name[first.0] ^ first.1, name[second.0] ^ second.1];
    if turned.into_iter().any(is_invalid) {
        return Alternate::Invalid;
    }
    [name[first.0], name[second.0]] = turned;
    Alternate::Name
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_name() -> impl Strategy<Value = Vec<u8>> {
        let byte = any::<u8>().prop_map(|byte| if is_invalid(byte) { b'x' } else { byte });
        proptest::collection::vec(byte, 1..40)
    }

    proptest! {
        #[test]
        fn other_names_keep_length_and_hash(name in any_name(), seed: u32) {
            for hash in [NameHash::Bytes, NameHash::AsciiCi] {
                let other = other_name(&name, hash, &mut CRandom::seeded(seed));
                prop_assert_eq!(other.len(), name.len());
                prop_assert_eq!(hash.hash(&other), hash.hash(&name));
                prop_assert!(!other.iter().any(|byte| is_invalid(*byte)));
            }
        }

        #[test]
        fn alternates_keep_length_and_hash(name in any_name(), sequence in 0_u32..1 << 15) {
            let mut other = name.clone();
            let found = alternate(&mut other, sequence);
            prop_assert_eq!(NameHash::Bytes.hash(&other), NameHash::Bytes.hash(&name));
            prop_assert_eq!(other.len(), name.len());
            prop_assert!(found != Alternate::Name || sequence == 0 || other != name);
            prop_assert!(!other.iter().any(|byte| is_invalid(*byte)));
        }
    }

    #[test]
    fn short_names_have_few_alternates() {
        assert_eq!(alternate(&mut [b'a'], 1), Alternate::Exhausted);
        assert_eq!(alternate(&mut [b'a', b'b'], 1), Alternate::Name);
        assert_eq!(alternate(&mut [b'a', b'b'], 2), Alternate::Exhausted);
        assert_eq!(alternate(&mut [], 1), Alternate::Exhausted);
    }
}
