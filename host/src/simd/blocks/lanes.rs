//! The operations that the loops over blocks need from an instruction set.

use half::f16;
use tercet_core::number::Element;

use crate::simd::quantize::lanes::Quantizing;

/// Operations of a detected set that blocks need beside those of quantizers, on f32 values as their 32-bit patterns.
pub(in crate::simd) trait Lanes: Quantizing {
    /// Number of lanes with yes.
    type Count: Copy;

    /// Returns a count of 0.
    fn none(self) -> Self::Count;
    /// Adds the lanes of a comparison with yes.
    fn count(self, count: Self::Count, yes: Self::Mask) -> Self::Count;
    /// Returns the count as a number.
    fn counted(self, count: Self::Count) -> u32;

    /// Returns the lane for yes, 0 for no.
    fn keep(self, yes: Self::Mask, x: Self::Words) -> Self::Words;
    /// Adds the lanes for yes, as f32.
    fn add_kept_f32(self, sum: Self::Words, yes: Self::Mask, x: Self::Words) -> Self::Words;
    /// Returns yes where both masks have yes.
    fn both(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Returns the largest lane, signed.
    fn top(self, x: Self::Words) -> i32;
    /// Returns the sum of all lanes, as f32.
    fn sum_f32(self, x: Self::Words) -> f32;
    /// Returns the sum of all lanes.
    fn sum_f64(self, x: Self::Doubles) -> f64;

    /// Prefetches memory ahead of a line that is read for the first time.
    fn ask(self, line: &[f32]);

    /// Writes the magnitudes of a vector's values in lanes with yes to the beginning of `out`, which has room for a
    /// vector; returns their number.
    #[inline(always)]
    fn append(self, yes: Self::Mask, values: &[f32], out: &mut [f32]) -> usize {
        let mut left = self.bits(yes);
        for (len, out) in out.iter_mut().enumerate() {
            if left == 0 {
                return len;
            }
            *out = values[left.trailing_zeros() as usize % values.len()].abs();
            left &= left - 1;
        }
        out.len()
    }

    /// Returns a scale in its stored form.
    #[inline(always)]
    fn narrow(self, scale: f32) -> f16 {
        f16::from_f32(scale)
    }

    /// Returns a stored scale.
    #[inline(always)]
    fn wide(self, scale: f16) -> f32 {
        Element::to_f32(scale)
    }
}

/// Vectors whose lanes select among a few floats.
#[cfg(target_arch = "x86_64")]
pub(in crate::simd) trait Choosing: Lanes {
    /// A table for selections by four bits.
    type Sixteen: Copy;

    /// Reads codes of two bits, one for each lane, into the lowest bits of the lanes; the bits above are unspecified.
    ///
    /// # Safety
    /// All of them can be read, at any alignment.
    unsafe fn twos(self, from: *const u8) -> Self::Words;
    /// Returns the products of a scale with −8 to 7.
    fn sixteen(self, scale: f32) -> Self::Sixteen;
    /// Returns the products that bytes select by four bits, from bit `shift` on.
    fn choose_of_sixteen(
        self,
        products: Self::Sixteen,
        bytes: Self::Words,
        shift: u32,
    ) -> Self::Words;
}
