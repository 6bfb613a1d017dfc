//! Extremes, and the first value that is not finite.
//!
//! A maximum does not depend on the order of values, so it needs no rule. Comparing patterns as integers also defines
//! the sign of zero, and finds NaN and infinities in the same pass.

use super::{Element, bits};

/// Returns the index of the first NaN or infinity.
pub fn first_not_finite<T: Element>(values: &[T]) -> Option<usize> {
    const BLOCK: usize = 256;
    for (number, block) in values.chunks(BLOCK).enumerate() {
        // Without an exit inside the block, the compiler can process many values at a time.
        if Extent::of(block).is_finite() {
            continue;
        }
        let within = block
            .iter()
            .position(|value| bits::magnitude(value.to_f32()) >= bits::INFINITE)?;
        return Some(number * BLOCK + within);
    }
    None
}

/// Returns the largest magnitude, or +0 if there are no values; `None` if one is NaN or infinite.
///
/// [`first_not_finite`] then returns its index.
pub fn abs_max<T: Element>(values: &[T]) -> Option<f32> {
    let extent = Extent::of(values);
    extent
        .is_finite()
        .then(|| f32::from_bits(extent.magnitude()))
}

/// The extremes of values, as integers.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    /// [`bits::ordered`] of the smallest value; `u32::MAX` if empty.
    pub(crate) low: u32,
    /// [`bits::ordered`] of the largest value; 0 if empty.
    pub(crate) high: u32,
}

impl Extent {
    pub(super) const EMPTY: Self = Self {
        low: u32::MAX,
        high: 0,
    };

    #[inline]
    pub(crate) fn of<T: Element>(values: &[T]) -> Self {
        let (low, high) = T::extremes(values);
        Self { low, high }
    }

    #[inline]
    pub(super) fn join(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    /// Returns the pattern of the largest magnitude; 0 if empty.
    #[inline]
    pub(super) fn magnitude(self) -> u32 {
        if self.low > self.high {
            return 0;
        }
        let low = bits::magnitude(bits::from_ordered(self.low));
        low.max(bits::magnitude(bits::from_ordered(self.high)))
    }

    /// Returns true if all values are finite. In this order, every NaN and infinity is outside the finite values, on
    /// one side or the other.
    #[inline]
    pub(crate) fn is_finite(self) -> bool {
        self.magnitude() < bits::INFINITE
    }
}
