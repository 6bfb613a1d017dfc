//! Keys of sums: score and label in one number, so that one maximum finds both.
//!
//! The score 2·x·c − ‖c‖² is greatest for the nearest centroid. A sum starts from −⌈‖c‖² / 2⌉, so the score is twice
//! the sum, plus 1 if ‖c‖² is odd. A key is the sum shifted up, with that bit and, below it, the reversed label in the
//! new bits: the greatest key is that of the lowest label with the greatest score.
//!
//! Keys are compared as floats, which have the order of integers if they are positive, finite and normal, because
//! processors have more units for that. An offset in every sum makes them so. If scores and labels have too many bits
//! for it, keys are [`Keys::EXACT`]: only the score, a signed integer, with labels stored beside.

/// The form of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simd) struct Keys {
    /// Bits of a label, or 0 if keys have none.
    pub(in crate::simd) bits: u32,
    /// The offset in every sum.
    pub(in crate::simd) offset: i32,
}

/// The smallest positive normal float.
const LEAST: u64 = 1 << 23;
/// Infinity.
const ABOVE: u64 = 0x7F80_0000;

impl Keys {
    /// Only scores.
    pub(in crate::simd) const EXACT: Self = Self { bits: 0, offset: 0 };

    /// Returns keys with labels for `k` centroids of `dims` coordinates, the longest with squared length `norm`, and
    /// any points, or only scores.
    pub(in crate::simd) fn new(k: usize, dims: usize, norm: i32) -> Self {
        let bits = usize::BITS - (k.max(1).next_multiple_of(16) - 1).leading_zeros();
        if bits > 20 {
            return Self::EXACT;
        }
        // |x·c| ≤ ‖x‖·‖c‖, whose square is at most 2¹⁴·d·norm, below 2⁶⁰: the square root in f64 is off by less than 1.
        let norm = u64::from(norm.unsigned_abs());
        let product = ((norm * dims as u64) << 14) as f64;
        let product = product.sqrt() as u64 + 2;
        let lowest = product + norm.div_ceil(2);
        let offset = lowest + (LEAST >> (bits + 1)).max(1);
        // Each factor is below 2³², so nothing overflows.
        if (product + offset + 1) << (bits + 1) > ABOVE {
            return Self::EXACT;
        }
        Self {
            bits,
            offset: offset as i32,
        }
    }

    /// Returns the initial sum of a centroid with squared length `norm`.
    pub(in crate::simd) const fn start(self, norm: i32) -> i32 {
        // At most 2³¹ − 2 in halves, rounded up.
        self.offset - (norm / 2 + norm % 2)
    }

    /// Returns the bits that are added to the key at a position, the highest first.
    pub(in crate::simd) const fn tag(self, position: usize, norm: i32) -> i32 {
        let odd = norm as u32 % 2;
        let reversed = self.reverse(position as u32);
        ((odd << self.bits | reversed) << (31 - self.bits)) as i32
    }

    /// Converts between labels and bits by reversing the bits; 0 if keys have no labels.
    pub(in crate::simd) const fn reverse(self, label: u32) -> u32 {
        !label & self.mask()
    }

    /// Returns the bits of labels.
    pub(in crate::simd) const fn mask(self) -> u32 {
        (1 << self.bits) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the key of a sum, as kernels compute it.
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
        // The same for any number of labels that is too large.
        assert_eq!(Keys::new(1 << 21, 1, 1), Keys::EXACT);
    }
}
