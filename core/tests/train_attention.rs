//! The gradients of attention against those of softmax in f64, over the same codes of queries, keys and values.

use crate::train_steps::{apart, normal};
use tercet_core::model::attention::{Attention, PlainProducts};
use tercet_core::model::{
    Cache, CacheShape, CacheType, Codes, PAGE, PageCodes, Pattern, Place, Sequence,
};
use tercet_core::number::Random;
use tercet_core::quant::activations::{self, Activations};
use tercet_core::train::{
    AttentionGradient, AttentionGradients, AttentionLengths, AttentionScratch,
};

pub(crate) const HEADS: usize = 4;
pub(crate) const KV: usize = 2;
pub(crate) const LEN: usize = 24;

/// Queries, keys and values of sequences: codes and scales.
pub(crate) struct Case {
    pub(crate) length: usize,
    pub(crate) sequences: usize,
    pub(crate) queries: Vec<i16>,
    /// By 1 / √d already.
    pub(crate) query_scales: Vec<f32>,
    /// Rows · heads · values of a head.
    pub(crate) keys: Vec<i8>,
    pub(crate) key_scales: Vec<f32>,
    pub(crate) values: Vec<i8>,
    pub(crate) value_scales: Vec<f32>,
    pub(crate) d_out: Vec<f32>,
}

impl Case {
    fn new(length: usize, sequences: usize) -> Self {
        let mut random = Random::new(length as u64);
        let rows = length * sequences;
        let (mut queries, mut query_scales) =
            (vec![0; rows * HEADS * LEN], vec![0.0; rows * HEADS]);
        let x = normal(&mut random, queries.len(), 1.5);
        activations::quantize(&x, None, Activations::A16(&mut queries), &mut query_scales).unwrap();
        let inverse = 1.0 / (LEN as f32).sqrt();
        query_scales.iter_mut().for_each(|scale| *scale *= inverse);
        let mut narrow = || {
            let (mut codes, mut scales) = (vec![0; rows * KV * LEN], vec![0.0; rows * KV]);
            let x = normal(&mut random, codes.len(), 1.0);
            activations::quantize(&x, None, Activations::A8(&mut codes), &mut scales).unwrap();
            (codes, scales)
        };
        let ((keys, key_scales), (values, value_scales)) = (narrow(), narrow());
        let d_out = normal(&mut random, rows * HEADS * LEN, 0.03);
        Self {
            length,
            sequences,
            queries,
            query_scales,
            keys,
            key_scales,
            values,
            value_scales,
            d_out,
        }
    }

    /// What core gives: gradients of queries, keys and values.
    pub(crate) fn found(&self) -> Option<[Vec<f32>; 3]> {
        let rows = self.length * self.sequences;
        let shape = CacheShape {
            kind: CacheType::Int8,
            layers: 1,
            heads: KV,
            head: LEN,
        };
        let pages = self.length.div_ceil(PAGE as usize);
        let all = pages * self.sequences;
        // What the cache holds behind a sequence's end does not show.
        let (mut keys, mut values) = (vec![55; shape.codes() * all], vec![77; shape.codes() * all]);
        let (mut scales, mut free) = (vec![1e9; 2 * shape.scales() * all], vec![0; all]);
        let (keys, values) = (Codes::Narrow(&mut keys), Codes::Narrow(&mut values));
        let mut cache = Cache::new(shape, keys, values, &mut scales, &mut free).unwrap();
        let mut tables = vec![0; all];
        let context = self.length as u32;
        let mut sequences: Vec<Sequence<'_>> = (tables.chunks_mut(pages))
            .map(|table| Sequence::new(Pattern::FULL, CacheType::Int8, context, 1, table).unwrap())
            .collect();
        for (number, sequence) in sequences.iter_mut().enumerate() {
            sequence.restore(context, &mut cache).unwrap();
            for first in (0..context).step_by(PAGE as usize) {
                let page = sequence.page(first).unwrap();
                for kv in 0..KV {
                    let rows = (first..context.min(first + PAGE))
                        .map(|row| (number * self.length + row as usize) * KV + kv);
                    let of = |codes: &[i8], scales: &[f32]| -> (Vec<i8>, Vec<f32>) {
                        let codes = rows.clone().flat_map(|row| &codes[row * LEN..][..LEN]);
                        let codes = codes.copied().collect();
                        (codes, rows.clone().map(|row| scales[row]).collect())
                    };
                    let (keys, key_scales) = of(&self.keys, &self.key_scales);
                    let (values, value_scales) = of(&self.values, &self.value_scales);
                    cache
                        .load(
                            (page, 0, kv),
                            (PageCodes::Narrow(&keys), &key_scales),
                            (PageCodes::Narrow(&values), &value_scales),
                        )
                        .unwrap();
                }
            }
        }
        let places: Vec<Place> = (0..rows)
            .map(|row| Place {
                sequence: row / self.length,
                position: (row % self.length) as u32,
                fault: None,
            })
            .collect();
        let attention = Attention {
            cache: &cache,
            sequences: &sequences,
            places: &places,
            layer: 0,
            heads: HEADS,
            queries: &self.queries,
            scales: &self.query_scales,
            sink_queries: &[],
            sink_scales: &[],
        };
        let (mut scores, mut sums) = (vec![0.0; pages * PAGE as usize], vec![0; LEN]);
        let mut out = vec![0.0; rows * HEADS * LEN];
        for (head, out) in out.chunks_mut(LEN).enumerate() {
            attention.head(head / HEADS, head % HEADS, &mut scores, &mut sums, out);
        }
        let job = AttentionGradient {
            attention,
            length: self.length,
            out: &out,
            d_out: &self.d_out,
        };
        let needs = AttentionLengths::of(self.length, LEN);
        let mut scratch = AttentionScratch {
            floats: &mut vec![f32::NAN; needs.floats],
            bytes: &mut vec![77; needs.bytes],
            ints: &mut vec![77; needs.ints],
            longs: &mut vec![77; needs.longs],
        };
        let lengths = [HEADS, KV, KV].map(|heads| rows * heads * LEN);
        let mut all = lengths.map(|len| vec![f32::NAN; len]);
        let [queries, keys, values] = &mut all;
        let mut gradients = AttentionGradients {
            queries,
            keys,
            values,
        };
        let mut within = true;
        for sequence in 0..job.sequences() {
            for kv in 0..KV {
                let place = (sequence, kv);
                within &= job.head_by(PlainProducts, place, &mut scratch, &mut gradients);
            }
        }
        within.then_some(all)
    }

    /// Those of softmax.
    fn exact(&self) -> [Vec<f64>; 3] {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let rows = self.length * self.sequences;
        let mut all = [HEADS, KV, KV].map(|heads| vec![0f64; rows * heads * LEN]);
        let [d_queries, d_keys, d_values] = &mut all;
        let narrow = |codes: &[i8], scales: &[f32], at: usize| -> Vec<f64> {
            let codes = &codes[at * LEN..][..LEN];
            let scale = f64::from(scales[at]);
            codes.iter().map(|&code| f64::from(code) * scale).collect()
        };
        let inverse = 1.0 / (LEN as f64).sqrt();
        for row in 0..rows {
            let first = row - row % self.length;
            for head in 0..HEADS {
                let at = row * HEADS + head;
                let of = |t: usize| (first + t) * KV + head / (HEADS / KV);
                let query: Vec<f64> = (self.queries[at * LEN..][..LEN].iter())
                    .map(|&code| f64::from(code) * f64::from(self.query_scales[at]))
                    .collect();
                let d_out: Vec<f64> = (self.d_out[at * LEN..][..LEN].iter())
                    .map(|&d| d.into())
                    .collect();
                let keys: Vec<_> = (0..=row - first)
                    .map(|t| narrow(&self.keys, &self.key_scales, of(t)))
                    .collect();
                let values: Vec<_> = (0..=row - first)
                    .map(|t| narrow(&self.values, &self.value_scales, of(t)))
                    .collect();
                let scores: Vec<f64> = keys.iter().map(|key| dot(&query, key)).collect();
                let most = scores.iter().fold(f64::MIN, |most, &score| most.max(score));
                let powers: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
                let total: f64 = powers.iter().sum();
                let dp: Vec<f64> = values.iter().map(|value| dot(&d_out, value)).collect();
                let mean = dot(&powers, &dp) / total;
                for t in 0..keys.len() {
                    let p = powers[t] / total;
                    let ds = p * (dp[t] - mean);
                    for j in 0..LEN {
                        d_queries[at * LEN + j] += ds * keys[t][j] * inverse;
                        d_keys[of(t) * LEN + j] += ds * query[j];
                        d_values[of(t) * LEN + j] += p * d_out[j];
                    }
                }
            }
        }
        all
    }
}

#[test]
fn attention_s_gradients_are_softmax_s() {
    for (length, sequences) in [(1, 2), (63, 1), (64, 2), (65, 2), (130, 1)] {
        let case = Case::new(length, sequences);
        let found = case.found().unwrap();
        let exact = case.exact();
        for (which, (found, exact)) in found.iter().zip(&exact).enumerate() {
            // Of one position softmax is 1 whatever the score: its gradient is 0 but for what rounding leaves.
            if length == 1 && which < 2 {
                // D is of the codes that dp is of.
                let most = found.iter().fold(0f32, |most, x| most.max(x.abs()));
                assert!(most < 1e-4, "{most:e}");
                continue;
            }
            // 2.8e-2 of the largest of queries, 2.9e-2 of keys, 1.5e-2 of values were found: half a code here and
            // there.
            let off = apart(found, exact);
            assert!(off < 4e-2, "{length}, {which}: {off:e}");
        }
    }
}

#[test]
fn attention_s_gradients_of_a_sequence_do_not_see_another() {
    let mut case = Case::new(70, 2);
    let both = case.found().unwrap();
    case.sequences = 1;
    let first = case.found().unwrap();
    for (both, first) in both.iter().zip(&first) {
        assert_eq!(both[..first.len()], first[..]);
    }
}

#[test]
fn attention_s_gradients_without_bounds_are_told() {
    let mut case = Case::new(3, 1);
    let finite = case.d_out[5];
    // The last is above the ceiling of values: 127 · 2⁻¹² of 2⁻¹⁵.
    for d in [f32::NAN, f32::INFINITY, 2048.0] {
        case.d_out[5] = d;
        assert!(case.found().is_none(), "{d}");
    }
    case.d_out[5] = finite;
    assert!(case.found().is_some());
}
