//! The gradient of attention, of one head of keys and the heads of queries that it serves.
//!
//! With p and Σp as [`crate::model::attention`] has them, o the head's output of a row i, v, k, q codes, vs, ks, qs their
//! scales (qs by 1 / √d already), and groups of [`GROUP`] rows of a sequence:
//! 1. Values: Σᵢ min(32767, p >> 9) · c, c the codes of fl(doᵢⱼ · fl(512 / f32(Σp))) by group, head and column.
//! 2. Scores: dpₜ = fl(f32(Σⱼ cⱼ · vₜⱼ) · fl(2ᵉ · vsₜ)), c and e the codes of do by row and head; dsₜ = fl(fl(f32(p) / f32(Σp)) · fl(dpₜ − D)),
//!    D = 2ᵉ · the sum of fl(cⱼ · oⱼ) in the order of [`crate::number::lanes`]: of the same codes, so that ds sums to 0 but for roundings.
//! 3. Queries: fl(f32(Σₜ cₜ · kₜⱼ) · fl(2ᵉ · fl(1 / √d))), c and e of fl(dsₜ · ksₜ) by row and head.
//! 4. Keys: Σᵢ c · qᵢⱼ, c the codes of fl(dsₜ · qsᵢ) by group, head and t.
//!
//! Sums over rows are of integers, of all groups and heads that share a key or value, in units of 2 to the power of [`ATTENTION_FLOOR`], which is the floor
//! of 1 and 4 too; rounded to f32 once, they are the gradients of values and of rotated keys. A group is [`GROUP`] rows of a sequence from its first or a
//! multiple of as many on.

mod scratch;

pub use scratch::{Scratch, ScratchLengths};

use scratch::Room;

use super::linear::GROUP;
use super::power::{self, ATTENTION_CEILING, ATTENTION_FLOOR, FREE_FLOOR, exponent, two_to};
use super::rows::{each_row, each_row_mut};
use crate::model::attention::{Attention, HeadProducts};
use crate::model::{PAGE, PageCodes};
use crate::number::lanes::LANES;
use crate::number::root::sqrt_f32;
use crate::number::{Lanes, bits};

/// Attention that was computed, and the gradients of what it gave.
#[derive(Clone, Copy, Debug)]
pub struct AttentionGradient<'a, 'c, 'm> {
    /// The layer's attention: of whole sequences, each from position 0 on, that attend to every position before. Keys and values are int8.
    pub attention: Attention<'c, 'm>,
    /// Rows of a sequence.
    pub length: usize,
    /// What it gave: rows · heads · values of a head.
    pub out: &'a [f32],
    /// The gradients of that.
    pub d_out: &'a [f32],
}

/// The gradients of rotated queries and keys and of values, rows · heads · values of a head each.
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of queries.
    pub queries: &'a mut [f32],
    /// Of keys.
    pub keys: &'a mut [f32],
    /// Of values.
    pub values: &'a mut [f32],
}

/// A head of keys of a sequence.
#[derive(Clone, Copy)]
struct Head<'j, 'a, 'c, 'm> {
    job: &'j AttentionGradient<'a, 'c, 'm>,
    sequence: usize,
    kv: usize,
    /// Values of a head, at least 1.
    len: usize,
}

impl AttentionGradient<'_, '_, '_> {
    /// How many sequences.
    pub fn sequences(&self) -> usize {
        self.attention
            .places
            .len()
            .checked_div(self.length)
            .unwrap_or(0)
    }

    /// Writes the gradients of a head of keys of a sequence, and of the heads of queries that it serves. False, and some numbers, if a gradient is
    /// not finite or an exponent above [`ATTENTION_CEILING`], for a cache of other codes, and for a scratch that is too short.
    ///
    /// O(rows² · heads of queries · values of a head).
    #[inline(always)]
    pub fn head_by<P: HeadProducts>(
        &self,
        products: P,
        (sequence, kv): (usize, usize),
        scratch: &mut Scratch<'_>,
        gradients: &mut Gradients<'_>,
    ) -> bool {
        let len = self.attention.head_len().max(1);
        let Some(mut room) = Room::cut(scratch, self.length, len) else {
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
    /// Values of a head, said to be no 0 where the compiler sees it.
    const fn len(&self) -> usize {
        if self.len == 0 { 1 } else { self.len }
    }

    #[inline(always)]
    fn gradients<P: HeadProducts>(
        &self,
        products: P,
        room: &mut Room<'_>,
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
                within &= self.values(head, rows.clone(), room);
                within &= self.scores(head, rows.clone(), room);
                within &= self.queries(head, rows.clone(), room, gradients.queries);
                within &= self.keys(head, rows.clone(), room);
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

    /// The row of a position among all rows.
    const fn row(&self, position: usize) -> usize {
        self.sequence
            .wrapping_mul(self.job.length)
            .wrapping_add(position)
    }

    /// A head of a row of what has all heads of queries.
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

    /// Positions of the sequence's pages.
    fn padded(&self) -> usize {
        self.job.length.next_multiple_of(PAGE as usize).max(1)
    }

    /// The pages up to a position, each with its first position.
    fn pages(&self, last: usize) -> impl Iterator<Item = (usize, u32)> {
        let sequence = self.job.attention.sequences.get(self.sequence);
        (0..=last as u32 / PAGE).filter_map(move |page| {
            let first = page.wrapping_mul(PAGE);
            Some((first as usize, sequence?.page(first)?))
        })
    }

    /// The p of each position for each row of a group, and their sums.
    #[inline(always)]
    fn powers<P: HeadProducts>(
        &self,
        products: P,
        head: usize,
        rows: core::ops::Range<usize>,
        room: &mut Room<'_>,
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
    fn values(&self, head: usize, rows: core::ops::Range<usize>, room: &mut Room<'_>) -> bool {
        let len = self.len();
        let mut within = true;
        let totals = rows.clone().zip(room.totals.iter());
        // The largest magnitudes, and then exponents.
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
        let end = rows.end;
        room.partial.fill(0);
        let powers = each_row(room.powers, self.padded());
        for ((position, powers), codes) in rows.zip(powers).zip(each_row(room.codes, len)) {
            let partial = each_row_mut(room.partial, len);
            for (&p, partial) in powers.iter().zip(partial).take(position.wrapping_add(1)) {
                let p = (p as i32 >> 9).min(32_767);
                for (sum, &code) in partial.iter_mut().zip(codes) {
                    *sum = sum.wrapping_add(p.wrapping_mul(i32::from(code)));
                }
            }
        }
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
    fn scores(&self, head: usize, rows: core::ops::Range<usize>, room: &mut Room<'_>) -> bool {
        let (len, padded) = (self.len(), self.padded());
        let mut within = true;
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
            for (first, page) in self.pages(position) {
                let (values, scales) =
                    self.job
                        .attention
                        .cache
                        .values(page, self.job.attention.layer, self.kv);
                let PageCodes::Narrow(values) = values else {
                    return false;
                };
                let scores = scores.get_mut(first..).unwrap_or_default().iter_mut();
                let powers = powers.get(first..).unwrap_or_default();
                let values = each_row(values, len).zip(scales);
                let left = position.wrapping_sub(first).wrapping_add(1);
                for ((score, &p), (value, &scale)) in scores.zip(powers).zip(values).take(left) {
                    let gradient = dot(codes, value) as f32 * (unit * scale);
                    *score = (p / total) * (gradient - whole);
                }
            }
        }
        within
    }

    /// Writes the gradients of a group's queries.
    #[inline(always)]
    fn queries(
        &self,
        head: usize,
        rows: core::ops::Range<usize>,
        room: &mut Room<'_>,
        out: &mut [f32],
    ) -> bool {
        let len = self.len();
        let inverse = 1.0 / sqrt_f32(len as f32);
        let mut within = true;
        let (cache, layer) = (self.job.attention.cache, self.job.attention.layer);
        for (position, scores) in rows.zip(each_row(room.scores, self.padded())) {
            let keys = || {
                self.pages(position).flat_map(|(first, page)| {
                    let (keys, scales) = cache.keys(page, layer, self.kv);
                    let keys = match keys {
                        PageCodes::Narrow(keys) => keys,
                        PageCodes::Wide(_) => &[],
                    };
                    let scores = scores.get(first..).unwrap_or_default();
                    let left = position.wrapping_sub(first).wrapping_add(1);
                    scores
                        .iter()
                        .zip(scales)
                        .zip(each_row(keys, len))
                        .take(left)
                })
            };
            let most = keys().fold(0, |most, ((&score, &scale), _)| {
                bits::magnitude(score * scale).max(most)
            });
            let Some(exponent) = exponent(most, FREE_FLOOR) else {
                within = false;
                continue;
            };
            let factor = two_to(-exponent);
            room.by_column.fill(0);
            for ((&score, &scale), key) in keys() {
                let code = i32::from(power::code(score * scale, factor));
                for (sum, &key) in room.by_column.iter_mut().zip(key) {
                    *sum = sum.wrapping_add(code.wrapping_mul(i32::from(key)));
                }
            }
            let factor = two_to(exponent) * inverse;
            let at = self
                .row(position)
                .wrapping_mul(self.job.attention.heads)
                .wrapping_add(head);
            let out = out.get_mut(at.wrapping_mul(len)..).unwrap_or_default();
            for (out, &sum) in out.iter_mut().zip(room.by_column.iter()) {
                *out = sum as f32 * factor;
            }
        }
        within
    }

    /// Adds to the gradients of keys.
    #[inline(always)]
    fn keys(&self, head: usize, rows: core::ops::Range<usize>, room: &mut Room<'_>) -> bool {
        let (len, padded) = (self.len(), self.padded());
        let end = rows.end;
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
            let scores = scores.iter().take(position.wrapping_add(1));
            for (most, &score) in room.by_key.iter_mut().zip(scores) {
                *most = (*most).max(bits::magnitude(score * scale) as i32);
            }
        }
        for most in room.by_key.iter_mut().take(end) {
            within &= to_exponent(most);
        }
        room.partial.fill(0);
        for (position, scores) in rows.zip(each_row(room.scores, padded)) {
            let scale = scale_of(position);
            let query = self.of(attention.queries, position, head);
            let sums = each_row_mut(room.partial, len).zip(room.by_key.iter());
            for (&score, (sums, &exponent)) in
                scores.iter().zip(sums).take(position.wrapping_add(1))
            {
                let code = i32::from(power::code(score * scale, two_to(-exponent)));
                for (sum, &q) in sums.iter_mut().zip(query) {
                    *sum = sum.wrapping_add(code.wrapping_mul(i32::from(q)));
                }
            }
        }
        let sums = each_row_mut(room.keys, len).zip(each_row(room.partial, len));
        for ((sums, partial), &exponent) in sums.zip(room.by_key.iter()).take(end) {
            for (sum, &partial) in sums.iter_mut().zip(partial) {
                *sum = sum.wrapping_add(shifted(partial, exponent));
            }
        }
        within
    }
}

/// A largest magnitude's pattern becomes its group's exponent. False if it is above the ceiling.
fn to_exponent(most: &mut i32) -> bool {
    let found = exponent(*most as u32, ATTENTION_FLOOR).filter(|&found| found <= ATTENTION_CEILING);
    *most = found.unwrap_or(ATTENTION_CEILING);
    found.is_some()
}

/// A sum of a group, in units of 2 to the power of the floor.
fn shifted(sum: i32, exponent: i32) -> i64 {
    i64::from(sum) << ((exponent - ATTENTION_FLOOR) as u32 & 31)
}

/// Σ fl(code · b) in the order of [`crate::number::lanes`].
#[inline(always)]
fn dot_floats(codes: &[i8], b: &[f32]) -> f32 {
    let mut lanes = Lanes::<f32>::new();
    let mut values = [0.0; LANES];
    for (codes, b) in codes.chunks(LANES).zip(b.chunks(LANES)) {
        for (value, &code) in values.iter_mut().zip(codes) {
            *value = f32::from(code);
        }
        // Of one length.
        let values = values.get(..b.len()).unwrap_or_default();
        let _ = lanes.add_pairs(values, b, |value, b| value * b);
    }
    lanes.total()
}

/// Below 2³¹ for the longest head.
#[inline(always)]
fn dot(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).fold(0, |sum: i32, (&a, &b)| {
        sum.wrapping_add(i32::from(a).wrapping_mul(i32::from(b)))
    })
}
