//! What the loops over blocks ask of an instruction set.

use half::f16;
use tercet_core::number::Element;

use crate::simd::quantize::lanes::Quantizing;

/// What blocks ask of a set that runs here beside what quantizers do: f32 values, taken as their 32-bit patterns.
pub(in crate::simd) trait Lanes: Quantizing {
    /// How often lanes said yes.
    type Count: Copy;

    /// No lane so far.
    fn none(self) -> Self::Count;
    /// Adds the lanes of a comparison that say yes.
    fn count(self, count: Self::Count, yes: Self::Mask) -> Self::Count;
    /// How many they are.
    fn counted(self, count: Self::Count) -> u32;

    /// The lane for yes, 0 for no.
    fn keep(self, yes: Self::Mask, x: Self::Words) -> Self::Words;
    /// Adds the lanes for yes, as f32.
    fn add_kept_f32(self, sum: Self::Words, yes: Self::Mask, x: Self::Words) -> Self::Words;
    /// Yes where both say so.
    fn both(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// The largest lane, with signs.
    fn top(self, x: Self::Words) -> i32;
    /// The sum of all lanes, as f32.
    fn sum_f32(self, x: Self::Words) -> f32;
    /// The sum of all lanes.
    fn sum_f64(self, x: Self::Doubles) -> f64;

    /// Asks for memory that lies ahead of a line which is read for the first time.
    fn ask(self, line: &[f32]);

    /// Writes the magnitudes of a vector's values, where the lanes say yes, to the head of `out`, which has room for a vector; says how many
    /// they are.
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

    /// A scale as it is stored.
    #[inline(always)]
    fn narrow(self, scale: f32) -> f16 {
        f16::from_f32(scale)
    }

    /// A stored scale.
    #[inline(always)]
    fn wide(self, scale: f16) -> f32 {
        Element::to_f32(scale)
    }
}

/// Vectors whose lanes choose among a few floats.
#[cfg(target_arch = "x86_64")]
pub(in crate::simd) trait Choosing: Lanes {
    /// What four bits choose from.
    type Sixteen: Copy;

    /// Reads codes of two bits, one for each lane, into the lowest bits of the lanes; what lies above those is not said.
    ///
    /// # Safety
    /// All of them can be read, at any alignment.
    unsafe fn twos(self, from: *const u8) -> Self::Words;
    /// The products of a scale with −8 to 7.
    fn sixteen(self, scale: f32) -> Self::Sixteen;
    /// That of the products which bytes choose by four bits, from bit `shift` on.
    fn choose_of_sixteen(
        self,
        products: Self::Sixteen,
        bytes: Self::Words,
        shift: u32,
    ) -> Self::Words;
}
