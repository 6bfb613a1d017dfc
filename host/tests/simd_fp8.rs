//! Eight-bit floats by kernels: the codes, floats and errors of core, for every instruction set of this machine.

use proptest::prelude::*;
use tercet_core::engine::QuantizeEngine;
use tercet_core::number::{Element, Random};
use tercet_core::quant::QuantError;
use tercet_core::quant::fp8::Fp8;
use tercet_core::{bf16, f16};
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

/// Large enough to go past the caches, and no whole lines.
const LARGE: usize = (4 << 20) + 77;
const FORMATS: [Fp8; 2] = [Fp8::E4M3, Fp8::E5M2];

fn engines() -> impl Iterator<Item = Threads> {
    let tiles = [7, 100, 1 << 16, usize::MAX];
    Backend::all()
        .flat_map(move |backend| tiles.map(|tile| Threads::with_tile(tile).with_backend(backend)))
}

fn check_quantize<T: Element>(scale: f32, values: &[T], offset: usize) {
    for format in FORMATS {
        let mut expected = vec![0x55; values.len()];
        let expected_result = format.quantize(scale, values, &mut expected);
        for mut engine in engines() {
            let mut memory = vec![0xAA; values.len() + offset];
            let found = &mut memory[offset..];
            let result = engine.quantize_fp8(format, scale, values, found);
            assert_eq!(result, expected_result, "{format:?} {engine:?}");
            if result.is_ok() {
                assert!(found == expected, "{format:?} {scale:e} {engine:?}");
            }
        }
    }
}

fn check_dequantize(scale: f32, codes: &[u8], offset: usize) {
    // NaNs' payloads are not looked at.
    let bits = |x: &f32| match x.is_nan() {
        true => u32::MAX,
        false => x.to_bits(),
    };
    for format in FORMATS {
        let mut expected = vec![0.5; codes.len()];
        format.dequantize(scale, codes, &mut expected).unwrap();
        for mut engine in engines() {
            let mut memory = vec![7.0; codes.len() + offset];
            let found = &mut memory[offset..];
            engine.dequantize_fp8(format, scale, codes, found).unwrap();
            let same = found.iter().map(bits).eq(expected.iter().map(bits));
            assert!(same, "{format:?} {scale:e} {engine:?}");
        }
    }
}

/// Every f32 whose low 16 bits are 0, 1 or all ones, but NaN and infinity: each midpoint of both formats and its
/// neighbours among them.
fn midpoints() -> Vec<f32> {
    (0..=u32::from(u16::MAX))
        .flat_map(|high| [0, 1, 0xFFFF].map(|low| f32::from_bits(high << 16 | low)))
        .filter(|x| x.is_finite())
        .collect()
}

/// Finite patterns at random, most of them within the formats' range.
fn patterns(len: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    let mut draw = || {
        let draw = random.next_u64() as u32;
        let exponent = match random.below(8) {
            0 => random.below(255),
            _ => 100 + random.below(45),
        };
        f32::from_bits(draw & 0x807F_FFFF | (exponent as u32) << 23)
    };
    (0..len).map(|_| draw()).collect()
}

#[test]
fn midpoints_and_their_neighbours_are_coded_as_core_codes_them() {
    let values = midpoints();
    // One leaves quotients as they are; the others take them out of range both ways.
    for scale in [1.0, 3.0, f32::MIN_POSITIVE, f32::from_bits(1), f32::MAX] {
        check_quantize(scale, &values, 1);
    }
}

#[test]
fn every_half_is_coded_as_core_codes_it() {
    let halves = || (0..=u16::MAX).filter(|bits| bits & 0x7FFF < 0x7C00);
    check_quantize(0.75, &halves().map(f16::from_bits).collect::<Vec<_>>(), 0);
    let halves = || (0..=u16::MAX).filter(|bits| bits & 0x7FFF < 0x7F80);
    check_quantize(0.75, &halves().map(bf16::from_bits).collect::<Vec<_>>(), 3);
}

#[test]
fn every_code_is_restored_as_core_restores_it() {
    let codes: Vec<u8> = (0..=u8::MAX).cycle().take(3 * 256 + 5).collect();
    for scale in [1.0, 0.1, f32::MAX, f32::from_bits(1), 0.0, -2.0, f32::NAN] {
        check_dequantize(scale, &codes, 0);
        check_dequantize(scale, &codes, 1);
    }
}

#[test]
fn what_goes_past_the_caches_is_the_same() {
    check_quantize(0.03, &patterns(LARGE, 1), 5);
    let mut random = Random::new(2);
    let codes: Vec<u8> = (0..LARGE).map(|_| random.below(256) as u8).collect();
    check_dequantize(0.03, &codes, 1);
}

#[test]
fn the_first_value_that_is_not_finite_is_named() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for index in [0, 6, 7, 63, 64, 999] {
            let mut values = patterns(1000, 3);
            (values[index], values[999]) = (bad, bad);
            check_quantize(2.0, &values, 0);
            // Looked at also where nothing is divided.
            check_quantize(0.0, &values, 0);
        }
    }
}

#[test]
fn scales_that_divide_nothing_give_zeros() {
    let values = patterns(100, 4);
    for scale in [0.0, -1.0, f32::INFINITY, f32::NAN] {
        check_quantize(scale, &values, 0);
    }
}

#[test]
fn lengths_that_differ_are_refused() {
    let mut engine = Threads::default();
    let refused = Err(QuantError::Length {
        expected: 3,
        found: 2,
    });
    assert_eq!(
        engine.quantize_fp8(Fp8::E4M3, 1.0, &[1.0f32; 3], &mut [0; 2]),
        refused
    );
    assert_eq!(
        engine.dequantize_fp8(Fp8::E5M2, 1.0, &[0; 3], &mut [0.0; 2]),
        refused
    );
}

#[test]
fn extremes_are_those_of_core() {
    use tercet_core::number::Stats;
    let mut values = patterns(1000, 5);
    for _ in 0..2 {
        for engine in engines() {
            assert_eq!(engine.extremes(&values), Stats::extremes_of(&values));
        }
        values[731] = f32::NAN;
    }
    assert_eq!(Threads::default().extremes::<f32>(&[]), Stats::EMPTY);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_length_and_place_is_coded_as_core_codes_it(
        len in 0usize..400,
        seed: u64,
        scale in 1e-6f32..1e6,
        offset in 0usize..67,
    ) {
        let values = patterns(len, seed);
        check_quantize(scale, &values, offset);
        let codes: Vec<u8> = values.iter().map(|x| x.to_bits() as u8).collect();
        check_dequantize(scale, &codes, offset);
    }
}
