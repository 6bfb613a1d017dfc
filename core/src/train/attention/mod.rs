//! The gradient of attention, for one key head and the query heads that it serves.
//!
//! Let p and Σp be those of [`crate::model::attention`], o the head's output for a row i, and v, k, q codes with the
//! scales vs, ks, qs (qs already multiplied by 1 / √d). Let groups be [`GROUP`] rows of a sequence:
//! 1. Values: Σᵢ min(32767, p >> 9) · c, with c the codes of fl(doᵢⱼ · fl(512 / f32(Σp))) by group, head and column.
//! 2. Scores: dpₜ = fl(f32(Σⱼ cⱼ · vₜⱼ) · fl(2ᵉ · vsₜ)), with c and e the codes of do by row and head. dsₜ =
//!    fl(fl(f32(p) / f32(Σp)) · fl(dpₜ − D)), with D = 2ᵉ · the sum of fl(cⱼ · oⱼ) in the order of
//!    [`crate::number::lanes`]. D uses the same codes, so that ds sums to 0 except for roundings.
//! 3. Queries: fl(f32(Σₜ cₜ · kₜⱼ) · fl(2ᵉ · fl(1 / √d))), with c and e the codes of fl(dsₜ · ksₜ) by row and head.
//! 4. Keys: Σᵢ c · qᵢⱼ, with c the codes of fl(dsₜ · qsᵢ) by group, head and t.
//!
//! Sums over rows are sums of integers, over all groups and heads that share a key or value, in units of 2 to the
//! power of [`ATTENTION_FLOOR`], which is also the floor in 1 and 4. Rounded to f32 once, they are the gradients of
//! values and of rotated keys. A group is [`GROUP`] rows of a sequence, counted from its first row.

mod scratch;

pub use scratch::{Scratch, ScratchLengths};

use scratch::SplitScratch;

use super::linear::GROUP;
use super::power::{self, ATTENTION_CEILING, ATTENTION_FLOOR, FREE_FLOOR, exponent, two_to};
use super::rows::{each_row, each_row_mut};
use crate::model::attention::{Attention, HeadProducts, MAX_HEAD};
use crate::model::{PAGE, PageCodes, part};
use crate::number::lanes::LANES;
use crate::number::root::sqrt_f32;
use crate::number::{Lanes, bits};

/// A computed attention, and the gradients of its output.
#[derive(Clone, Copy, Debug)]
pub struct AttentionGradient<'a, 'c, 'm> {
    /// The layer's attention of whole sequences, each from position 0 on, that attend to every position before. Keys
    /// and values are int8.
    pub attention: Attention<'c, 'm>,
    /// Number of rows per sequence.
    pub length: usize,
    /// Output of the attention: rows · heads · head values.
    pub out: &'a [f32],
    /// Gradients of the output.
    pub d_out: &'a [f32],
}

/// The gradients of rotated queries, of rotated keys and of values, each rows · heads · head values.
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Gradients of queries.
    pub queries: &'a mut [f32],
    /// Gradients of keys.
    pub keys: &'a mut [f32],
    /// Gradients of values.
    pub values: &'a mut [f32],
}

/// A key head of a sequence.
#[derive(Clone, Copy)]
struct Head<'j, 'a, 'c, 'm> {
    job: &'j AttentionGradient<'a, 'c, 'm>,
    sequence: usize,
    kv: usize,
    /// Number of values of a head, at least 1.
    len: usize,
}

impl AttentionGradient<'_, '_, '_> {
    /// Returns the number of sequences.
    pub fn sequences(&self) -> usize {
        self.attention
            .places
            .len()
            .checked_div(self.length)
            .unwrap_or(0)
    }

    /// Writes the gradients of one key head of a sequence, and of the query heads that it serves. Returns false if a
    /// gradient is not finite or an exponent is above [`ATTENTION_CEILING`], for a cache with other codes, and for
    /// scratch that is too short; the output is unspecified then.
    ///
    /// O(rows² · query heads · head values).
    #[inline(always)]
    pub fn head_by<P: HeadProducts>(
        &self,
        products: P,
        (sequence, kv): (usize, usize),
        scratch: &mut Scratch<'_>,
        gradients: &mut Gradients<'_>,
    ) -> bool {
        let len = self.attention.head_len().max(1);
        let Some(mut room) = SplitScratch::cut(scratch, self.length, len) else {
            return false;
        };
        let head = Head {
            job: self,
            sequence,
            kv,
            len,
        };
        head.gradients(products, &mut room, gradients)
    }
}

impl Head<'_, '_, '_, '_> {
    /// Returns the number of values of a head, in a form that shows the compiler that it is not 0.
    const fn len(&self) -> usize {
        if self.len == 0 { 1 } else { self.len }
    }

    #[inline(always)]
    fn gradients<P: HeadProducts>(
        &self,
        products: P,
        room: &mut SplitScratch<'_>,
        gradients: &mut Gradients<'_>,
    ) -> bool {
        let job = self.job;
        let (heads, kv_heads) = (
            job.attention.heads,
            job.attention.cache.shape().heads.max(1),
        );
        let group = heads / kv_heads;
        let first_head = self.kv.wrapping_mul(group);
        room.keys.fill(0);
        room.values.fill(0);
        let mut within = true;
        for first in (0..job.length).step_by(GROUP) {
            let rows = first..job.length.min(first.saturating_add(GROUP));
            for head in first_head..first_head.saturating_add(group) {
                within &= self.powers(products, head, rows.clone(), room);
                within &= self.values(products, head, rows.clone(), room);
                within &= self.scores(products, head, rows.clone(), room);
                within &= self.queries(products, head, rows.clone(), room, gradients.queries);
                within &= self.keys(products, head, rows.clone(), room);
            }
        }
        let width = kv_heads.wrapping_mul(self.len());
        let at = |row: usize| {
            let row = self.row(row).wrapping_mul(width);
            row.wrapping_add(self.kv.wrapping_mul(self.len()))
        };
        let unit = two_to(ATTENTION_FLOOR);
        for (sums, out) in [
            (&*room.keys, &mut *gradients.keys),
            (&*room.values, &mut *gradients.values),
        ] {
            for (row, sums) in each_row(sums, self.len()).take(job.length).enumerate() {
                let out = out.get_mut(at(row)..).unwrap_or_default();
                for (out, &sum) in out.iter_mut().zip(sums) {
                    *out = sum as f32 * unit;
                }
            }
        }
        within
    }

    /// Returns the row of a position among all rows.
    const fn row(&self, position: usize) -> usize {
        self.sequence
            .wrapping_mul(self.job.length)
            .wrapping_add(position)
    }

    /// Returns one head of one row, from a slice with all query heads.
    fn of<'s, T>(&self, all: &'s [T], position: usize, head: usize) -> &'s [T] {
        let at = self
            .row(position)
            .wrapping_mul(self.job.attention.heads)
            .wrapping_add(head);
        let from = at.wrapping_mul(self.len());
        all.get(from..)
            .and_then(|rest| rest.get(..self.len()))
            .unwrap_or_default()
    }

    /// Returns the number of positions of the sequence's pages.
    fn padded(&self) -> usize {
        self.job.length.next_multiple_of(PAGE as usize).max(1)
    }

    /// Returns the pages up to a position, each with its first position.
    fn pages(&self, last: usize) -> impl Iterator<Item = (usize, u32)> {
        let sequence = self.job.attention.sequences.get(self.sequence);
        (0..=last as u32 / PAGE).filter_map(move |page| {
            let first = page.wrapping_mul(PAGE);
            Some((first as usize, sequence?.page(first)?))
        })
    }

    /// Computes the p of each position for each row of a group, and their sums.
    #[inline(always)]
    fn powers<P: HeadProducts>(
        &self,
        products: P,
        head: usize,
        rows: core::ops::Range<usize>,
        room: &mut SplitScratch<'_>,
    ) -> bool {
        let mut within = true;
        let mut powers = each_row_mut(room.powers, self.padded());
        for (position, total) in rows.zip(room.totals.iter_mut()) {
            let Some(powers) = powers.next() else {
                return false;
            };
            let found = self
                .job
                .attention
                .powers_by(products, (self.row(position), head), powers);
            within &= found.is_some();
            *total = found.unwrap_or(1) as f32;
        }
        within
    }

    /// Adds to the gradients of values.
    #[inline(always)]
    fn values<P: HeadProducts>(
        &self,
        products: P,
        head: usize,
        rows: core::ops::Range<usize>,
        room: &mut SplitScratch<'_>,
    ) -> bool {
        let len = self.len();
        let mut within = true;
        let totals = rows.clone().zip(room.totals.iter());
        // First the largest magnitudes, then the exponents.
        room.by_column.fill(0);
        for (position, &total) in totals.clone() {
            let factor = 512.0 / total;
            for (most, &d) in room
                .by_column
                .iter_mut()
                .zip(self.of(self.job.d_out, position, head))
            {
                *most = (*most).max(bits::magnitude(d * factor) as i32);
            }
        }
        for most in room.by_column.iter_mut() {
            within &= to_exponent(most);
        }
        for ((position, &total), codes) in totals.zip(each_row_mut(room.codes, len)) {
            let factor = 512.0 / total;
            let d_out = self.of(self.job.d_out, position, head);
            for ((code, &d), &exponent) in codes.iter_mut().zip(d_out).zip(room.by_column.iter()) {
                *code = power::code(d * factor, two_to(-exponent));
            }
        }
        let (padded, count, end) = (self.padded(), rows.len(), rows.end);
        let powers = each_row(room.powers, padded).take(count);
        for (powers, weights) in powers.zip(each_row_mut(room.scores, padded)) {
            // Powers of later positions of the page are 0.
            for (weight, &p) in weights.iter_mut().zip(part(powers, 0, end)) {
                *weight = (p as i32 >> 9).min(32_767) as f32;
            }
        }
        let weights = room.scores.get(..count.wrapping_mul(padded));
        let weights = (weights.unwrap_or_default(), padded);
        let sums = room.partial.get_mut(..end.wrapping_mul(len));
        let sums = (sums.unwrap_or_default(), len);
        products.outer(weights, (room.codes, len), sums);
        let sums = each_row_mut(room.values, len).zip(each_row(room.partial, len));
        for (sums, partial) in sums.take(end) {
            for ((sum, &partial), &exponent) in
                sums.iter_mut().zip(partial).zip(room.by_column.iter())
            {
                *sum = sum.wrapping_add(shifted(partial, exponent));
            }
        }
        within
    }

    /// Writes the gradients of scores.
    #[inline(always)]
    fn scores<P: HeadProducts>(
        &self,
        products: P,
        head: usize,
        rows: core::ops::Range<usize>,
        room: &mut SplitScratch<'_>,
    ) -> bool {
        let (len, padded) = (self.len(), self.padded());
        let mut within = true;
        let kind = self.job.attention.cache.shape().kind;
        // The codes of a row in 16 bits, as products take them.
        let mut wide = [0; MAX_HEAD];
        let powers = each_row(room.powers, padded).zip(room.totals.iter());
        let Some(codes) = room.codes.get_mut(..len) else {
            return false;
        };
        for (position, ((powers, &total), scores)) in
            rows.zip(powers.zip(each_row_mut(room.scores, padded)))
        {
            let d_out = self.of(self.job.d_out, position, head);
            let Some(unit) = power::row(d_out, FREE_FLOOR, codes) else {
                within = false;
                continue;
            };
            let whole = dot_floats(codes, self.of(self.job.out, position, head)) * unit;
            let query = wide.get_mut(..len).unwrap_or_default();
            for (to, &code) in query.iter_mut().zip(codes.iter()) {
                *to = code.into();
            }
            for (first, page) in self.pages(position) {
                let (values, scales) =
                    self.job
                        .attention
                        .cache
                        .values(page, self.job.attention.layer, self.kv);
                let PageCodes::Narrow(_) = values else {
                    return false;
                };
                let page = scores.get_mut(first..).unwrap_or_default();
                let left = position.wrapping_sub(first).wrapping_add(1);
                let Some((page, later)) = page.split_at_mut_checked(left.min(page.len())) else {
                    return false;
                };
                let page = page.get_mut(..left.min(PAGE as usize)).unwrap_or_default();
                products.scores(kind, (query, unit), (values, scales, 0), page);
                let powers = powers.get(first..).unwrap_or_default();
                for (score, &p) in page.iter_mut().zip(powers) {
                    *score = (p / total) * (*score - whole);
                }
                // Products of the group take later positions of the page too.
                if page.len() < PAGE as usize {
                    later.fill(0.0);
                }
            }
        }
        within
    }

    /// Writes the gradients of a group's queries.
    #[inline(always)]
    fn queries<P: HeadProducts>(
        &self,
        products: P,
        head: usize,
        rows: core::ops::Range<usize>,
        room: &mut SplitScratch<'_>,
        out: &mut [f32],
    ) -> bool {
        let len = self.len();
        let inverse = 1.0 / sqrt_f32(len as f32);
        let mut within = true;
        let (cache, layer) = (self.job.attention.cache, self.job.attention.layer);
        // Exponents are computed later.
        let Some(codes) = room.by_key.first_chunk_mut() else {
            return false;
        };
        for (position, scores) in rows.zip(each_row(room.scores, self.padded())) {
            let mut most = 0;
            for (first, page) in self.pages(position) {
                let (_, scales) = cache.keys(page, layer, self.kv);
                let left = position.wrapping_sub(first).wrapping_add(1);
                let scores = part(scores, first, left.min(PAGE as usize));
                for (&score, &scale) in scores.iter().zip(scales) {
                    most = bits::magnitude(score * scale).max(most);
                }
            }
            let Some(exponent) = exponent(most, FREE_FLOOR) else {
                within = false;
                continue;
            };
            let factor = two_to(-exponent);
            room.query.fill(0);
            for (first, page) in self.pages(position) {
                let (keys, scales) = cache.keys(page, layer, self.kv);
                // Later positions of the page count 0 times.
                codes.fill(0);
                let left = position.wrapping_sub(first).wrapping_add(1);
                let scores = part(scores, first, left.min(PAGE as usize));
                for ((code, &score), &scale) in codes.iter_mut().zip(scores).zip(scales) {
                    *code = power::code(score * scale, factor).into();
                }
                products.values(cache.shape().kind, codes, keys, 0, room.query);
            }
            let factor = two_to(exponent) * inverse;
            let at = self
                .row(position)
                .wrapping_mul(self.job.attention.heads)
                .wrapping_add(head);
            let out = out.get_mut(at.wrapping_mul(len)..).unwrap_or_default();
            for (out, &sum) in out.iter_mut().zip(room.query.iter()) {
                *out = sum as f32 * factor;
            }
        }
        within
    }

    /// Adds to the gradients of keys.
    #[inline(always)]
    fn keys<P: HeadProducts>(
        &self,
        products: P,
        head: usize,
        rows: core::ops::Range<usize>,
        room: &mut SplitScratch<'_>,
    ) -> bool {
        let (len, padded) = (self.len(), self.padded());
        let (count, end) = (rows.len(), rows.end);
        let attention = &self.job.attention;
        let scale_of = |position: usize| {
            let at = self
                .row(position)
                .wrapping_mul(attention.heads)
                .wrapping_add(head);
            attention.scales.get(at).copied().unwrap_or(0.0)
        };
        let mut within = true;
        room.by_key.fill(0);
        for (position, scores) in rows.clone().zip(each_row(room.scores, padded)) {
            let scale = scale_of(position);
            let scores = part(scores, 0, end);
            for (most, &score) in room.by_key.iter_mut().zip(scores) {
                *most = (*most).max(bits::magnitude(score * scale) as i32);
            }
        }
        for most in room.by_key.iter_mut().take(end) {
            within &= to_exponent(most);
        }
        for (position, scores) in rows.clone().zip(each_row_mut(room.scores, padded)) {
            let scale = scale_of(position);
            let exponents = part(room.by_key, 0, end);
            for (score, &exponent) in scores.iter_mut().zip(exponents) {
                *score = power::code(*score * scale, two_to(-exponent)).into();
            }
        }
        let weights = room.scores.get(..count.wrapping_mul(padded));
        let weights = (weights.unwrap_or_default(), padded);
        let apart = attention.heads.wrapping_mul(len);
        let first = self.row(rows.start).wrapping_mul(apart);
        let queries = attention
            .queries
            .get(first.wrapping_add(head.wrapping_mul(len))..);
        let queries = (queries.unwrap_or_default(), apart);
        let sums = room.partial.get_mut(..end.wrapping_mul(len));
        let sums = (sums.unwrap_or_default(), len);
        products.outer(weights, queries, sums);
        let sums = each_row_mut(room.keys, len).zip(each_row(room.partial, len));
        for ((sums, partial), &exponent) in sums.zip(room.by_key.iter()).take(end) {
            for (sum, &partial) in sums.iter_mut().zip(partial) {
                *sum = sum.wrapping_add(shifted(partial, exponent));
            }
        }
        within
    }
}

/// Replaces the pattern of a group's largest magnitude by its exponent. Returns false if it is above the ceiling.
fn to_exponent(most: &mut i32) -> bool {
    let found = exponent(*most as u32, ATTENTION_FLOOR).filter(|&found| found <= ATTENTION_CEILING);
    *most = found.unwrap_or(ATTENTION_CEILING);
    found.is_some()
}

/// Returns a sum of a group in units of 2 to the power of the floor.
fn shifted(sum: i32, exponent: i32) -> i64 {
    i64::from(sum) << ((exponent - ATTENTION_FLOOR) as u32 & 31)
}

/// Returns Σ fl(code · b) in the order of [`crate::number::lanes`].
#[inline(always)]
fn dot_floats(codes: &[i8], b: &[f32]) -> f32 {
    let mut lanes = Lanes::<f32>::new();
    let mut values = [0.0; LANES];
    for (codes, b) in codes.chunks(LANES).zip(b.chunks(LANES)) {
        for (value, &code) in values.iter_mut().zip(codes) {
            *value = f32::from(code);
        }
        // The lengths are equal.
        let values = values.get(..b.len()).unwrap_or_default();
        let _ = lanes.add_pairs(values, b, |value, b| value * b);
    }
    lanes.total()
}
