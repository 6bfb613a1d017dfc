//! Attention over the cache, computed as sums of integers.
//!
//! After rotation, a query has 16-bit codes and a scale, as in [`crate::quant::activations`] without a norm. Keys and
//! values have the bits of the [cache's type](super::CacheType). For a query at position p, with qs = fl(scale · fl(1
//! / √d)):
//! 1. Scores of the [attended](super::Pattern) positions t: s = fl(f32(dot) · fl(qs · ks)), with the exact dot
//!    product of the codes. m is the largest score.
//! 2. Powers: p = ([`exp2_neg`] of u, plus 64) >> 7, with u = fl(fl(m − s) · log₂ e), at most 31.99, truncated to
//!    units of 2⁻²⁰. Σp is exact.
//! 3. Weights: a = fl(f32(p) · vs). For each page of 64 positions, from a multiple of 64 on, e is the least exponent
//!    with a ≤ 32,767 · 2ᵉ for all of them. E is the largest e. An e below E − R is raised to E − R, with R the
//!    [range](super::CacheType::range) of the type. w = a · 2⁻ᵉ rounded half to even.
//! 4. Sums: Σ over pages of (Σ w · v) · 2^(e − E + R), exact in 64 bits, times fl(2^(E − R) / f32(Σp)). The result is
//!    0 if every a is below 2⁻¹⁰⁰.
//!
//! If the scales of all attended values are 0, the result is 0 whatever the scores are, and none of these steps is done:
//! a head whose values' weights are 0 costs next to nothing.
//!
//! Nothing depends on the order of t, so pages, threads and devices may divide the work. A single exponent for all
//! positions, instead of one per page, would lose accuracy: 4·10⁻² of the result over 128 Ki positions, versus 10⁻⁴
//! with pages.

mod few_caches;

use few_caches::FewCaches;

use super::cache::{Cache, CacheType, PAGE, PageCodes, fp8_integer, part};
use super::config::Pattern;
use super::gate::steps;
use super::memory::Place;
use super::sequence::Sequence;
use crate::arch;
use crate::number::exp2_neg;
use crate::number::round::nearest_f32;
use crate::train::rows::{each_row, each_row_mut};

/// Largest number of values of a head: 512 · 32,512 · 127 fits 31 bits.
pub const MAX_HEAD: usize = 512;

/// If all weights are below this, they count as 0.
const LEAST: f32 = 1.0 / (1u128 << 100) as f32;

/// Positions per page, as a length.
const LEN: usize = PAGE as usize;

/// Input of a layer's attention: rotated queries of rows, and the cache.
#[derive(Clone, Copy, Debug)]
pub struct Attention<'c, 'm> {
    /// Keys and values.
    pub cache: &'c Cache<'m>,
    /// The sequences, which hold the page tables.
    pub sequences: &'c [Sequence<'m>],
    /// Each row's sequence and position.
    pub places: &'c [Place],
    /// Index of the layer.
    pub layer: usize,
    /// Number of query heads.
    pub heads: usize,
    /// Query codes: rows · heads · head values.
    pub queries: &'c [i16],
    /// Scales of the queries, already multiplied by 1 / √d: rows · heads.
    pub scales: &'c [f32],
    /// Codes of the queries that are rotated for sinks; empty if no pattern has sinks.
    pub sink_queries: &'c [i16],
    /// Scales of these queries.
    pub sink_scales: &'c [f32],
}

impl Attention<'_, '_> {
    /// Returns the number of values of a head.
    pub const fn head_len(&self) -> usize {
        self.cache.shape().head
    }

    /// Computes the attention of one head of one row into `out`, which has one element per value of the head. Writes
    /// NaN if a score or a weight is not finite.
    ///
    /// `scores` has one element per position of [`Sequence::attended_pages`] pages; `sums` has one element per value of
    /// the head. O(attended · head).
    pub fn head(
        &self,
        row: usize,
        head: usize,
        scores: &mut [f32],
        sums: &mut [i64],
        out: &mut [f32],
    ) {
        self.head_of::<{ u32::MAX }>(row, head, scores, sums, out);
    }

    /// Does [`Attention::head`] for the types of caches in [`ModelParts`](super::ModelParts).
    // A separate stack frame, which products do not need at the same time.
    #[inline(never)]
    pub(crate) fn head_of<const PARTS: u32>(
        &self,
        row: usize,
        head: usize,
        scores: &mut [f32],
        sums: &mut [i64],
        out: &mut [f32],
    ) {
        let products = FewCaches::<_, PARTS>(arch::Products);
        self.head_by(products, row, head, scores, sums, out);
    }

    /// Does [`Attention::head_of`] for every head of every row: `out` has rows · heads · head values.
    pub(crate) fn heads_of<const PARTS: u32>(
        &self,
        scores: &mut [f32],
        sums: &mut [i64],
        out: &mut [f32],
    ) {
        let mut out = out.chunks_exact_mut(self.head_len().max(1));
        for row in 0..self.places.len() {
            for head in 0..self.heads {
                let Some(out) = out.next() else { return };
                self.head_of::<PARTS>(row, head, scores, sums, out);
            }
        }
    }

    /// Does [`Attention::head`] with an engine's products, so that the engine compiles it for its processor.
    #[inline(always)]
    pub fn head_by<P: HeadProducts>(
        &self,
        products: P,
        row: usize,
        head: usize,
        scores: &mut [f32],
        sums: &mut [i64],
        out: &mut [f32],
    ) {
        out.fill(0.0);
        sums.fill(0);
        let shape = self.cache.shape();
        let Some(ask) = self.ask(row, head).filter(Ask::has_values) else {
            return;
        };
        let Some(largest) = ask.scores(products, scores) else {
            return out.fill(f32::NAN);
        };
        let (total, largest) = ask.weights(products, largest, scores, |power, scale| {
            power as f32 * scale
        });
        if !largest.is_finite() {
            return out.fill(f32::NAN);
        }
        if largest < LEAST {
            return;
        }
        let range = shape.kind.range() as i32;
        let most = exponent(largest);
        ask.sum(products, most, scores, sums);
        let scale = power(most - range) / total as f32;
        for (out, &sum) in out.iter_mut().zip(sums.iter()) {
            *out = nearest_f32(sum) * scale;
        }
    }

    /// Writes the p of each position, an integer of at most 2²⁴, to `powers`, which has one element per position of
    /// the attended pages. Returns their sum, or `None` if a score is not finite. The last step of
    /// [`Attention::head`] and its gradient need both. O(attended · head).
    #[inline(always)]
    pub(crate) fn powers_by<P: HeadProducts>(
        &self,
        products: P,
        (row, head): (usize, usize),
        powers: &mut [f32],
    ) -> Option<u64> {
        let ask = self.ask(row, head)?;
        let largest = ask.scores(products, powers)?;
        Some(
            ask.weights(products, largest, powers, |power, _| power as f32)
                .0,
        )
    }

    /// Returns one head of one row; `None` for a row that does not exist.
    #[inline(always)]
    fn ask(&self, row: usize, head: usize) -> Option<Ask<'_, '_, '_>> {
        let place = self.places.get(row)?;
        let group = self
            .heads
            .checked_div(self.cache.shape().heads)
            .unwrap_or(1);
        Some(Ask {
            attention: self,
            sequence: self.sequences.get(place.sequence)?,
            p: place.position,
            kv: head.checked_div(group).unwrap_or(0),
            head: row.wrapping_mul(self.heads).wrapping_add(head),
        })
    }
}

/// One head of one row.
struct Ask<'j, 'c, 'm> {
    attention: &'j Attention<'c, 'm>,
    sequence: &'j Sequence<'m>,
    p: u32,
    /// Index of the key head.
    kv: usize,
    /// Index of the head among those of all rows.
    head: usize,
}

impl Ask<'_, '_, '_> {
    /// Returns the attended pages, in the order of the cache, with the first position of each.
    fn pages(&self) -> impl Iterator<Item = (u32, u32)> {
        let sequence = self.sequence;
        sequence.attended(self.p).filter_map(move |page| {
            let first = page.wrapping_mul(PAGE);
            Some((first, sequence.page(first)?))
        })
    }

    /// Returns true if an attended value is not 0. Of a head that is not removed it is mostly the first.
    fn has_values(&self) -> bool {
        let pattern = self.sequence.pattern();
        self.pages().any(|(first, page)| {
            let (_, scales) = self
                .attention
                .cache
                .values(page, self.attention.layer, self.kv);
            let kept = self.p.saturating_sub(first).saturating_add(1) as usize;
            (first..)
                .zip(scales.iter().take(kept))
                .any(|(t, &scale)| scale != 0.0 && pattern.attends(self.p, t))
        })
    }

    /// Returns a query of this head.
    fn query<'q>(&self, codes: &'q [i16], scales: &[f32]) -> (&'q [i16], f32) {
        let len = self.attention.head_len();
        let first = self.head.wrapping_mul(len);
        let scale = scales.get(self.head).copied().unwrap_or(0.0);
        (part(codes, first, len), scale)
    }

    /// Writes a score for each position of each page, or −∞ for positions that are not attended. Returns the largest
    /// score, or `None` if one is not finite.
    #[inline(always)]
    fn scores<P: HeadProducts>(&self, products: P, scores: &mut [f32]) -> Option<f32> {
        let attention = self.attention;
        let kind = attention.cache.shape().kind;
        let pattern = self.sequence.pattern();
        let near = self.query(attention.queries, attention.scales);
        let far = match pattern.sink_position(self.p) {
            Some(_) => self.query(attention.sink_queries, attention.sink_scales),
            None => near,
        };
        let mut largest = f32::NEG_INFINITY;
        let mut finite = true;
        let mut scores = scores.chunks_exact_mut(LEN);
        for (first, page) in self.pages() {
            let (keys, scales) = attention.cache.keys(page, attention.layer, self.kv);
            let scores = scores.next()?;
            let kept = self.p.saturating_sub(first).saturating_add(1).min(PAGE) as usize;
            let sinks = pattern.sinks.saturating_sub(first).min(PAGE) as usize;
            // Most of the positions that a stride leaves out need no score.
            let step = if pattern.stride == 0 { LEN } else { 1 };
            for (at, scores) in (0..LEN).step_by(step).zip(scores.chunks_mut(step)) {
                if step == 1 && !pattern.attends(self.p, first.saturating_add(at as u32)) {
                    continue;
                }
                let kept = kept.saturating_sub(at).min(step);
                let sinks = sinks.saturating_sub(at).min(kept);
                let (far_scores, near_scores) = scores
                    .get_mut(..kept)
                    .and_then(|scores| scores.split_at_mut_checked(sinks))
                    .unwrap_or_default();
                products.scores(kind, far, (keys, scales, at), far_scores);
                let behind = at.saturating_add(sinks);
                products.scores(kind, near, (keys, scales, behind), near_scores);
            }
            let Some((scores, later)) = scores.split_at_mut_checked(kept) else {
                continue;
            };
            later.fill(f32::NEG_INFINITY);
            if *pattern != Pattern::FULL {
                for (t, score) in (first..).zip(scores.iter_mut()) {
                    if !pattern.attends(self.p, t) {
                        *score = f32::NEG_INFINITY;
                        continue;
                    }
                    finite &= score.is_finite();
                    if *score > largest {
                        largest = *score;
                    }
                }
                continue;
            }
            let (most, all_finite) = products.largest(scores);
            finite &= all_finite;
            if most > largest {
                largest = most;
            }
        }
        (finite && largest.is_finite()).then_some(largest)
    }

    /// Replaces scores by the result of `weigh` for each p and its value's scale. Returns Σp and the largest of these
    /// results.
    #[inline(always)]
    fn weights<P: HeadProducts>(
        &self,
        products: P,
        largest: f32,
        scores: &mut [f32],
        weigh: impl Fn(u32, f32) -> f32,
    ) -> (u64, f32) {
        let attention = self.attention;
        let (mut total, mut most) = (0u64, 0.0);
        let mut scores = scores.chunks_exact_mut(LEN);
        for (_, page) in self.pages() {
            let (_, scales) = attention.cache.values(page, attention.layer, self.kv);
            let Some(scores) = scores.next() else { break };
            let (own, highest) = products.weights(largest, scores, scales, &weigh);
            total = total.wrapping_add(own);
            if highest > most {
                most = highest;
            }
        }
        (total, most)
    }

    /// Adds the values of all pages, multiplied by their weights, in units of 2^(`most` − range).
    #[inline(always)]
    fn sum<P: HeadProducts>(&self, products: P, most: i32, weights: &[f32], sums: &mut [i64]) {
        let attention = self.attention;
        let kind = attention.cache.shape().kind;
        let range = kind.range() as i32;
        let mut weights = weights.chunks_exact(LEN);
        for (_, page) in self.pages() {
            let (values, _) = attention.cache.values(page, attention.layer, self.kv);
            let Some(weights) = weights.next() else {
                return;
            };
            let largest = weights.iter().fold(
                0.0,
                |most, &weight| if weight > most { weight } else { most },
            );
            let exponent = exponent(largest).max(most - range);
            let mut codes = [0; LEN];
            products.codes(weights, exponent, &mut codes);
            let shift = (exponent - most + range) as u32 & 31;
            products.values(kind, &codes, values, shift, sums);
        }
    }
}

/// The products of attention on one processor. All implementations return the same bits.
pub trait HeadProducts: Copy {
    /// Writes fl(f32(q · k) · fl(scale · ks)) for as many keys of a page as there are scores, from a given key on. q
    /// and scale belong to the query, k and ks to the key; the dot product is exact. O(keys · values of a head).
    #[inline(always)]
    fn scores(
        self,
        kind: CacheType,
        (query, scale): (&[i16], f32),
        (keys, scales, first): (PageCodes<'_>, &[f32], usize),
        scores: &mut [f32],
    ) {
        let scales = scales.get(first..).unwrap_or_default();
        for ((index, score), &own) in (first..).zip(scores).zip(scales) {
            *score = dot(kind, keys, index, query) * (scale * own);
        }
    }

    /// Returns the largest score, −∞ for none, and true if all scores are finite. O(positions).
    #[inline(always)]
    fn largest(self, scores: &[f32]) -> (f32, bool) {
        let (mut largest, mut finite) = (f32::NEG_INFINITY, true);
        for &score in scores {
            finite &= score.is_finite();
            if score > largest {
                largest = score;
            }
        }
        (largest, finite)
    }

    /// Replaces the scores of a page by the result of `weigh` for each p and its value's scale, and scores of −∞
    /// by 0. Returns Σp and the largest of the results. O(positions).
    #[inline(always)]
    fn weights(
        self,
        largest: f32,
        scores: &mut [f32],
        scales: &[f32],
        weigh: &impl Fn(u32, f32) -> f32,
    ) -> (u64, f32) {
        let (mut total, mut most) = (0u64, 0.0);
        for (score, &scale) in scores.iter_mut().zip(scales) {
            if *score == f32::NEG_INFINITY {
                *score = 0.0;
                continue;
            }
            let power = power_of(largest - *score);
            total = total.wrapping_add(u64::from(power));
            let weight = weigh(power, scale);
            if weight > most {
                most = weight;
            }
            *score = weight;
        }
        (total, most)
    }

    /// Writes the codes of a page's weights: weight · 2^−`exponent` rounded half to even, which is at most 32,767.
    /// O(positions).
    #[inline(always)]
    fn codes(self, weights: &[f32], exponent: i32, codes: &mut [i32; LEN]) {
        for (code, &weight) in codes.iter_mut().zip(weights) {
            *code = shifted(weight, exponent);
        }
    }

    /// Adds Σ w · v of a page, times 2^`shift`, to each sum. w is a weight of magnitude at most 32,767, v a value at
    /// its position. Exact. O(64 · values of a head).
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
            PageCodes::Narrow(values) if kind == CacheType::Fp8 => {
                let product = |w, v| i64::from(w) * i64::from(fp8_integer(v));
                page_sums(weights, values, product, shift, sums);
            }
            // 64 · 32,767 · 127 fits 31 bits.
            PageCodes::Narrow(values) => {
                page_sums(weights, values, |w, v| w * i32::from(v), shift, sums);
            }
            PageCodes::Wide(values) => {
                let product = |w, v| i64::from(w * i32::from(v));
                page_sums(weights, values, product, shift, sums);
            }
        }
    }

    /// Writes Σᵢ wᵢₜ · rᵢⱼ to element j of row t of `sums`, for gradients. Weights have a row of `stride` elements for
    /// each i, whole numbers of 16 bits, of which those of the rows of `sums` count. Values have a row r for each i,
    /// `apart` elements from the next, and `sums` rows of `len`. The sums fit 31 bits. O(rows · sums).
    #[inline(always)]
    fn outer<V: Copy + Into<i32>>(
        self,
        (weights, stride): (&[f32], usize),
        (values, apart): (&[V], usize),
        (sums, len): (&mut [i32], usize),
    ) {
        sums.fill(0);
        for (index, weights) in each_row(weights, stride).enumerate() {
            let row = part(values, index.wrapping_mul(apart), len);
            for (sums, &weight) in each_row_mut(sums, len).zip(weights) {
                let weight = weight as i32;
                if weight == 0 {
                    continue;
                }
                for (sum, &value) in sums.iter_mut().zip(row) {
                    *sum = sum.wrapping_add(weight.wrapping_mul(value.into()));
                }
            }
        }
    }
}

/// Products with plain loops.
#[derive(Clone, Copy, Debug)]
pub struct PlainProducts;

impl HeadProducts for PlainProducts {}

/// Adds Σ w · v of a page, shifted, to each sum: 16 columns at a time.
#[inline(always)]
fn page_sums<V: Copy, S>(
    weights: &[i32; LEN],
    values: &[V],
    product: impl Fn(i32, V) -> S,
    shift: u32,
    sums: &mut [i64],
) where
    S: Copy + Default + core::ops::AddAssign + Into<i64>,
{
    const COLUMNS: usize = 16;
    let head = sums.len();
    for (first, sums) in (0..head).step_by(COLUMNS).zip(sums.chunks_mut(COLUMNS)) {
        let mut page = [S::default(); COLUMNS];
        let mut rows = values.chunks_exact(head.max(1));
        for &weight in weights {
            let Some(row) = rows.next() else { break };
            if weight == 0 {
                continue;
            }
            let row = row.get(first..).unwrap_or_default();
            for (sum, &value) in page.iter_mut().zip(row) {
                *sum += product(weight, value);
            }
        }
        for (sum, page) in sums.iter_mut().zip(page) {
            let page: i64 = page.into();
            *sum = sum.wrapping_add(page << shift);
        }
    }
}

/// Returns the exact dot product of a query with the key at an index of a page, rounded once.
#[inline(always)]
fn dot(kind: CacheType, keys: PageCodes<'_>, index: usize, query: &[i16]) -> f32 {
    let len = query.len();
    let first = index.wrapping_mul(len);
    match keys {
        PageCodes::Narrow(keys) => {
            let pairs = query.iter().zip(part(keys, first, len));
            if kind == CacheType::Fp8 {
                let sum: i64 = pairs
                    .map(|(&q, &k)| i64::from(q) * i64::from(fp8_integer(k)))
                    .sum();
                return sum as f32;
            }
            // Below 2³¹ for the longest head.
            let sum = pairs.fold(0i32, |sum, (&q, &k)| {
                sum.wrapping_add(i32::from(q) * i32::from(k))
            });
            sum as f32
        }
        PageCodes::Wide(keys) => {
            let pairs = query.iter().zip(part(keys, first, len));
            let sum: i64 = pairs
                .map(|(&q, &k)| i64::from(i32::from(q) * i32::from(k)))
                .sum();
            sum as f32
        }
    }
}

/// Returns p of the distance between a score and the largest.
#[inline(always)]
fn power_of(below: f32) -> u32 {
    (exp2_neg(steps(below)) + 64) >> 7
}

/// Returns the least e with `a` ≤ 32,767 · 2ᵉ, for a positive normal number; for others, something less.
#[inline(always)]
fn exponent(a: f32) -> i32 {
    let bits = a.to_bits();
    // a = mantissa · 2^(field − 150), with a mantissa between 2²³ and 2²⁴; times 2⁻⁹ it is between 2¹⁴ and 2¹⁵.
    let field = (bits >> 23) as i32;
    let above = bits & 0x7F_FFFF | 0x80_0000;
    field - 150 + 9 + i32::from(above > 32_767 << 9)
}

/// Returns `a` · 2^−e, rounded half to even, for a number that is not negative and a result of at most 32,767.
#[inline(always)]
fn shifted(a: f32, exponent: i32) -> i32 {
    let bits = a.to_bits();
    let field = bits >> 23;
    let mantissa = if field == 0 {
        bits
    } else {
        bits & 0x7F_FFFF | 0x80_0000
    };
    // a is mantissa · 2^(field − 150), or subnormal.
    let shift = exponent - (field.max(1) as i32 - 150);
    let Some(shift) = u32::try_from(shift).ok().filter(|&shift| shift > 0) else {
        return mantissa as i32;
    };
    if shift > 25 {
        return 0;
    }
    let floor = mantissa >> shift;
    let rest = mantissa & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    (floor + u32::from(rest > half || (rest == half && floor & 1 == 1))) as i32
}

/// Returns 2ᵉ, for e from −149 to 127.
#[inline]
fn power(exponent: i32) -> f32 {
    match exponent.max(-149) {
        exponent @ ..-126 => f32::from_bits(1 << ((exponent + 149) as u32 & 31)),
        exponent => f32::from_bits(((exponent.min(127) + 127) as u32) << 23),
    }
}

#[cfg(test)]
mod tests;
