//! The integer types that sum coordinates.

use crate::cluster::round;

mod sealed {
    pub trait Sealed {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
}

/// An integer type that sums int8 coordinates: `i64`, or `i32` if memory is short and Σw is below 2²⁴.
pub trait Accumulator: Copy + Default + sealed::Sealed + 'static {
    /// Largest sum of weights for which no sum of coordinates exceeds the type.
    const MAX_WEIGHT: u64;

    /// Adds `coordinate · weight`. Within [`Accumulator::MAX_WEIGHT`] nothing wraps.
    fn add(&mut self, coordinate: i8, weight: u32);

    /// Returns the sum.
    fn get(self) -> i64;

    /// Returns the mean of the sum of `count` coordinates, rounded half away from zero; 0 if the count is 0. The
    /// count is at most [`Accumulator::MAX_WEIGHT`].
    fn mean(self, count: u64) -> i8;

    /// Sets the sum, which must fit.
    fn set(&mut self, sum: i64);
}

impl Accumulator for i32 {
    // 128 · (2²⁴ − 1) < 2³¹.
    const MAX_WEIGHT: u64 = (1 << 24) - 1;

    #[inline]
    fn add(&mut self, coordinate: i8, weight: u32) {
        *self = self.wrapping_add(i32::from(coordinate).wrapping_mul(weight as i32));
    }

    #[inline]
    fn get(self) -> i64 {
        i64::from(self)
    }

    #[inline]
    fn mean(self, count: u64) -> i8 {
        round::rounded_mean_i32(self, count)
    }

    #[inline]
    fn set(&mut self, sum: i64) {
        *self = sum as i32;
    }
}

impl Accumulator for i64 {
    // 128 · Σw < 2⁶³.
    const MAX_WEIGHT: u64 = (1 << 56) - 1;

    #[inline]
    fn add(&mut self, coordinate: i8, weight: u32) {
        *self += i64::from(coordinate) * i64::from(weight);
    }

    #[inline]
    fn get(self) -> i64 {
        self
    }

    #[inline]
    fn mean(self, count: u64) -> i8 {
        round::rounded_mean(self, count)
    }

    #[inline]
    fn set(&mut self, sum: i64) {
        *self = sum;
    }
}
