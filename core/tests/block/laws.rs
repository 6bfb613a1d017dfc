//! What holds for any values and any bytes.

use num_bigint::BigInt;
use num_rational::BigRational;
use proptest::collection::vec;
use proptest::prelude::*;
use tercet_core::block::{self, Format, Ternary};
use tercet_core::number::Random;
use tercet_core::quant::ternary::decide;
use tercet_core::quant::{Rule, ScaleRule};
use tercet_core::{bf16, f16};

use super::{RULES, TERNARY, codes, decode, encode};

/// Bytes of blocks with any codes and finite scales.
fn any_blocks(format: Format) -> impl Strategy<Value = Vec<u8>> {
    let block = (vec(any::<u8>(), format.bytes()), any_f16(), any_f16());
    vec(block, 0..12).prop_map(move |blocks| {
        let mut bytes = Vec::new();
        for (mut block, scale, min) in blocks {
            block[format.scale_offset()..][..2].copy_from_slice(&scale.to_le_bytes());
            if let Some(at) = format.min_offset() {
                block[at..][..2].copy_from_slice(&min.to_le_bytes());
            }
            bytes.extend(block);
        }
        bytes
    })
}

/// The bits of a finite f16.
fn any_f16() -> impl Strategy<Value = u16> {
    (0..0x7C00u16, any::<bool>()).prop_map(|(bits, negative)| bits | u16::from(negative) << 15)
}

/// The minima of parts, 0 where they have none.
fn mins(format: Format, bytes: &[u8]) -> Vec<f32> {
    let blocks = bytes.chunks(format.bytes());
    let of_parts = blocks.flat_map(|block| {
        let min = format.min(block).to_f32();
        (0..format.parts()).map(move |part| -(min * f32::from(-format.factors(block, part).1)))
    });
    of_parts.collect()
}

/// The scales of parts.
fn scales(format: Format, bytes: &[u8]) -> Vec<f32> {
    let mut scales = vec![0.0; bytes.len() / format.bytes() * format.parts()];
    block::scales(format, bytes, &mut scales).unwrap();
    scales
}

fn any_format() -> impl Strategy<Value = Format> {
    prop::sample::select(&Format::ALL[..])
}

fn any_encoded() -> impl Strategy<Value = Format> {
    prop::sample::select(&Format::ENCODED[..])
}

/// The exact value of a float.
fn exact(x: f32) -> BigRational {
    BigRational::from_float(x).unwrap()
}

proptest! {
    #[test]
    fn encoding_what_was_decoded_changes_nothing(
        format in any_encoded(),
        values in vec(-60_000f32..60_000.0, 512),
        step in 0..20u32,
    ) {
        let unit = 1.0 / (1u32 << step) as f32;
        let values: Vec<f32> = values.iter().map(|x| x * unit).collect();
        let first = encode(format, &values).unwrap();
        let again = encode(format, &decode(format, &first)).unwrap();
        prop_assert_eq!(codes(format, &first), codes(format, &again));
        prop_assert_eq!(first, again);
    }

    #[test]
    fn bytes_do_not_depend_on_split(
        format in any_encoded(),
        values in vec(-9f32..9.0, 1024),
        at in 0..=4usize,
    ) {
        let (low, high) = values.split_at(at * 256);
        let parts = [encode(format, low).unwrap(), encode(format, high).unwrap()].concat();
        prop_assert_eq!(encode(format, &values).unwrap(), parts);
    }

    #[test]
    fn halves_give_the_bytes_of_their_widened_copies(
        format in any_encoded(),
        values in vec(-9f32..9.0, 256),
    ) {
        let len = format.encoded_len(256).unwrap();
        let (mut ours, mut wide) = (vec![0; len], vec![0; len]);
        let rule = (Rule::AbsMax, ScaleRule::Rule);

        let half: Vec<f16> = values.iter().map(|&x| f16::from_f32(x)).collect();
        let copy: Vec<f32> = half.iter().map(|x| x.to_f32()).collect();
        block::encode(format, rule.0, rule.1, &half, &mut ours).unwrap();
        block::encode(format, rule.0, rule.1, &copy, &mut wide).unwrap();
        prop_assert_eq!(&ours, &wide);

        let half: Vec<bf16> = values.iter().map(|&x| bf16::from_f32(x)).collect();
        let copy: Vec<f32> = half.iter().map(|x| x.to_f32()).collect();
        block::encode(format, rule.0, rule.1, &half, &mut ours).unwrap();
        block::encode(format, rule.0, rule.1, &copy, &mut wide).unwrap();
        prop_assert_eq!(&ours, &wide);
    }

    #[test]
    fn decoding_is_code_times_scale_and_the_minimum(
        (format, bytes) in any_format().prop_flat_map(|f| (Just(f), any_blocks(f))),
    ) {
        let (scales, mins) = (scales(format, &bytes), mins(format, &bytes));
        let codes = codes(format, &bytes);
        for (index, y) in decode(format, &bytes).into_iter().enumerate() {
            let mut expected = f32::from(codes[index]) * scales[index / format.part_len()];
            if format.min_offset().is_some() {
                expected += mins[index / format.part_len()];
            }
            prop_assert_eq!(y.to_bits(), expected.to_bits());
        }
    }

    #[test]
    fn dot_is_the_exact_sum_rounded_once(
        (format, bytes) in any_format().prop_flat_map(|f| (Just(f), any_blocks(f))),
        seed in any::<u64>(),
        x_scale in 1e-6f32..1e6,
    ) {
        let codes = codes(format, &bytes);
        let mut random = Random::new(seed);
        let x: Vec<i8> = codes.iter().map(|_| random.next_u64() as i8).collect();

        let mut sum = BigRational::from_integer(BigInt::from(0));
        let parts = codes.chunks(format.part_len()).zip(x.chunks(format.part_len()));
        let worth = scales(format, &bytes).into_iter().zip(mins(format, &bytes));
        for ((codes, x), (scale, min)) in parts.zip(worth) {
            let dot: i64 = codes.iter().zip(x).map(|(&c, &x)| i64::from(c) * i64::from(x)).sum();
            let of_x: i64 = x.iter().map(|&x| i64::from(x)).sum();
            sum += exact(scale) * BigInt::from(dot) + exact(min) * BigInt::from(of_x);
        }
        let fixed = block::dot_fixed(format, &bytes, &x).unwrap();
        prop_assert_eq!(BigRational::new(fixed.into(), (1 << 24).into()), sum.clone());

        let y = block::dot(format, &bytes, &x, 1.0).unwrap();
        let error = |y: f32| { let e = exact(y) - &sum; if e < BigRational::from_integer(0.into()) { -e } else { e } };
        prop_assert!(error(y) <= error(y.next_up()) && error(y) <= error(y.next_down()));
        let scaled = block::dot(format, &bytes, &x, x_scale).unwrap();
        prop_assert_eq!(scaled.to_bits(), (y * x_scale).to_bits());
    }

    #[test]
    fn every_rule_decides_block_by_block(
        format in prop::sample::select(&TERNARY[..]),
        rule in prop::sample::select(&RULES[..]),
        scale_rule in prop::sample::select(&[ScaleRule::Rule, ScaleRule::LeastSquares][..]),
        values in vec(-9f32..9.0, 512),
        exponent in -40..12i32,
    ) {
        let unit = 2f32.powi(exponent);
        let values: Vec<f32> = values.iter().map(|x| x * unit).collect();
        let mut bytes = vec![0; format.encoded_len(512).unwrap()];
        block::encode(format, rule, scale_rule, &values, &mut bytes).unwrap();
        let scales = scales(format, &bytes);
        let found = codes(format, &bytes);
        let blocks = values.chunks(format.len()).zip(found.chunks(format.len()));
        for ((values, codes), scale) in blocks.zip(scales) {
            let decision = decide(values, rule, scale_rule).unwrap();
            prop_assert_eq!(scale, f16::from_f32(decision.scale).to_f32());
            let expected: Vec<i8> = values.iter().map(|&x| decision.code(x)).collect();
            prop_assert_eq!(codes, expected);
        }
    }

    #[test]
    fn a_view_gives_what_its_blocks_give(
        format in prop::sample::select(&TERNARY[..]),
        values in vec(-9f32..9.0, 512),
        x in vec(any::<i8>(), 512),
    ) {
        let bytes = encode(format, &values).unwrap();
        let view = Ternary::new(format, &bytes).unwrap();
        let mut found = vec![0; 512];
        view.codes(&mut found).unwrap();
        prop_assert_eq!(found, codes(format, &bytes));
        prop_assert_eq!(view.dot(&x, 0.25), block::dot(format, &bytes, &x, 0.25));
        prop_assert_eq!((view.format(), view.bytes()), (format, &bytes[..]));
    }
}
