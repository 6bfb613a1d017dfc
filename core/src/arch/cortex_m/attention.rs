//! The products of attention heads over an int8 cache: scores of two keys at once, and sums of values for several
//! columns.
//!
//! Proof of exactness: a query's code has 16 bits and a key's 8. [`MAX_HEAD`](crate::model::attention::MAX_HEAD) such
//! products stay below 2³¹, and so do 64 products of a weight below 2¹⁵ and a value's code.

#[cfg(not(tercet_mve))]
mod dsp;

#[cfg(not(tercet_mve))]
use self::dsp as kernels;
#[cfg(tercet_mve)]
use crate::arch::mve::attention as kernels;
use crate::model::attention::{HeadProducts, PlainProducts};
use crate::model::{CacheType, PAGE, PageCodes};

/// Positions per page.
const LEN: usize = PAGE as usize;

/// Values of a head in multiples of which kernels sum them; for others plain loops do, which take less stack.
const WIDTH: usize = if kernels::COLUMNS > 8 {
    kernels::COLUMNS
} else {
    8
};

/// Products with kernels if keys or values are int8.
#[derive(Clone, Copy)]
pub(crate) struct Products;

impl HeadProducts for Products {
    #[inline(always)]
    fn scores(
        self,
        kind: CacheType,
        (query, scale): (&[i16], f32),
        (keys, scales, first): (PageCodes<'_>, &[f32], usize),
        scores: &mut [f32],
    ) {
        match keys {
            PageCodes::Narrow(keys)
                if kind != CacheType::Fp8
                    && query.len() <= kernels::LONGEST
                    && query.len().is_multiple_of(8) =>
            {
                let keys = keys.get(first * query.len()..).unwrap_or_default();
                let scales = scales.get(first..).unwrap_or_default();
                narrow_scores((query, scale), (keys, scales), scores);
            }
            keys => PlainProducts.scores(kind, (query, scale), (keys, scales, first), scores),
        }
    }

    #[inline(always)]
    fn weights(
        self,
        largest: f32,
        scores: &mut [f32],
        scales: &[f32],
        weigh: &impl Fn(u32, f32) -> f32,
    ) -> (u64, f32) {
        weights(largest, scores, scales, weigh)
    }

    #[inline(always)]
    fn codes(self, weights: &[f32], exponent: i32, codes: &mut [i32; LEN]) {
        // 2^−exponent is a normal number.
        if cfg!(target_abi = "eabihf") && (-126..=126).contains(&exponent) {
            return float_codes(weights, exponent, codes);
        }
        PlainProducts.codes(weights, exponent, codes);
    }

    #[inline(always)]
    fn values(
        self,
        kind: CacheType,
        weights: &[i32; LEN],
        values: PageCodes<'_>,
        shift: u32,
        sums: &mut [i64],
    ) {
        match values {
            PageCodes::Narrow(values)
                if kind != CacheType::Fp8
                    && sums.len().is_multiple_of(WIDTH)
                    && values.len() >= sums.len() * LEN =>
            {
                narrow_values(weights, values, shift, sums);
            }
            values => PlainProducts.values(kind, weights, values, shift, sums),
        }
    }
}

/// In a function of its own, where the loop has all registers.
#[inline(never)]
fn weights(
    largest: f32,
    scores: &mut [f32],
    scales: &[f32],
    weigh: &impl Fn(u32, f32) -> f32,
) -> (u64, f32) {
    PlainProducts.weights(largest, scores, scales, weigh)
}

/// Codes where adding floats is an instruction. The product by a power of two is exact, or so small that its code is 0.
/// The sum has the unit 1, so it is the code rounded half to even.
#[inline(always)]
fn float_codes(weights: &[f32], exponent: i32, codes: &mut [i32; LEN]) {
    /// 1.5 · 2²³.
    const UNITS: f32 = 12_582_912.0;
    let power = f32::from_bits(((127 - exponent) as u32) << 23);
    for (code, &weight) in codes.iter_mut().zip(weights) {
        *code = (weight * power + UNITS)
            .to_bits()
            .wrapping_sub(UNITS.to_bits()) as i32;
    }
}

#[inline(never)]
fn narrow_scores(
    (query, scale): (&[i16], f32),
    (keys, scales): (&[i8], &[f32]),
    scores: &mut [f32],
) {
    let mut words = kernels::Words::default();
    let query = kernels::Query::new(query, &mut words);
    let score = |dot: i32, own: f32| dot as f32 * (scale * own);
    let mut keys = keys.chunks_exact(query.len().max(1));
    for (scores, own) in scores.chunks_mut(2).zip(scales.chunks(2)) {
        let Some(first) = keys.next() else { return };
        let [dot_a, dot_b] = query.dots(first, keys.next().unwrap_or(first));
        match (scores, own) {
            ([a, b], &[own_a, own_b]) => {
                *a = score(dot_a, own_a);
                *b = score(dot_b, own_b);
            }
            ([a, ..], &[own_a, ..]) => *a = score(dot_a, own_a),
            _ => return,
        }
    }
}

#[inline(never)]
fn narrow_values(weights: &[i32; LEN], values: &[i8], shift: u32, sums: &mut [i64]) {
    // Up to the last weight that is not 0.
    let len = weights
        .iter()
        .rposition(|&weight| weight != 0)
        .map_or(0, |last| last + 1);
    let weights = kernels::Weights::new(weights, len);
    let stride = sums.len();
    let (columns, _) = sums.as_chunks_mut::<{ kernels::COLUMNS }>();
    for (at, sums) in columns.iter_mut().enumerate() {
        let values = values.get(kernels::COLUMNS * at..).unwrap_or_default();
        let parts = weights.sums(values, stride);
        for (sum, part) in sums.iter_mut().zip(parts) {
            // A power of at most 2²⁰, by which a product is added in one instruction.
            *sum = sum.wrapping_add(i64::from(part) * i64::from(1i32 << shift));
        }
    }
}
