//! The numbers of the C library's `random`: an additive generator, so that names made from a seed are those that xfs_db
//! makes from it.

/// How far back the two numbers stand whose sum is the next one.
const LONG: usize = 31;
const SHORT: usize = 3;
/// Numbers left out after a new seed.
const WARM_UP: usize = 310;
/// Of the linear generator that fills the first numbers.
const MULTIPLIER: i64 = 16_807;
const MODULUS: i64 = 2_147_483_647;

/// A sequence of numbers.
#[derive(Clone, Debug)]
pub struct CRandom {
    last: [u32; LONG],
    at: usize,
}

impl Default for CRandom {
    fn default() -> Self {
        CRandom::seeded(1)
    }
}

impl CRandom {
    /// The sequence of a seed; 0 stands for 1.
    pub fn seeded(seed: u32) -> Self {
        let mut last = [0; LONG];
        let mut word = i64::from(seed.max(1).cast_signed());
        for (index, number) in last.iter_mut().enumerate() {
            if index > 0 {
                word = (MULTIPLIER * word) % MODULUS;
                if word < 0 {
                    word += MODULUS;
                }
            }
            *number = word_of(word);
        }
        let mut random = CRandom { last, at: SHORT };
        for _ in 0..WARM_UP {
            random.draw();
        }
        random
    }

    /// The next number, of 31 bits.
    pub fn draw(&mut self) -> u32 {
        let sum = self.last[self.at].wrapping_add(self.last[(self.at + LONG - SHORT) % LONG]);
        self.last[self.at] = sum;
        self.at = (self.at + 1) % LONG;
        sum >> 1
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the lower half is what is kept
fn word_of(value: i64) -> u32 {
    value as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_the_c_library() {
        let mut random = CRandom::default();
        assert_eq!([(); 4].map(|()| random.draw()), [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915]);
        let mut random = CRandom::seeded(42);
        assert_eq!([(); 2].map(|()| random.draw()), [71_876_166, 708_592_740]);
        let mut random = CRandom::seeded(u32::MAX);
        assert_ne!(random.draw(), random.draw());
    }
}
