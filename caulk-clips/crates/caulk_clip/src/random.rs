//! Random numbers that depend on what they are for, and on nothing else.
//!
//! A counter-based generator (Philox4x32-10) gives a stream of numbers for a key and a purpose: no state is kept, and no
//! other stream is touched. The key is the first half of the SHA-256 of version, seed, path and augmentation index, so
//! that it is the same on every machine, and the draws of one operation do not move those of another.
//!
//! # Source
//! Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

use sha2::{Digest, Sha256};

/// Version of how numbers are drawn. Another one gives other clips.
const VERSION: u32 = 1;
const ROUNDS: u32 = 10;
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// What all numbers of one clip depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key([u32; 4]);

impl Key {
    /// The key of an augmentation of a video; 0 is the original. The path is the one in the manifest, so that a data set
    /// may be moved.
    ///
    /// The first 16 bytes, little-endian, of SHA-256 over `caulk clip VERSION\0SEED\0AUGMENTATION\0PATH`, numbers in decimal.
    pub fn of(path: &str, augmentation: u32, seed: u64) -> Self {
        let text = format!("caulk clip {VERSION}\0{seed}\0{augmentation}\0{path}");
        let hash = Sha256::digest(text.as_bytes());
        let word =
            |i: usize| u32::from_le_bytes([hash[4 * i], hash[4 * i + 1], hash[4 * i + 2], hash[4 * i + 3]]);
        Self([word(0), word(1), word(2), word(3)])
    }

    /// The numbers for one purpose.
    pub fn draws(self, purpose: &str) -> Draws {
        let hash = Sha256::digest(purpose.as_bytes());
        let purpose = u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]]);
        let [a, b, c, d] = self.0;
        Draws { key: [a, b], counter: [0, purpose, c, d], block: [0; 4], used: 4 }
    }
}

/// A stream of numbers.
#[derive(Debug, Clone)]
pub struct Draws {
    key: [u32; 2],
    counter: [u32; 4],
    block: [u32; 4],
    used: usize,
}

impl Draws {
    /// 32 random bits.
    pub fn bits(&mut self) -> u32 {
        if self.used == self.block.len() {
            self.block = philox(self.counter, self.key);
            self.counter[0] = self.counter[0].wrapping_add(1);
            self.used = 0;
        }
        self.used += 1;
        self.block[self.used - 1]
    }

    /// A number from 0 to `end - 1`. Takes one draw whatever `end` is; the bias is below `end / 2^32`.
    ///
    /// # Panics
    /// Never; 0 for `end` of 0.
    pub fn below(&mut self, end: u32) -> u32 {
        ((u64::from(self.bits()) * u64::from(end)) >> 32) as u32
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: i32, high: i32) -> i32 {
        let width = high.wrapping_sub(low).unsigned_abs().saturating_add(1);
        low.wrapping_add(self.below(width) as i32)
    }

    /// Heads or tails.
    pub fn coin(&mut self) -> bool {
        self.below(2) == 1
    }
}

fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let wide = |i: usize, value: u32| u64::from(MULTIPLIERS[i]) * u64::from(value);
        let (first, second) = (wide(0, counter[0]), wide(1, counter[2]));
        counter = [
            (second >> 32) as u32 ^ counter[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ counter[3] ^ key[1],
            first as u32,
        ];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_gives_the_published_answers() {
        // Known answers of the authors' library, Random123.
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
    }

    #[test]
    fn numbers_depend_on_path_augmentation_seed_and_purpose_alone() {
        let first =
            |path, augmentation, seed, purpose| Key::of(path, augmentation, seed).draws(purpose).bits();
        let base = first("a.mp4", 1, 0, "flip");
        assert_eq!(base, first("a.mp4", 1, 0, "flip"));
        for other in [
            first("b.mp4", 1, 0, "flip"),
            first("a.mp4", 2, 0, "flip"),
            first("a.mp4", 1, 1, "flip"),
            first("a.mp4", 1, 0, "crop"),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn keys_are_the_same_in_every_version() {
        let mut draws = Key::of("videos/a.mp4", 2, 0).draws("flip");
        assert_eq!([draws.bits(), draws.bits()], [2_819_947_203, 732_178_759]);
    }

    #[test]
    fn ranges_are_kept() {
        let mut draws = Key::of("a.mp4", 0, 0).draws("range");
        let drawn: Vec<i32> = (0..1000).map(|_| draws.between(-3, 3)).collect();
        assert_eq!(drawn.iter().min(), Some(&-3));
        assert_eq!(drawn.iter().max(), Some(&3));
    }
}
