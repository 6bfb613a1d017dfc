//! Compares weights with exact powers of two, and attention with softmax in f64.

use std::vec;
use std::vec::Vec;

use super::super::{Architecture, CacheShape, Codes, Config, Gate, ModelParts, Pattern};
use super::*;
use crate::number::{Random, root::sqrt_f32};
use crate::quant::activations;

#[test]
fn weights_are_the_nearest_integers() {
    let mut random = Random::new(7);
    for _ in 0..100_000 {
        // From 2⁻¹⁰⁰ to 2¹⁰⁰.
        let a = f32::from_bits(
            (27 + random.below(200) as u32) << 23 | random.next_u64() as u32 & 0x7F_FFFF,
        );
        let e = exponent(a);
        let wide = f64::from(a);
        assert!(wide <= 32_767.0 * 2f64.powi(e) && wide > 32_767.0 * 2f64.powi(e - 1));
        for more in [0, 1, 5, 12, 20, 30] {
            let exact = wide * 2f64.powi(-(e + more));
            assert_eq!(
                f64::from(shifted(a, e + more)),
                crate::number::round::half_even_f64(exact)
            );
        }
    }
    assert_eq!(shifted(0.0, -100), 0);
}

#[test]
fn powers_of_two_are_exact() {
    for e in -149..=127 {
        assert_eq!(f64::from(power(e)), 2f64.powi(e));
    }
}

/// The parts of a model with this type of cache.
const fn of(kind: CacheType) -> u32 {
    let config = Config {
        architecture: Architecture::BitNet,
        gate: Gate::SquaredRelu,
        layers: 1,
        width: 64,
        hidden: 64,
        heads: 1,
        kv_heads: 1,
        head: 64,
        context: 1,
        vocabulary: 1,
        eps: 0.0,
        rope_base: 1.0,
        rope_factor: 1.0,
        cache: kind,
        pattern: Pattern::FULL,
    };
    ModelParts::of(&config, kind, false).bits()
}

/// Returns the error of attention over that many random keys and values against softmax over the same codes: the root
/// mean square of the difference over that of the exact result. The query is `sharp` times as long as one with unit
/// values.
fn off(kind: CacheType, head: usize, positions: u32, sharp: f32, seed: u64) -> f64 {
    let shape = CacheShape {
        kind,
        layers: 1,
        heads: 1,
        head,
    };
    let pages = positions.div_ceil(PAGE) as usize;
    let (mut k8, mut k16) = (
        vec![0; pages * shape.codes()],
        vec![0; pages * shape.codes()],
    );
    let (mut v8, mut v16) = (k8.clone(), k16.clone());
    let mut scales = vec![0.0; 2 * pages * shape.scales()];
    let (mut free, mut table) = (vec![0; pages], vec![0; pages]);
    let keys = match kind.wide_keys() {
        true => Codes::Wide(&mut k16),
        false => Codes::Narrow(&mut k8),
    };
    let values = match kind.wide_values() {
        true => Codes::Wide(&mut v16),
        false => Codes::Narrow(&mut v8),
    };
    let mut cache = Cache::new(shape, keys, values, &mut scales, &mut free).unwrap();
    let mut sequence = Sequence::new(Pattern::FULL, kind, positions, 1, &mut table).unwrap();
    let mut random = Random::new(seed);
    let mut normal =
        |factor: f32| -> Vec<f32> { (0..head).map(|_| random.normal() * factor).collect() };
    for position in 0..positions {
        sequence.extend(0, position, &mut cache).unwrap();
        let page = sequence.page(position).unwrap();
        assert_eq!(
            cache.keep(
                ModelParts::ALL,
                (page, 0, 0),
                position,
                (&normal(1.0), &normal(1.0))
            ),
            (true, true)
        );
        sequence.advance(position + 1);
    }
    let mut query = vec![0i16; head];
    let scale = activations::row(&normal(sharp), None, &mut query) * (1.0 / sqrt_f32(head as f32));
    let sequences = [sequence];
    let attention = Attention {
        cache: &cache,
        sequences: &sequences,
        places: &[Place {
            sequence: 0,
            position: positions - 1,
            fault: None,
        }],
        layer: 0,
        heads: 1,
        queries: &query,
        scales: &[scale],
        sink_queries: &[],
        sink_scales: &[],
    };
    let (mut scores, mut sums) = (vec![0.0; pages * LEN], vec![0; head]);
    let mut found = vec![0.0; head];
    attention.head(0, 0, &mut scores, &mut sums, &mut found);

    // As an engine for this type alone computes it.
    let mut alone = vec![f32::NAN; head];
    let memory = (&mut scores[..], &mut sums[..], &mut alone[..]);
    match kind {
        CacheType::Int8 => {
            attention.head_of::<{ of(CacheType::Int8) }>(0, 0, memory.0, memory.1, memory.2)
        }
        CacheType::Int16Int8 => {
            attention.head_of::<{ of(CacheType::Int16Int8) }>(0, 0, memory.0, memory.1, memory.2)
        }
        CacheType::Int16 => {
            attention.head_of::<{ of(CacheType::Int16) }>(0, 0, memory.0, memory.1, memory.2)
        }
        CacheType::Fp8 => {
            attention.head_of::<{ of(CacheType::Fp8) }>(0, 0, memory.0, memory.1, memory.2)
        }
    }
    assert_eq!(alone, found);

    // The same codes, in f64.
    let widened = |codes: PageCodes<'_>, at: usize| -> f64 {
        match codes {
            PageCodes::Narrow(codes) if kind == CacheType::Fp8 => fp8_integer(codes[at]).into(),
            PageCodes::Narrow(codes) => codes[at].into(),
            PageCodes::Wide(codes) => codes[at].into(),
        }
    };
    let row = |position: u32, of_keys: bool| -> Vec<f64> {
        let page = sequences[0].page(position).unwrap();
        let (codes, scales) = match of_keys {
            true => cache.keys(page, 0, 0),
            false => cache.values(page, 0, 0),
        };
        let at = (position % PAGE) as usize;
        let scale = f64::from(scales[at]);
        (at * head..(at + 1) * head)
            .map(|at| widened(codes, at) * scale)
            .collect()
    };
    let score = |position| -> f64 {
        let pairs = row(position, true).into_iter().zip(&query);
        pairs
            .map(|(key, &query)| key * f64::from(query) * f64::from(scale))
            .sum()
    };
    let scores: Vec<f64> = (0..positions).map(score).collect();
    let largest = scores.iter().copied().fold(f64::MIN, f64::max);
    let powers: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
    let total: f64 = powers.iter().sum();
    let mut exact = vec![0.0; head];
    for (position, power) in (0..).zip(&powers) {
        for (exact, value) in exact.iter_mut().zip(row(position, false)) {
            *exact += power / total * value;
        }
    }
    let square = |all: &mut dyn Iterator<Item = f64>| all.map(|x| x * x).sum::<f64>().sqrt();
    let pairs = found.iter().zip(&exact);
    square(&mut pairs.map(|(&found, exact)| f64::from(found) - exact))
        / square(&mut exact.iter().copied())
}

#[test]
fn what_is_attended_to_is_softmax_s_but_for_the_weights_rounding() {
    let mut worst = [0f64; 4];
    for (kind, worst) in CacheType::ALL.into_iter().zip(&mut worst) {
        for (seed, head, positions, sharp) in [
            (1, 64, 1, 1.0),
            (2, 64, 63, 0.5),
            (3, 32, 65, 3.0),
            (4, 64, 517, 1.0),
            (5, 24, 517, 8.0),
            (6, 128, 1500, 0.1),
            (7, 64, 4096, 2.0),
            (8, 64, 4096, 20.0),
        ] {
            let off = off(kind, head, positions, sharp, seed);
            *worst = worst.max(off);
        }
    }
    assert!(worst.iter().all(|&worst| worst <= 2e-4), "{worst:?}");
}

/// The attention of the position 69 of 72, whose values are 0 but for one; with scores that are not finite.
fn of_a_value_at(place: Option<u32>) -> [f32; 2] {
    const POSITIONS: u32 = 72;
    let shape = CacheShape {
        kind: CacheType::Int8,
        layers: 1,
        heads: 1,
        head: 2,
    };
    let (mut keys, mut values) = ([0; 2 * LEN * 2], [0; 2 * LEN * 2]);
    let (mut scales, mut free, mut table) = ([f32::NAN; 4 * LEN], [0; 2], [0; 2]);
    let (keys, values) = (Codes::Narrow(&mut keys), Codes::Narrow(&mut values));
    let mut cache = Cache::new(shape, keys, values, &mut scales, &mut free).unwrap();
    let mut sequence = Sequence::new(Pattern::FULL, shape.kind, POSITIONS, 1, &mut table).unwrap();
    for position in 0..POSITIONS {
        sequence.extend(0, position, &mut cache).unwrap();
        let page = sequence.page(position).unwrap();
        let value = if place == Some(position) { 1.0 } else { 0.0 };
        cache.keep(
            ModelParts::ALL,
            (page, 0, 0),
            position,
            (&[1e38, 1e38], &[value, 0.0]),
        );
        sequence.advance(position + 1);
    }
    let attention = Attention {
        cache: &cache,
        sequences: &[sequence],
        places: &[Place {
            sequence: 0,
            position: 69,
            fault: None,
        }],
        layer: 0,
        heads: 1,
        queries: &[127, 127],
        scales: &[1e30],
        sink_queries: &[],
        sink_scales: &[],
    };
    let mut found = [7.0; 2];
    attention.head(0, 0, &mut [0.0; 2 * LEN], &mut [0; 2], &mut found);
    found
}

#[test]
fn a_head_without_values_is_zero_whatever_its_scores() {
    assert_eq!(of_a_value_at(None), [0.0; 2]);
    // Positions that are not attended have no effect.
    assert_eq!(of_a_value_at(Some(70)), [0.0; 2]);
    for place in [0, 63, 64, 69] {
        assert!(of_a_value_at(Some(place))[0].is_nan(), "{place}");
    }
}
