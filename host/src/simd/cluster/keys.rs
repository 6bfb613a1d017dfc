//! Keys of sums: score and label in one number, so that one maximum finds both.
//!
//! The score 2·x·c − ‖c‖² is greatest for the nearest centroid. A sum starts from −⌈‖c‖² / 2⌉, so that the score is twice the sum, and
//! 1 more where ‖c‖² is odd. A key is the sum moved up, with that bit and, below it, the label reversed in the bits that come in: the
//! greatest key is that of the lowest label of the greatest score.
//!
//! Keys are compared as floats, which order as integers do where they are positive, finite and normal: processors have more units
//! for that. An offset in every sum makes them so. Where scores and labels have too many bits for it, keys are [`Keys::EXACT`]: the
//! score alone, an integer with a sign, and labels are kept beside.

/// What keys are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simd) struct Keys {
    /// Bits of a label, or 0 where keys have none.
    pub(in crate::simd) bits: u32,
    /// What every sum is greater by than it should be.
    pub(in crate::simd) offset: i32,
}

/// The least positive float that is normal.
const LEAST: u64 = 1 << 23;
/// Infinity.
const ABOVE: u64 = 0x7F80_0000;

impl Keys {
    /// Scores alone.
    pub(in crate::simd) const EXACT: Self = Self { bits: 0, offset: 0 };

    /// Keys with labels for `k` centroids of `dims` coordinates, the longest of length² `norm`, and any points, or scores alone.
    pub(in crate::simd) fn new(k: usize, dims: usize, norm: i32) -> Self {
        let bits = usize::BITS - (k.max(1).next_multiple_of(16) - 1).leading_zeros();
        if bits > 20 {
            return Self::EXACT;
        }
        // |x·c| ≤ ‖x‖·‖c‖, whose square is at most 2¹⁴·d·norm, below 2⁶⁰: the root in f64 is less than 1 from the true one.
        let norm = u64::from(norm.unsigned_abs());
        let product = ((norm * dims as u64) << 14) as f64;
        let product = product.sqrt() as u64 + 2;
        let lowest = product + norm.div_ceil(2);
        let offset = lowest + (LEAST >> (bits + 1)).max(1);
        // Below 2³² a factor, so that nothing is lost.
        if (product + offset + 1) << (bits + 1) > ABOVE {
            return Self::EXACT;
        }
        Self {
            bits,
            offset: offset as i32,
        }
    }

    /// What the sum of a centroid of length² `norm` starts from.
    pub(in crate::simd) const fn start(self, norm: i32) -> i32 {
        // At most 2³¹ − 2 in halves, rounded up.
        self.offset - (norm / 2 + norm % 2)
    }

    /// The bits that come into the key at a position, the highest first.
    pub(in crate::simd) const fn tag(self, position: usize, norm: i32) -> i32 {
        let odd = norm as u32 % 2;
        let reversed = self.reverse(position as u32);
        ((odd << self.bits | reversed) << (31 - self.bits)) as i32
    }

    /// The labels that bits stand for are these bits reversed, and the other way round; 0 where keys have none.
    pub(in crate::simd) const fn reverse(self, label: u32) -> u32 {
        !label & self.mask()
    }

    /// The bits of labels.
    pub(in crate::simd) const fn mask(self) -> u32 {
        (1 << self.bits) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of a sum as kernels make it.
    fn key(keys: Keys, product: i64, position: usize, norm: i32) -> u32 {
        let sum = (product + i64::from(keys.start(norm))) as u32;
        let tag = keys.tag(position, norm) as u32;
        ((u64::from(sum) << 32 | u64::from(tag)) << (keys.bits + 1) >> 32) as u32
    }

    #[test]
    fn keys_are_positive_normal_floats_that_hold_score_and_label() {
        for (k, dims, norm) in [
            (1, 1, 0),
            (256, 128, 1 << 20),
            (17, 300, 77),
            (64, 512, 1 << 21),
        ] {
            let keys = Keys::new(k, dims, norm);
            assert!(keys.bits > 0, "{k} {dims} {norm}");
            let far = ((dims as f64 * 16384.0 * f64::from(norm)).sqrt()) as i64;
            for (product, position, norm) in [(far, 0, 0), (-far, k - 1, norm), (0, k / 2, norm)] {
                let key = key(keys, product, position, norm);
                assert!(f32::from_bits(key).is_normal() && (key as i32) > 0);
                assert_eq!(keys.reverse(key & keys.mask()), position as u32);
                let score = i64::from(key >> keys.bits) - 2 * i64::from(keys.offset);
                assert_eq!(score, 2 * product - i64::from(norm));
            }
        }
    }

    #[test]
    fn scores_without_room_for_labels_are_whole() {
        let keys = Keys::new(4096, 43_690, 1 << 30);
        assert_eq!(keys, Keys::EXACT);
        for (product, norm) in [(-1 << 29, (1 << 30) - 1), (5, 7), (1 << 29, 1 << 29)] {
            let score = key(keys, product, 9, norm) as i32;
            assert_eq!(i64::from(score), 2 * product - i64::from(norm));
        }
        // So is any number of labels that is too great.
        assert_eq!(Keys::new(1 << 21, 1, 1), Keys::EXACT);
    }
}
