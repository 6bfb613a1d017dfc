//! Attention over the cache as sums of integers.
//!
//! After rotation a query has 16 bits and a scale, as [`crate::quant::activations`] has them without a norm; keys and
//! values have the bits of the [cache's type](super::CacheType). For a query at position p, with
//! qs = fl(scale · fl(1 / √d)):
//! 1. Scores of the t that are [attended to](super::Pattern): s = fl(f32(dot) · fl(qs · ks)), the dot product of codes
//!    exact. m is the largest.
//! 2. Powers: p = ([`exp2_neg`] of u, and 64) >> 7, u = fl(fl(m − s) · log₂ e), at most 31.99, in units of 2⁻²⁰, cut off. Σp is exact.
//! 3. Weights: a = fl(f32(p) · vs). Of 64 positions from a multiple of 64 on, e is the least with a ≤ 32,767 · 2ᵉ for
//!    all; E the largest e; an e below E − R is raised to that, R the [range](super::CacheType::range) of the type.
//!    w = half even of a · 2⁻ᵉ.
//! 4. Sums: Σ over pages of (Σ w · v) · 2^(e − E + R), exact in 64 bits, times fl(2^(E − R) / f32(Σp)). 0 where every a is below 2⁻¹⁰⁰.
//!
//! Nothing depends on the order of t, so pages, threads and devices may share it out. One exponent for all positions,
//! in place of one a page, would lose: 4·10⁻² of the result over 128 Ki positions, where pages stay at 10⁻⁴.

use super::cache::{Cache, CacheType, PAGE, PageCodes, fp8_integer, part};
use super::gate::steps;
use super::memory::Place;
use super::sequence::Sequence;
use crate::arch;
use crate::number::exp2_neg;
use crate::number::round::nearest_f32;

/// The most values of a head: 512 · 32,512 · 127 fits 31 bits.
pub const MAX_HEAD: usize = 512;

/// Weights that are all below this count as 0.
const LEAST: f32 = 1.0 / (1u128 << 100) as f32;

/// Positions of a page, as a length.
const LEN: usize = PAGE as usize;

/// What the attention of a layer is of: rotated queries of rows, and the cache.
#[derive(Clone, Copy, Debug)]
pub struct Attention<'c, 'm> {
    /// Keys and values.
    pub cache: &'c Cache<'m>,
    /// Where they lie.
    pub sequences: &'c [Sequence<'m>],
    /// Each row's sequence and position.
    pub places: &'c [Place],
    /// The layer.
    pub layer: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Codes: rows · heads · values of a head.
    pub queries: &'c [i16],
    /// Their scales, by 1 / √d already: rows · heads.
    pub scales: &'c [f32],
    /// The same of queries that are rotated for sinks; empty where no pattern has any.
    pub sink_queries: &'c [i16],
    /// Their scales.
    pub sink_scales: &'c [f32],
}

impl Attention<'_, '_> {
    /// Values of a head.
    pub const fn head_len(&self) -> usize {
        self.cache.shape().head
    }

    /// What a head of a row attends to, into `out`, a value for each of the head; NaN where a score or a weight is not finite.
    ///
    /// `scores` has an element for each position of the pages that [`Sequence::pages`] gives with a chunk of 1, `sums`
    /// one for each of the head. O(attended · head).
    // A frame of its own, which products do not need at the same time.
    #[inline(never)]
    pub fn head(
        &self,
        row: usize,
        head: usize,
        scores: &mut [f32],
        sums: &mut [i64],
        out: &mut [f32],
    ) {
        self.head_by(arch::Products, row, head, scores, sums, out);
    }

    /// [`Attention::head`] by an engine's products, for it to compile for its processor.
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
        let Some(ask) = self.ask(row, head) else {
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

    /// Writes the p of each position, an integer of at most 2²⁴, into `powers`, which has an element for each position of
    /// the attended pages, and returns their sum; `None` if a score is not finite. The last step of [`Attention::head`] needs both, and
    /// so does its gradient. O(attended · head).
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

    /// A head of a row; `None` for a row that is not there.
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
    /// The head of keys.
    kv: usize,
    /// The head among those of all rows.
    head: usize,
}

impl Ask<'_, '_, '_> {
    /// The pages that are attended to, as they lie in the cache, with the first position of each.
    fn pages(&self) -> impl Iterator<Item = (u32, u32)> {
        let sequence = self.sequence;
        sequence.attended(self.p).filter_map(move |page| {
            let first = page.wrapping_mul(PAGE);
            Some((first, sequence.page(first)?))
        })
    }

    /// A query of this head.
    fn query<'q>(&self, codes: &'q [i16], scales: &[f32]) -> (&'q [i16], f32) {
        let len = self.attention.head_len();
        let first = self.head.wrapping_mul(len);
        let scale = scales.get(self.head).copied().unwrap_or(0.0);
        (part(codes, first, len), scale)
    }

    /// Writes a score for each position of each page, −∞ for those that are not attended to, and gives the largest;
    /// `None` where one is not finite.
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
            // Of the positions that a stride leaves out most have no use for a score.
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
            for (t, score) in (first..).zip(scores) {
                if t > self.p || !pattern.attends(self.p, t) {
                    *score = f32::NEG_INFINITY;
                    continue;
                }
                finite &= score.is_finite();
                if *score > largest {
                    largest = *score;
                }
            }
        }
        (finite && largest.is_finite()).then_some(largest)
    }

    /// Turns scores into what `weigh` makes of each p and its value's scale, and gives Σp and the largest of these.
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

    /// Adds the values of all pages, by their weights, in units of 2^(`most` − range).
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

/// How a processor multiplies what attention is made of; all give the same bits.
pub trait HeadProducts: Copy {
    /// Writes fl(f32(q · k) · fl(scale · ks)) for as many keys of a page as there are scores, from one of them on: q and scale are the query's, k and ks
    /// a key's, their product exact. O(keys · values of a head).
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

    /// Turns the scores of a page into what `weigh` makes of each p and its value's scale, and those of −∞ into 0; gives Σp and the largest of what was
    /// made. O(positions).
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

    /// The codes of a page's weights: half even of each · 2^−`exponent`, which is at most 32,767. O(positions).
    #[inline(always)]
    fn codes(self, weights: &[f32], exponent: i32, codes: &mut [i32; LEN]) {
        for (code, &weight) in codes.iter_mut().zip(weights) {
            *code = shifted(weight, exponent);
        }
    }

    /// Adds Σ w · v of a page, times 2^`shift`, to each sum: w one of the weights, at most 32,767, v a value of its position. Exact.
    /// O(64 · values of a head).
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
}

/// By plain loops.
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

/// The exact dot product of a query with the key at an index of a page, rounded once.
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

/// p of what a score lies below the largest.
#[inline(always)]
fn power_of(below: f32) -> u32 {
    (exp2_neg(steps(below)) + 64) >> 7
}

/// The least e with `a` ≤ 32,767 · 2ᵉ, of a positive normal number; of others something less.
#[inline(always)]
fn exponent(a: f32) -> i32 {
    let bits = a.to_bits();
    // a = mantissa · 2^(field − 150), the mantissa within 2²³ and 2²⁴; 2⁻⁹ of it is within 2¹⁴ and 2¹⁵.
    let field = (bits >> 23) as i32;
    let above = bits & 0x7F_FFFF | 0x80_0000;
    field - 150 + 9 + i32::from(above > 32_767 << 9)
}

/// `a` · 2^−e, rounded half to even, of a number that is not negative, with a result of at most 32,767.
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

/// 2ᵉ, from −149 to 127.
#[inline]
fn power(exponent: i32) -> f32 {
    match exponent.max(-149) {
        exponent @ ..-126 => f32::from_bits(1 << ((exponent + 149) as u32 & 31)),
        exponent => f32::from_bits(((exponent.min(127) + 127) as u32) << 23),
    }
}

#[cfg(test)]
mod tests;
