//! Codes of an int8 or int4 grid.

use tercet_core::number::Stats;
use tercet_core::quant::{Applied, Grid, QuantError};

use super::lanes::{Quantizing, VECTORS, Value};
use super::stats::Most;
use crate::simd::stores::{self, Ahead, LINE, Stores};

/// As [`Grid::apply`].
#[inline(always)]
pub(in crate::simd) fn affine<S: Quantizing, T: Value>(
    set: S,
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
    let mut kernel = Kernel {
        multiply: (LEAST_SCALE..=1.0 / LEAST_SCALE).contains(&grid.scale),
        grid,
        ahead,
        coded: 0,
        clipped: 0,
        set,
    };
    stores.lines(values, codes, &mut kernel);
    Ok(Applied {
        coded: kernel.coded,
        clipped: kernel.clipped,
        ..Applied::default()
    })
}

/// The loop over lines, and the counts of its codes, for a grid whose scale is not 0.
struct Kernel<S> {
    grid: Grid,
    multiply: bool,
    ahead: Ahead,
    coded: u64,
    clipped: u64,
    set: S,
}

impl<S: Quantizing, T: Value> stores::Kernel<T> for Kernel<S> {
    #[inline(always)]
    fn run(&mut self, values: &[T], codes: &mut [i8], streaming: bool) {
        let set = self.set;
        let (grid, ahead) = (&self.grid, self.ahead);
        let (coded, clipped) = match (streaming, self.multiply) {
            (false, false) => pass::<S, T, false, false>(set, values, grid, codes, ahead),
            (false, true) => pass::<S, T, false, true>(set, values, grid, codes, ahead),
            (true, false) => pass::<S, T, true, false>(set, values, grid, codes, ahead),
            (true, true) => pass::<S, T, true, true>(set, values, grid, codes, ahead),
        };
        self.coded += coded;
        self.clipped += clipped;
    }
}

/// From 2⁻¹⁰⁰ to 2¹⁰⁰ a scale and its inverse are normal, so the inverse is accurate to half a unit in the last place.
const LEAST_SCALE: f32 = f32::from_bits((127 - 100) << 23);

/// If a product is farther than 2⁻¹⁴ from the middle of two integers, it rounds to the same integer as the quotient.
///
/// A division takes as long as six other instructions, or more. With q = x / scale in real numbers, the rounded
/// quotient is within 2⁻²⁴·|q| of q, and the product with the rounded inverse within 2.01 · 2⁻²⁴·|q|. If |q| is at most
/// 258, they are less than 258 · 3.01 · 2⁻²⁴ < 2⁻¹⁴ apart: both on the same side of the middle. Beyond, both are
/// clipped. (A subnormal product is 0 to within 2⁻¹²⁶, as the quotient is.) Few vectors have a value so near to the
/// middle; those are divided.
const NEAR_TIE: f32 = 0.5 - 1.0 / 16_384.0;

/// Processes whole lines with a grid whose scale is not 0; returns how many values are coded and clipped. If `STREAM`,
/// codes are on a line boundary, and a fence must follow.
#[inline(always)]
fn pass<S: Quantizing, T: Value, const STREAM: bool, const MULTIPLY: bool>(
    set: S,
    values: &[T],
    grid: &Grid,
    codes: &mut [i8],
    ahead: Ahead,
) -> (u64, u64) {
    let step_len = VECTORS * set.lanes();
    let (mut coded, mut clipped) = (0, 0);
    // Indexed by place, so that the compiler knows the length of a step.
    for at in 0..values.len() / step_len {
        let step = &values[at * step_len..][..step_len];
        let codes = &mut codes[at * step_len..][..step_len];
        ahead.ask_step(step);
        let (code, moved, cut) = codes_of::<S, T, MULTIPLY>(set, step, grid);
        coded += u64::from(moved);
        clipped += u64::from(cut);
        set.write_codes(code, codes, STREAM);
    }
    (coded, clipped)
}

/// Returns the codes of a step, how many are not the zero point, and how many are clipped.
#[inline(always)]
fn codes_of<S: Quantizing, T: Value, const MULTIPLY: bool>(
    set: S,
    step: &[T],
    grid: &Grid,
) -> (S::Codes, u32, u32) {
    let (scale, inverse) = (grid.scale.to_bits(), (1.0 / grid.scale).to_bits());
    let (scale, inverse) = (set.pattern(scale), set.pattern(inverse));
    let near_tie = set.pattern(NEAR_TIE.to_bits());
    let mut steps = [near_tie; VECTORS];
    let mut farthest = [set.pattern(0); 2];
    for (at, steps) in steps.iter_mut().enumerate() {
        let x = set.values(&step[at * set.lanes()..]);
        if MULTIPLY {
            let x = set.multiply_f32(x, inverse);
            *steps = set.round(x, grid);
            // Magnitudes have the order of their patterns.
            farthest = set.larger(farthest, set.off(x));
        } else {
            *steps = set.round(set.divide_f32(x, scale), grid);
        }
    }
    if MULTIPLY && set.any_exceeds(farthest[1], near_tie) {
        for (at, steps) in steps.iter_mut().enumerate() {
            let x = set.values(&step[at * set.lanes()..]);
            *steps = set.round(set.divide_f32(x, scale), grid);
        }
    }
    set.codes(steps, grid)
}

/// Does [`affine`] for a group, and [`Stats::extremes_of`] for the next one, which is loaded from memory while the
/// codes are computed: together they take as long as the longer of the two. `None`, with nothing written, unless the
/// groups have equal length and the grid's inverse is a normal number.
#[inline(always)]
pub(in crate::simd) fn affine_and_next<S: Quantizing, T: Value>(
    set: S,
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
    let step_len = VECTORS * set.lanes();
    let mut applied = Applied::default();
    let whole = len / step_len * step_len;
    let steps = values.chunks_exact(step_len);
    let steps = steps.zip(next.chunks_exact(step_len));
    let (steps_codes, rest_codes) = codes.split_at_mut(whole);
    let mut most = Most::new(set);
    for ((step, next), codes) in steps.zip(steps_codes.chunks_exact_mut(step_len)) {
        ahead.ask_step(next);
        most.take(set, next);
        let (code, moved, cut) = codes_of::<S, T, true>(set, step, &grid);
        applied.coded += u64::from(moved);
        applied.clipped += u64::from(cut);
        set.write_codes(code, codes, false);
    }
    if let (false, Some(&last)) = (rest_codes.is_empty(), next.last()) {
        // Zeros do not count, and repeating an existing value does not change the extremes.
        let (mut step, mut after) = ([T::default(); LINE], [last; LINE]);
        step[..len - whole].copy_from_slice(&values[whole..]);
        after[..len - whole].copy_from_slice(&next[whole..]);
        most.take(set, &after);
        let (code, moved, cut) = codes_of::<S, T, true>(set, &step, &grid);
        applied.coded += u64::from(moved);
        applied.clipped += u64::from(cut);
        let mut line = [0; LINE];
        set.write_codes(code, &mut line, false);
        rest_codes.copy_from_slice(&line[..rest_codes.len()]);
    }
    Some((applied, most.stats(set, next)))
}
