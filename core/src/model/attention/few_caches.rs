//! Products for some types of caches.

use super::{HeadProducts, LEN};
use crate::model::{CacheType, ModelParts, PageCodes};

/// An engine's products for the types of caches in [`ModelParts`] only.
#[derive(Clone, Copy)]
pub(super) struct FewCaches<P, const PARTS: u32>(pub(super) P);

impl<P: HeadProducts, const PARTS: u32> HeadProducts for FewCaches<P, PARTS> {
    #[inline(always)]
    fn scores(
        self,
        kind: CacheType,
        query: (&[i16], f32),
        (keys, scales, first): (PageCodes<'_>, &[f32], usize),
        out: &mut [f32],
    ) {
        let kind = ModelParts::from_bits(PARTS).cache(kind);
        let keys = ModelParts::codes(kind.wide_keys(), keys);
        self.0.scores(kind, query, (keys, scales, first), out);
    }

    #[inline(always)]
    fn largest(self, scores: &[f32]) -> (f32, bool) {
        self.0.largest(scores)
    }

    #[inline(always)]
    fn weights(
        self,
        largest: f32,
        scores: &mut [f32],
        scales: &[f32],
        weigh: &impl Fn(u32, f32) -> f32,
    ) -> (u64, f32) {
        self.0.weights(largest, scores, scales, weigh)
    }

    #[inline(always)]
    fn codes(self, weights: &[f32], exponent: i32, codes: &mut [i32; LEN]) {
        self.0.codes(weights, exponent, codes);
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
        let kind = ModelParts::from_bits(PARTS).cache(kind);
        let values = ModelParts::codes(kind.wide_values(), values);
        self.0.values(kind, weights, values, shift, sums);
    }
}
