//! Ternary codes by one comparison.

use std::marker::PhantomData;

use tercet_core::number::{ExactSum, bits};
use tercet_core::quant::{Applied, QuantError};
use tercet_core::scalar;

use super::lanes::{Lanes, Value};
use super::stats::{Sums, VECTORS, add_windows};
use crate::simd::exact::{LANE, Window};
use crate::simd::stores::{self, Ahead, Stores};

/// As [`scalar::ternary`].
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
pub(in crate::simd) unsafe fn ternary<S: Lanes, T: Value>(
    values: &[T],
    threshold: u32,
    sum: bool,
    codes: &mut [i8],
    stores: Stores,
    ahead: Ahead,
) -> Result<Applied, QuantError> {
    // A threshold of 0 codes zeros too, so it would count what fills a line up.
    if values.len() != codes.len() || !(1..bits::INFINITE).contains(&threshold) {
        return scalar::ternary(values, threshold, sum, codes);
    }
    let mut kernel = Kernel::<S> {
        threshold,
        sum,
        ahead,
        applied: Applied::default(),
        set: PhantomData,
    };
    stores.lines(values, codes, &mut kernel);
    Ok(kernel.applied)
}

/// Made only where the processor runs the set.
struct Kernel<S> {
    threshold: u32,
    sum: bool,
    ahead: Ahead,
    applied: Applied,
    set: PhantomData<S>,
}

impl<S: Lanes, T: Value> stores::Kernel<T> for Kernel<S> {
    #[inline(always)]
    fn run(&mut self, values: &[T], codes: &mut [i8], streaming: bool) {
        let (threshold, ahead) = (self.threshold, self.ahead);
        // SAFETY: the set runs here; there is a code for each value, and they lie as `streaming` says.
        let part = unsafe {
            match (self.sum, streaming) {
                (false, false) => pass::<S, T, false, false>(values, threshold, codes, ahead),
                (false, true) => pass::<S, T, false, true>(values, threshold, codes, ahead),
                (true, false) => pass::<S, T, true, false>(values, threshold, codes, ahead),
                (true, true) => pass::<S, T, true, true>(values, threshold, codes, ahead),
            }
        };
        self.applied.merge(&part);
    }
}

/// Whole lines; where `STREAM`, codes on a line's boundary, and a fence to follow.
///
/// # Safety
/// The processor runs the set; there is a code for each value.
#[inline(always)]
unsafe fn pass<S: Lanes, T: Value, const SUM: bool, const STREAM: bool>(
    values: &[T],
    threshold: u32,
    codes: &mut [i8],
    ahead: Ahead,
) -> Applied {
    let step_len = VECTORS * S::WIDTH;
    let mut coded = 0;
    let mut coded_sum = ExactSum::ZERO;
    let blocks = values.chunks(step_len * LANE);
    for (values, codes) in blocks.zip(codes.chunks_mut(step_len * LANE)) {
        // SAFETY: the set runs here; every step has as many values and codes.
        unsafe {
            let (from, most) = (S::splat(threshold), S::splat(i32::MAX as u32));
            let mut sums = Sums::<S>::zero();
            let mut largest = [S::splat(0); 2];
            let steps = values.chunks_exact(step_len);
            for (step, codes) in steps.zip(codes.chunks_exact_mut(step_len)) {
                ahead.ask_step(step);
                let mut x = [from; VECTORS];
                for (at, x) in x.iter_mut().enumerate() {
                    *x = T::read::<S>(step.as_ptr().add(at * S::WIDTH));
                    if SUM {
                        let kept = S::within(*x, from, most);
                        sums.add(at, kept);
                        largest = S::larger(largest, kept);
                    }
                }
                let (signs, count) = S::signs(x, threshold);
                coded += u64::from(count);
                match STREAM {
                    true => S::stream(signs, codes.as_mut_ptr()),
                    false => S::store(signs, codes.as_mut_ptr()),
                }
            }
            if SUM {
                let largest = S::largest(largest).0;
                match Window::new(threshold, largest.max(threshold)) {
                    Some(window) => window.add(S::units(&sums.0, window), &mut coded_sum),
                    None => add_windows::<S, T>(values, threshold, largest, &mut coded_sum),
                }
            }
        }
    }
    Applied {
        coded,
        coded_sum,
        clipped: 0,
    }
}
