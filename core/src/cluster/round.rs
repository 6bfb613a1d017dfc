//! Rounding of sums to centroids.

/// Returns `sum / count` rounded to the nearest integer, halves away from zero; 0 if the count is 0.
///
/// The mean of int8 values is an int8 value, so no sum of them is clipped.
#[inline]
pub(crate) const fn rounded_mean(sum: i64, count: u64) -> i8 {
    let magnitude = sum.unsigned_abs();
    // Most counts fit 32 bits, and small machines divide 32-bit numbers in a quarter of the time.
    let mean = if magnitude <= u32::MAX as u64 / 2 && count <= u32::MAX as u64 / 2 {
        divided(magnitude as u32, count as u32) as u64
    } else {
        match magnitude.checked_div(count) {
            // The remainder is below the count, and it is at least half of it if its double is. This compares without
            // doubling.
            Some(whole) => {
                let rest = magnitude - whole * count;
                whole + (rest >= count - rest) as u64
            }
            None => 0,
        }
    };
    signed(mean as u32, sum < 0)
}

/// [`rounded_mean`] without 64-bit divisions, whose code takes as much of a small image as the whole step; 0 for a
/// count of 2³² or more.
#[inline]
pub(crate) const fn rounded_mean_i32(sum: i32, count: u64) -> i8 {
    if count > u32::MAX as u64 {
        return 0;
    }
    signed(divided(sum.unsigned_abs(), count as u32), sum < 0)
}

/// Returns `magnitude / count` rounded half up; 0 if the count is 0. `magnitude` is at most 2³¹, so nothing wraps.
#[inline]
const fn divided(magnitude: u32, count: u32) -> u32 {
    match (magnitude + count / 2).checked_div(count) {
        Some(mean) => mean,
        None => 0,
    }
}

/// The magnitude is at most 128, and 128 only below zero: `as` wraps it to −128.
#[inline]
const fn signed(mean: u32, negative: bool) -> i8 {
    (if negative { mean.wrapping_neg() } else { mean }) as i8
}

/// Converts a sum of `count` values to a sum of `count / 2` values, rounded half away from zero, so that the mean
/// stays the same.
///
/// Halving both an odd count and its sum would move the mean, even out of int8's range. The new sum stays within 128
/// · (count / 2), as the old one did within 128 · count. `count` is at most 2²⁸, so products fit 63 bits.
#[inline]
pub(crate) const fn halved(sum: i64, count: u64) -> i64 {
    let (half, count) = ((count / 2) as i64, count as i64);
    if count <= 0 {
        return 0;
    }
    let scaled = sum.wrapping_mul(half);
    let magnitude = (scaled.unsigned_abs() + count as u64 / 2) / count as u64;
    if scaled < 0 {
        -(magnitude as i64)
    } else {
        magnitude as i64
    }
}
