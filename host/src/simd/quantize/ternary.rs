//! Ternary codes with one comparison.

use tercet_core::number::{ExactSum, bits};
use tercet_core::quant::{Applied, QuantError};
use tercet_core::scalar;

use super::lanes::{Quantizing, VECTORS, Value};
use super::stats::{Sums, add_windows};
use crate::simd::exact::{LANE, Window};
use crate::simd::stores::{self, Ahead, Stores};

/// As [`scalar::ternary`].
#[inline(always)]
pub(in crate::simd) fn ternary<S: Quantizing, T: Value>(
    set: S,
    values: &[T],
    threshold: u32,
    sum: bool,
    codes: &mut [i8],
    stores: Stores,
    ahead: Ahead,
) -> Result<Applied, QuantError> {
    // A threshold of 0 would code zeros too, and so count the padding of a line.
    if values.len() != codes.len() || !(1..bits::INFINITE).contains(&threshold) {
        return scalar::ternary(values, threshold, sum, codes);
    }
    let mut kernel = Kernel {
        threshold,
        sum,
        ahead,
        applied: Applied::default(),
        set,
    };
    stores.lines(values, codes, &mut kernel);
    Ok(kernel.applied)
}

/// The loop over lines, and the counts of its codes.
struct Kernel<S> {
    threshold: u32,
    sum: bool,
    ahead: Ahead,
    applied: Applied,
    set: S,
}

impl<S: Quantizing, T: Value> stores::Kernel<T> for Kernel<S> {
    #[inline(always)]
    fn run(&mut self, values: &[T], codes: &mut [i8], streaming: bool) {
        let set = self.set;
        let (threshold, ahead) = (self.threshold, self.ahead);
        let part = match (self.sum, streaming) {
            (false, false) => pass::<S, T, false, false>(set, values, threshold, codes, ahead),
            (false, true) => pass::<S, T, false, true>(set, values, threshold, codes, ahead),
            (true, false) => pass::<S, T, true, false>(set, values, threshold, codes, ahead),
            (true, true) => pass::<S, T, true, true>(set, values, threshold, codes, ahead),
        };
        self.applied.merge(&part);
    }
}

/// Processes whole lines. If `STREAM`, codes are on a line boundary, and a fence must follow.
#[inline(always)]
fn pass<S: Quantizing, T: Value, const SUM: bool, const STREAM: bool>(
    set: S,
    values: &[T],
    threshold: u32,
    codes: &mut [i8],
    ahead: Ahead,
) -> Applied {
    let step_len = VECTORS * set.lanes();
    let mut coded = 0;
    let mut coded_sum = ExactSum::ZERO;
    let blocks = values.chunks(step_len * LANE);
    for (values, codes) in blocks.zip(codes.chunks_mut(step_len * LANE)) {
        let (from, most) = (set.pattern(threshold), set.pattern(i32::MAX as u32));
        let mut sums = Sums::zero(set);
        let mut largest = [set.pattern(0); 2];
        let steps = values.chunks_exact(step_len);
        for (step, codes) in steps.zip(codes.chunks_exact_mut(step_len)) {
            ahead.ask_step(step);
            let mut x = [from; VECTORS];
            for (at, x) in x.iter_mut().enumerate() {
                // SAFETY: a vector of the step.
                *x = unsafe { T::read(set, step.as_ptr().add(at * set.lanes())) };
                if SUM {
                    let kept = set.within(*x, from, most);
                    sums.add(set, at, kept);
                    largest = set.larger(largest, kept);
                }
            }
            let (signs, count) = set.signs(x, threshold);
            coded += u64::from(count);
            // SAFETY: the codes of the step; past the caches on a line's boundary, which steps keep to.
            unsafe {
                match STREAM {
                    true => set.stream_codes(signs, codes.as_mut_ptr()),
                    false => set.store_codes(signs, codes.as_mut_ptr()),
                }
            }
        }
        if SUM {
            let largest = set.largest(largest).0;
            match Window::new(threshold, largest.max(threshold)) {
                Some(window) => window.add(set.units(&sums.0, window), &mut coded_sum),
                None => add_windows::<S, T>(set, values, threshold, largest, &mut coded_sum),
            }
        }
    }
    Applied {
        coded,
        coded_sum,
        clipped: 0,
    }
}
