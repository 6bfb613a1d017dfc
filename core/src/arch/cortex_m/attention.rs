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
                    && sums.len().is_multiple_of(kernels::COLUMNS)
                    && values.len() >= sums.len() * LEN =>
            {
                narrow_values(weights, values, shift, sums);
            }
            values => PlainProducts.values(kind, weights, values, shift, sums),
        }
    }
}

#[inline(never)]
fn narrow_scores(
    (query, scale): (&[i16], f32),
    (keys, scales): (&[i8], &[f32]),
    scores: &mut [f32],
) {
    let query = kernels::Query::new(query);
    let mut keys = keys.chunks_exact(query.len().max(1));
    let mut scales = scales.iter();
    for scores in scores.chunks_mut(2) {
        let Some(first) = keys.next() else { return };
        let dots = query.dots(first, keys.next().unwrap_or(first));
        for ((score, dot), &own) in scores.iter_mut().zip(dots).zip(&mut scales) {
            *score = dot as f32 * (scale * own);
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
            *sum = sum.wrapping_add(i64::from(part) << shift);
        }
    }
}
