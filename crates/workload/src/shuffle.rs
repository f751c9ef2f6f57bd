//! Seeded orders that change from round to round and can be computed both ways, without a table.

/// For each round an order of the numbers below `size`.
///
/// A Feistel network on the next power of two (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002),
/// repeated until the number is below `size`: fewer than two times on average.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shuffle {
    size: u32,
    /// Bits of the lower half.
    low_bits: u32,
    low_mask: u32,
    high_mask: u32,
    seed: u64,
}

/// Four are enough for large sizes; small ones show a pattern with fewer than this.
const STEPS: u32 = 6;
/// 2⁶⁴ divided by the golden ratio, as in SplitMix64.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl Shuffle {
    /// Orders of `size` numbers, at least 1.
    pub fn new(size: u32, seed: u64) -> Self {
        let size = size.max(1);
        let bits = u32::BITS - (size - 1).leading_zeros();
        let mask = |bits: u32| ((1u64 << bits) - 1) as u32;
        let low_bits = bits / 2;
        Self { size, low_bits, low_mask: mask(low_bits), high_mask: mask(bits - low_bits), seed }
    }

    /// The number at a position.
    ///
    /// # Panics
    /// When the position is not below `size`: the network need not come back from there.
    #[inline]
    pub fn at(&self, round: u64, position: u32) -> u32 {
        assert!(position < self.size, "a position is below the size");
        let (key, mut x) = (self.key(round), position);
        loop {
            x = (0..STEPS).fold(x, |x, step| self.step(key, step, x));
            if x < self.size {
                return x;
            }
        }
    }

    /// The inverse of [`Self::at`].
    ///
    /// # Panics
    /// When the number is not below `size`.
    #[inline]
    pub fn position_of(&self, round: u64, number: u32) -> u32 {
        assert!(number < self.size, "a number is below the size");
        let (key, mut x) = (self.key(round), number);
        loop {
            x = (0..STEPS).rev().fold(x, |x, step| self.step(key, step, x));
            if x < self.size {
                return x;
            }
        }
    }

    /// Changes one half by what the other says, which undoes itself.
    #[inline]
    fn step(&self, key: u64, step: u32, x: u32) -> u32 {
        let (low, high) = (x & self.low_mask, x >> self.low_bits);
        if step.is_multiple_of(2) {
            x ^ (hash(key, step, high) & self.low_mask)
        } else {
            x ^ ((hash(key, step, low) & self.high_mask) << self.low_bits)
        }
    }

    fn key(&self, round: u64) -> u64 {
        mix(self.seed.wrapping_add(round.wrapping_add(1).wrapping_mul(GOLDEN)))
    }
}

#[inline]
fn hash(key: u64, step: u32, half: u32) -> u32 {
    mix(key ^ (u64::from(step) << 32 | u64::from(half)).wrapping_mul(GOLDEN)) as u32
}

/// The finaliser of SplitMix64.
#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_round_has_each_number_once(size in 1u32..700, seed: u64, round: u64) {
            let shuffle = Shuffle::new(size, seed);
            let mut order: Vec<u32> = (0..size).map(|position| shuffle.at(round, position)).collect();
            for (position, &number) in order.iter().enumerate() {
                prop_assert_eq!(shuffle.position_of(round, number) as usize, position);
            }
            order.sort_unstable();
            prop_assert_eq!(order, (0..size).collect::<Vec<_>>());
        }

        #[test]
        fn large_sizes_are_undone_too(size in 1u32.., seed: u64, round: u64, position: u32) {
            let (shuffle, position) = (Shuffle::new(size, seed), position % size);
            prop_assert_eq!(shuffle.position_of(round, shuffle.at(round, position)), position);
        }
    }

    #[test]
    fn numbers_come_everywhere_and_after_every_other() {
        let shuffle = Shuffle::new(12, 5);
        let (mut places, mut pairs) = ([[0u32; 12]; 12], [[0u32; 12]; 12]);
        for round in 0..12_000 {
            let order: Vec<usize> = (0..12).map(|position| shuffle.at(round, position) as usize).collect();
            order.iter().enumerate().for_each(|(position, &number)| places[position][number] += 1);
            order.windows(2).for_each(|pair| pairs[pair[0]][pair[1]] += 1);
        }
        // A thousand each on average; far off would be a pattern that a server could be lucky or unlucky with.
        assert!(places.iter().flatten().all(|n| (700..1_300).contains(n)), "{places:?}");
        let others = (0..12).flat_map(|a| (0..12).filter(move |b| *b != a).map(move |b| (a, b)));
        assert!(others.into_iter().all(|(a, b)| pairs[a][b] > 700), "{pairs:?}");
    }
}
