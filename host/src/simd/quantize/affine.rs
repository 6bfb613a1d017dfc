//! Codes of an int8 or int4 grid.

use std::marker::PhantomData;

use tercet_core::number::Stats;
use tercet_core::quant::{Applied, Grid, QuantError};

use super::lanes::{Lanes, Value};
use super::stats::{Most, VECTORS};
use crate::simd::stores::{self, Ahead, LINE, Stores};

/// As [`Grid::apply`].
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
pub(in crate::simd) unsafe fn affine<S: Lanes, T: Value>(
    values: &[T],
    grid: &Grid,
    codes: &mut [i8],
    stores: Stores,
    ahead: Ahead,
) -> Result<Applied, QuantError> {
    let grid = grid.checked()?;
    if values.len() != codes.len() || grid.scale == 0.0 {
        return grid.apply(values, codes);
    }
    let mut kernel = Kernel::<S> {
        multiply: (LEAST_SCALE..=1.0 / LEAST_SCALE).contains(&grid.scale),
        grid,
        ahead,
        coded: 0,
        clipped: 0,
        set: PhantomData,
    };
    stores.lines(values, codes, &mut kernel);
    Ok(Applied {
        coded: kernel.coded,
        clipped: kernel.clipped,
        ..Applied::default()
    })
}

/// Made only where the processor runs the set, for a grid whose scale is not 0.
struct Kernel<S> {
    grid: Grid,
    multiply: bool,
    ahead: Ahead,
    coded: u64,
    clipped: u64,
    set: PhantomData<S>,
}

impl<S: Lanes, T: Value> stores::Kernel<T> for Kernel<S> {
    #[inline(always)]
    fn run(&mut self, values: &[T], codes: &mut [i8], streaming: bool) {
        let (grid, ahead) = (&self.grid, self.ahead);
        // SAFETY: the set runs here; there is a code for each value, and they lie as `streaming` says.
        let (coded, clipped) = unsafe {
            match (streaming, self.multiply) {
                (false, false) => pass::<S, T, false, false>(values, grid, codes, ahead),
                (false, true) => pass::<S, T, false, true>(values, grid, codes, ahead),
                (true, false) => pass::<S, T, true, false>(values, grid, codes, ahead),
                (true, true) => pass::<S, T, true, true>(values, grid, codes, ahead),
            }
        };
        self.coded += coded;
        self.clipped += clipped;
    }
}

/// From 2⁻¹⁰⁰ to 2¹⁰⁰ a scale and its inverse are normal, so the inverse is right to half a place.
const LEAST_SCALE: f32 = f32::from_bits((127 - 100) << 23);

/// Where a product is farther than 2⁻¹⁴ from the middle of two integers, it rounds to the integer that the quotient rounds to.
///
/// A division takes as long as six other instructions, or more. With q = x / scale in real numbers, the rounded quotient is
/// within 2⁻²⁴·|q| of q, and the product with the rounded inverse within 2.01 · 2⁻²⁴·|q|. Where |q| is at most 258, they are
/// less than 258 · 3.01 · 2⁻²⁴ < 2⁻¹⁴ apart: both on one side of the middle. Beyond, both are clipped. (Where a product is
/// subnormal it is 0 to within 2⁻¹²⁶, as the quotient is.) Few vectors have a value that near; those are divided.
const NEAR_TIE: f32 = 0.5 - 1.0 / 16_384.0;

/// Whole lines of a grid whose scale is not 0, and how many values are coded and clipped; where `STREAM`, codes on a line's
/// boundary, and a fence to follow.
///
/// # Safety
/// The processor runs the set; there is a code for each value.
#[inline(always)]
unsafe fn pass<S: Lanes, T: Value, const STREAM: bool, const MULTIPLY: bool>(
    values: &[T],
    grid: &Grid,
    codes: &mut [i8],
    ahead: Ahead,
) -> (u64, u64) {
    let step_len = VECTORS * S::WIDTH;
    let (mut coded, mut clipped) = (0, 0);
    let steps = values.chunks_exact(step_len);
    for (step, codes) in steps.zip(codes.chunks_exact_mut(step_len)) {
        ahead.ask_step(step);
        // SAFETY: the set runs here; every step has as many values and codes.
        unsafe {
            let (code, moved, cut) = codes_of::<S, T, MULTIPLY>(step, grid);
            coded += u64::from(moved);
            clipped += u64::from(cut);
            match STREAM {
                true => S::stream(code, codes.as_mut_ptr()),
                false => S::store(code, codes.as_mut_ptr()),
            }
        }
    }
    (coded, clipped)
}

/// The codes of a step, how many are not the zero point, and how many are clipped.
///
/// # Safety
/// The processor runs the set; the step is whole.
#[inline(always)]
unsafe fn codes_of<S: Lanes, T: Value, const MULTIPLY: bool>(
    step: &[T],
    grid: &Grid,
) -> (S::Codes, u32, u32) {
    // SAFETY: the set runs here; what does not change from step to step is moved out of the loop.
    unsafe {
        let (scale, inverse) = (grid.scale.to_bits(), (1.0 / grid.scale).to_bits());
        let (scale, inverse) = (S::splat(scale), S::splat(inverse));
        let near_tie = S::splat(NEAR_TIE.to_bits());
        let mut steps = [near_tie; VECTORS];
        let mut farthest = [S::splat(0); 2];
        for (at, steps) in steps.iter_mut().enumerate() {
            let x = T::read::<S>(step.as_ptr().add(at * S::WIDTH));
            if MULTIPLY {
                let x = S::multiply(x, inverse);
                *steps = S::round(x, grid);
                // Magnitudes order as their patterns.
                farthest = S::larger(farthest, S::off(x));
            } else {
                *steps = S::round(S::divide(x, scale), grid);
            }
        }
        if MULTIPLY && S::exceeds(farthest[1], near_tie) {
            for (at, steps) in steps.iter_mut().enumerate() {
                let x = T::read::<S>(step.as_ptr().add(at * S::WIDTH));
                *steps = S::round(S::divide(x, scale), grid);
            }
        }
        S::codes(steps, grid)
    }
}

/// [`affine`] of a group, and [`Stats::extremes_of`] the next one, which comes from memory while the codes are made: both take
/// as long as the longer of the two. `None`, and nothing written, unless the groups are of one length and the grid's inverse is
/// a normal number.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
pub(in crate::simd) unsafe fn affine_and_next<S: Lanes, T: Value>(
    values: &[T],
    grid: &Grid,
    codes: &mut [i8],
    next: &[T],
    ahead: Ahead,
) -> Option<(Applied, Stats)> {
    let grid = grid.checked().ok()?;
    let len = values.len();
    if len != codes.len()
        || len != next.len()
        || !(LEAST_SCALE..=1.0 / LEAST_SCALE).contains(&grid.scale)
    {
        return None;
    }
    let step_len = VECTORS * S::WIDTH;
    let mut applied = Applied::default();
    let whole = len / step_len * step_len;
    let steps = values.chunks_exact(step_len);
    let steps = steps.zip(next.chunks_exact(step_len));
    let (steps_codes, rest_codes) = codes.split_at_mut(whole);
    // SAFETY: the set runs here; every step has as many values and codes.
    unsafe {
        let mut most = Most::<S>::new();
        for ((step, next), codes) in steps.zip(steps_codes.chunks_exact_mut(step_len)) {
            ahead.ask_step(next);
            most.take(next);
            let (code, moved, cut) = codes_of::<S, T, true>(step, &grid);
            applied.coded += u64::from(moved);
            applied.clipped += u64::from(cut);
            S::store(code, codes.as_mut_ptr());
        }
        if let (false, Some(&last)) = (rest_codes.is_empty(), next.last()) {
            // Zeros count as nothing, and no extreme moves for a value that is there.
            let (mut step, mut after) = ([T::default(); LINE], [last; LINE]);
            step[..len - whole].copy_from_slice(&values[whole..]);
            after[..len - whole].copy_from_slice(&next[whole..]);
            most.take(&after);
            let (code, moved, cut) = codes_of::<S, T, true>(&step, &grid);
            applied.coded += u64::from(moved);
            applied.clipped += u64::from(cut);
            let mut line = [0; LINE];
            S::store(code, line.as_mut_ptr());
            rest_codes.copy_from_slice(&line[..rest_codes.len()]);
        }
        Some((applied, most.stats(next)))
    }
}
