//! Names that stand for others.
//!
//! What a name becomes follows from a secret key, from the inode that it belongs to and from the name itself, so that
//! any thread finds the same one: that of a directory entry, and that of the parent pointer that repeats it. Within a
//! directory, or among the attributes of an inode, two names do not become one:
//!
//! - A name of five bytes or more keeps its length and its hash. All bytes but the last five are shifted through their
//!   alphabet by a stream that depends on the inode, the length and the hash; the last five are what the hash then
//!   demands, save for the eight bits that it leaves open, which are shifted too.
//! - A shorter name would be given away by its hash. It gets the next one in a secret order of all names of its length.

use crate::device::random_bytes;
use crate::geometry::Geometry;
use crate::ondisk::name_hash::NameHash;

/// Bytes of a name up to which its hash gives it away.
pub(super) const SHORT: usize = 4;
/// Bytes that are set so that the hash comes out right.
const TAIL: usize = 5;
/// Bits by which these rotate the hash of what stands before them.
const TAIL_BITS: u32 = 7 * 5;
/// Streams that are tried until no byte is one that a name cannot have.
const ATTEMPTS: u64 = 64;
/// Rounds of the secret order.
const ROUNDS: u64 = 6;
/// Longest name in bytes.
const LONGEST: usize = 255;
/// What targets of symbolic links are made of.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What a name is the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Domain {
    Entry = 1,
    Attribute = 2,
    Target = 3,
}

/// Replaces names.
pub(super) struct Obscurer {
    key: [u64; 2],
    entries: Alphabet,
    attributes: Alphabet,
}

impl Obscurer {
    /// For the names of a filesystem. Without a seed, nobody can find out what a name was.
    pub(super) fn new(geometry: &Geometry, seed: Option<u64>) -> Self {
        let key = if let Some(seed) = seed {
            [seed, !seed]
        } else {
            [random_bytes(), random_bytes()].map(u64::from_le_bytes)
        };
        let hash = if geometry.features.has_asciici() { NameHash::AsciiCi } else { NameHash::Bytes };
        Obscurer { key, entries: Alphabet::new(hash), attributes: Alphabet::new(NameHash::Bytes) }
    }

    /// How names in directories are hashed.
    pub(super) fn hash(&self) -> NameHash {
        self.entries.hash
    }

    /// Replaces the name of an entry of directory `parent`.
    pub(super) fn entry(&self, parent: u64, name: &mut [u8]) {
        if name != b"." && name != b".." {
            self.replace(Domain::Entry, parent, name);
        }
    }

    /// Replaces the name of an attribute of inode `ino`.
    pub(super) fn attribute(&self, ino: u64, name: &mut [u8]) {
        self.replace(Domain::Attribute, ino, name);
    }

    /// Replaces the target of symbolic link `ino`, but for its slashes and dots.
    pub(super) fn target(&self, ino: u64, target: &mut [u8]) {
        for (index, part) in (0u64..).zip(target.split_mut(|&byte| byte == b'/')) {
            if part == b"." || part == b".." {
                continue;
            }
            for (word, bytes) in (0u64..).zip(part.chunks_mut(8)) {
                let stream = self.random(Domain::Target, [ino, index, word]).to_le_bytes();
                bytes.iter_mut().zip(stream).for_each(|(byte, random)| *byte = LETTERS[usize::from(random) % 64]);
            }
        }
    }

    fn replace(&self, domain: Domain, owner: u64, name: &mut [u8]) {
        let alphabet = if domain == Domain::Entry { &self.entries } else { &self.attributes };
        name.iter_mut().for_each(|byte| *byte = alphabet.fold(*byte));
        if name.is_empty() || name.len() > LONGEST || name.iter().any(|byte| alphabet.place(*byte).is_none()) {
            // such a name cannot be: nothing depends on it
            return name.fill(b'x');
        }
        if name.len() <= SHORT {
            self.replace_short(domain, alphabet, owner, name);
        } else if self.replace_long(domain, alphabet, owner, name).is_none() {
            self.shift(alphabet, [domain as u64 | 1 << 16, owner, 0], name);
        }
    }

    /// A number that nobody can tell without the key.
    fn random(&self, domain: Domain, words: [u64; 3]) -> u64 {
        sip(self.key, [domain as u64, words[0], words[1], words[2]])
    }

    /// Shifts each byte within its class, by one place at least.
    fn shift(&self, alphabet: &Alphabet, words: [u64; 3], bytes: &mut [u8]) {
        for (index, part) in (0u64..).zip(bytes.chunks_mut(8)) {
            let stream = sip(self.key, [words[0], words[1], words[2], index]).to_le_bytes();
            for (byte, random) in part.iter_mut().zip(stream) {
                *byte = alphabet.shifted(*byte, usize::from(random));
            }
        }
    }

    /// Replaces a name by one of the same hash; `None`, and the name is as before, when none was found.
    fn replace_long(&self, domain: Domain, alphabet: &Alphabet, owner: u64, name: &mut [u8]) -> Option<()> {
        let hash = alphabet.hash.hash(name);
        let start = name.len() - TAIL;
        let tail = OpenBits::of(&name[start..]);
        let mut buffer = [0; LONGEST];
        let new = &mut buffer[..name.len()];
        for attempt in 0..ATTEMPTS {
            let words = [domain as u64 | attempt << 8, owner, u64::from(hash) << 8 | name.len() as u64];
            new.copy_from_slice(name);
            self.shift(alphabet, words, &mut new[..start]);
            let before = alphabet.hash.hash(&new[..start]).rotate_left(TAIL_BITS);
            let random = sip(self.key, [words[0], words[1], words[2], u64::MAX]);
            let bytes = tail.shifted(random).bytes(hash ^ before);
            if bytes.iter().any(|&byte| alphabet.fold(byte) != byte || alphabet.place(byte).is_none()) {
                continue;
            }
            new[start..].copy_from_slice(&bytes);
            if alphabet.hash.hash(new) == hash {
                name.copy_from_slice(new);
                return Some(());
            }
        }
        None
    }

    fn replace_short(&self, domain: Domain, alphabet: &Alphabet, owner: u64, name: &mut [u8]) {
        // all names of the length whose bytes are of the same classes have an order; the places in them are numbers
        let classes = name.iter().fold(1, |sum, &byte| sum << 1 | u64::from(alphabet.is_plain(byte)));
        let order = SecretOrder { obscurer: self, domain, owner, classes };
        let mut places = [(0u64, 1u64); SHORT];
        let places = &mut places[..name.len()];
        for (place, &byte) in places.iter_mut().zip(&*name) {
            let Some((index, class)) = alphabet.place(byte) else { return };
            *place = (index as u64, class.len() as u64);
        }
        // the order is a ring, so that this comes to another name before it comes back to this one
        loop {
            order.advance(places);
            for ((byte, place), step) in name.iter_mut().zip(&*places).zip(0..) {
                let plain = classes >> (places.len() - 1 - step) & 1 == 1;
                *byte = alphabet.byte(plain, usize::try_from(place.0).unwrap_or(0));
            }
            if name != b"." && name != b".." {
                return;
            }
        }
    }
}

/// The bits of the last five bytes of a name that its hash leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenBits {
    /// The upper half of the first byte.
    high: u8,
    /// The highest bits of the other four.
    tops: u8,
}

impl OpenBits {
    fn of(tail: &[u8]) -> Self {
        let tops = tail.iter().skip(1).fold(0, |sum, byte| sum << 1 | byte >> 7);
        OpenBits { high: tail.first().map_or(0, |byte| byte >> 4), tops }
    }

    /// Other bits for each other state; never the same.
    fn shifted(self, random: u64) -> Self {
        let [first, second, ..] = random.to_le_bytes();
        OpenBits { high: self.high ^ (1 + first % 15), tops: self.tops ^ (second & 15) }
    }

    /// The five bytes with these bits whose hash is `hash`.
    fn bytes(self, hash: u32) -> [u8; TAIL] {
        let mut left = hash ^ u32::from(self.high);
        let mut bytes = [0; TAIL];
        // from the last byte on: where each is mixed in, and which of the open bits is its highest
        for (place, (byte, shift)) in (0..).zip(bytes.iter_mut().rev().zip([0_u32, 7, 14, 21])) {
            let top = self.tops >> place & 1;
            let [low, ..] = (left >> shift & 0x7f).to_le_bytes();
            *byte = low | top << 7;
            left ^= u32::from(top) << (shift + 7);
        }
        let [low, ..] = (left >> 28).to_le_bytes();
        bytes[0] = low | self.high << 4;
        bytes
    }
}

/// A secret order of the names of one length in one place: a permutation, one step of a ring, and the permutation undone.
struct SecretOrder<'a> {
    obscurer: &'a Obscurer,
    domain: Domain,
    owner: u64,
    classes: u64,
}

impl SecretOrder<'_> {
    /// Goes to the next name. `places` are the bytes as numbers, each with the number that it is less than.
    fn advance(&self, places: &mut [(u64, u64)]) {
        let [only] = places else { return self.advance_halves(places) };
        // the order of a few numbers: that of random numbers which stand for them
        let rank = |value: u64| (self.random(u64::MAX, value), value);
        let own = rank(only.0);
        let others = (0..only.1).map(rank);
        let next = others.clone().filter(|other| *other > own).min().or_else(|| others.min());
        only.0 = next.map_or(only.0, |next| next.1);
    }

    fn advance_halves(&self, places: &mut [(u64, u64)]) {
        let (left, right) = places.split_at_mut(places.len() / 2);
        let size = |half: &[(u64, u64)]| half.iter().map(|place| place.1).product::<u64>();
        let number = |half: &[(u64, u64)]| half.iter().fold(0, |sum, place| sum * place.1 + place.0);
        let sizes = [size(left), size(right)];
        let mut halves = [number(left), number(right)];
        for round in 0..ROUNDS {
            let at = usize::from(round % 2 == 1);
            let step = self.random(round, halves[1 - at]) % sizes[at];
            halves[at] = (halves[at] + step) % sizes[at];
        }
        halves[1] += 1;
        if halves[1] == sizes[1] {
            halves = [(halves[0] + 1) % sizes[0], 0];
        }
        for round in (0..ROUNDS).rev() {
            let at = usize::from(round % 2 == 1);
            let step = self.random(round, halves[1 - at]) % sizes[at];
            halves[at] = (halves[at] + sizes[at] - step) % sizes[at];
        }
        for (half, mut value) in [left, right].into_iter().zip(halves) {
            for place in half.iter_mut().rev() {
                place.0 = value % place.1;
                value /= place.1;
            }
        }
    }

    fn random(&self, round: u64, value: u64) -> u64 {
        let words = [self.owner, self.classes << 8 | round & 0xff, value];
        sip(self.obscurer.key, [self.domain as u64 | 2 << 16, words[0], words[1], words[2]])
    }
}

/// The bytes that a name can have, in two classes: those that can be read, and the others.
struct Alphabet {
    hash: NameHash,
    /// For each byte its class and its place in it.
    places: [Option<(u8, bool)>; 256],
    plain: Vec<u8>,
    other: Vec<u8>,
}

impl Alphabet {
    fn new(hash: NameHash) -> Self {
        let mut alphabet = Alphabet { hash, places: [None; 256], plain: Vec::new(), other: Vec::new() };
        for byte in (1..=u8::MAX).filter(|&byte| byte != b'/' && alphabet_fold(hash, byte) == byte) {
            let plain = matches!(byte, b' '..=b'~');
            let class = if plain { &mut alphabet.plain } else { &mut alphabet.other };
            alphabet.places[usize::from(byte)] = u8::try_from(class.len()).ok().map(|place| (place, plain));
            class.push(byte);
        }
        alphabet
    }

    /// The byte as it is hashed and compared.
    fn fold(&self, byte: u8) -> u8 {
        alphabet_fold(self.hash, byte)
    }

    fn class(&self, plain: bool) -> &[u8] {
        if plain { &self.plain } else { &self.other }
    }

    fn place(&self, byte: u8) -> Option<(usize, &[u8])> {
        self.places[usize::from(byte)].map(|(place, plain)| (usize::from(place), self.class(plain)))
    }

    fn is_plain(&self, byte: u8) -> bool {
        self.places[usize::from(byte)].is_some_and(|place| place.1)
    }

    fn byte(&self, plain: bool, place: usize) -> u8 {
        self.class(plain).get(place).copied().unwrap_or(b'x')
    }

    /// Another byte of the same class.
    fn shifted(&self, byte: u8, random: usize) -> u8 {
        let Some((place, class)) = self.place(byte) else { return b'x' };
        class[(place + 1 + random % (class.len() - 1)) % class.len()]
    }
}

fn alphabet_fold(hash: NameHash, byte: u8) -> u8 {
    if hash == NameHash::Bytes { byte } else { crate::ondisk::name_hash::fold(byte) }
}

/// SipHash-2-4 of four words (Aumasson and Bernstein, 2012).
fn sip(key: [u64; 2], words: [u64; 4]) -> u64 {
    let mut state = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let length = (words.len() as u64 * 8) << 56;
    for word in words.into_iter().chain([length]) {
        state[3] ^= word;
        sip_round(&mut state);
        sip_round(&mut state);
        state[0] ^= word;
    }
    state[2] ^= 0xff;
    for _ in 0..4 {
        sip_round(&mut state);
    }
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

fn sip_round(state: &mut [u64; 4]) {
    let [mut a, mut b, mut c, mut d] = *state;
    a = a.wrapping_add(b);
    b = b.rotate_left(13) ^ a;
    a = a.rotate_left(32);
    c = c.wrapping_add(d);
    d = d.rotate_left(16) ^ c;
    a = a.wrapping_add(d);
    d = d.rotate_left(21) ^ a;
    c = c.wrapping_add(b);
    b = b.rotate_left(17) ^ c;
    c = c.rotate_left(32);
    *state = [a, b, c, d];
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn obscurer(hash: NameHash) -> Obscurer {
        Obscurer { key: [7, 8], entries: Alphabet::new(hash), attributes: Alphabet::new(NameHash::Bytes) }
    }

    #[test]
    fn the_hash_is_that_of_its_inventors() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let words = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908, 0x1716_1514_1312_1110, 0x1f1e_1d1c_1b1a_1918];
        assert_eq!(sip(key, words), 0x7127_512f_72f2_7cce);
    }

    proptest! {
        #[test]
        fn long_names_keep_length_and_hash(name in proptest::collection::vec(1u8.., 5..255), ci: bool, owner: u64) {
            let hash = if ci { NameHash::AsciiCi } else { NameHash::Bytes };
            let name: Vec<u8> = name.into_iter().map(|byte| if byte == b'/' { b'_' } else { byte }).collect();
            let names = obscurer(hash);
            let mut new = name.clone();
            names.entry(owner, &mut new);
            prop_assert_eq!(new.len(), name.len());
            prop_assert_eq!(hash.hash(&new), hash.hash(&name));
            prop_assert!(!hash.same(&new, &name));
            prop_assert!(!new.contains(&0) && !new.contains(&b'/'));
            let mut again = name.clone();
            names.entry(owner, &mut again);
            prop_assert_eq!(again, new);
        }

        #[test]
        fn the_open_bits_decide_nothing_else(tail: [u8; TAIL], random: u64) {
            let hash = NameHash::Bytes.hash(&tail);
            let bits = OpenBits::of(&tail);
            prop_assert_eq!(bits.bytes(hash), tail);
            let other = bits.shifted(random);
            prop_assert!(other != bits);
            prop_assert_eq!(NameHash::Bytes.hash(&other.bytes(hash)), hash);
            prop_assert_eq!(OpenBits::of(&other.bytes(hash)), other);
        }
    }

    #[test]
    fn short_names_become_others_and_stay_different() {
        let names = obscurer(NameHash::Bytes);
        let mut seen = HashSet::new();
        for first in (1..=u8::MAX).filter(|&byte| byte != b'/') {
            let mut new = [first];
            names.entry(5, &mut new);
            assert!(first == b'.' || new[0] != first && new != *b"." && seen.insert(new.to_vec()));
            for second in (1..=u8::MAX).filter(|&byte| byte != b'/' && [first, byte] != *b"..") {
                let mut new = [first, second];
                names.entry(5, &mut new);
                assert!(new != [first, second] && new != *b".." && !new.contains(&0) && !new.contains(&b'/'));
                assert!(seen.insert(new.to_vec()));
            }
        }
        for number in 0..10_000 {
            let name = format!("{number:04}").into_bytes();
            let mut new = name.clone();
            names.attribute(5, &mut new);
            assert!(new != name && seen.insert(new));
        }
    }

    #[test]
    fn names_of_many_files_stay_different() {
        let names = obscurer(NameHash::Bytes);
        let mut seen = HashSet::new();
        for number in 0..200_000 {
            for form in [format!("{number:06}"), format!("f{number:012}.dat"), format!("{:05}", number % 100_000)] {
                let mut new = form.clone().into_bytes();
                names.entry(9, &mut new);
                assert!(new != form.as_bytes());
                let again = form.len() == 5 && number > 99_999;
                assert!(again || seen.insert(new), "{form}");
            }
        }
    }

    #[test]
    fn targets_keep_their_shape() {
        let names = obscurer(NameHash::Bytes);
        let mut target = *b"/etc/../a/./secret//name";
        names.target(3, &mut target);
        let shape = |byte: &u8| if *byte == b'/' { b'/' } else { b'x' };
        assert_eq!(target.iter().map(shape).collect::<Vec<_>>(), b"/xxx/xx/x/x/xxxxxx//xxxx");
        assert_eq!((&target[5..7], target[10]), (&b".."[..], b'.'));
        assert!(!target.windows(6).any(|part| part == b"secret"));
    }

    #[test]
    fn names_without_case_stay_different_without_case() {
        let names = obscurer(NameHash::AsciiCi);
        let mut seen = HashSet::new();
        for name in ["a", "b", "Ab", "bA", "abcd", "ABCE", "Readme.txt", "readme.txu", "UPPER"] {
            let mut new = name.as_bytes().to_vec();
            names.entry(1, &mut new);
            assert!(!NameHash::AsciiCi.same(&new, name.as_bytes()));
            assert!(seen.insert(new.to_ascii_lowercase()));
        }
    }
}
