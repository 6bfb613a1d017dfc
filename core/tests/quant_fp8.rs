//! FP8 codecs against an exact nearest search.

use proptest::prelude::*;
use tercet_core::f16;
use tercet_core::quant::QuantError;
use tercet_core::quant::fp8::{Fp8, Overflow};

const FORMATS: [Fp8; 2] = [Fp8::E4M3, Fp8::E5M2];

/// The value of a code from the formula of the specification's tables, in f64.
fn value(format: Fp8, code: u8) -> f64 {
    let (mantissa_bits, bias) = match format {
        Fp8::E4M3 => (3, 7),
        Fp8::E5M2 => (2, 15),
    };
    let sign = if code & 0x80 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(code & 0x7F) >> mantissa_bits;
    let mantissa = f64::from(code & ((1 << mantissa_bits) - 1)) / f64::from(1 << mantissa_bits);
    match format {
        Fp8::E4M3 if code & 0x7F == 0x7F => return f64::NAN,
        Fp8::E5M2 if exponent == 31 && mantissa == 0.0 => return sign * f64::INFINITY,
        Fp8::E5M2 if exponent == 31 => return f64::NAN,
        _ => {}
    }
    if exponent == 0 {
        sign * mantissa * 2f64.powi(1 - bias)
    } else {
        sign * (1.0 + mantissa) * 2f64.powi(exponent - bias)
    }
}

/// Nearest by search over all codes and one imaginary code above the largest, ties to the even code.
/// Two neighbouring distances are exact in f64 wherever they come near each other.
fn nearest(format: Fp8, x: f32, overflow: Overflow) -> u8 {
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    let (last, above, special) = match format {
        Fp8::E4M3 => (0x7E, 480.0, 0x7F),
        Fp8::E5M2 => (0x7B, 65_536.0, 0x7C),
    };
    if x.is_nan() {
        return sign | format.nan_code();
    }
    let target = f64::from(x.abs());
    let mut best = (f64::INFINITY, 0);
    for code in 0..=last + 1 {
        let candidate = if code > last {
            above
        } else {
            value(format, code)
        };
        let distance = (candidate - target).abs();
        if distance < best.0 || (distance == best.0 && code % 2 == 0) {
            best = (distance, code);
        }
    }
    // From far away all codes are equally near in f64; anything beyond the imaginary code is above.
    let code = if target >= above { last + 1 } else { best.1 };
    match overflow {
        _ if code <= last => sign | code,
        Overflow::Saturate => sign | last,
        Overflow::Special => sign | special,
    }
}

fn check(x: f32) {
    for format in FORMATS {
        for overflow in [Overflow::Saturate, Overflow::Special] {
            let (found, expected) = (format.encode(x, overflow), nearest(format, x, overflow));
            assert_eq!(found, expected, "{format:?} {overflow:?} {x:e}");
        }
    }
}

#[test]
fn every_code_decodes_to_the_specified_value_and_returns() {
    for format in FORMATS {
        for code in 0..=255 {
            let decoded = format.decode(code);
            let expected = value(format, code);
            if expected.is_nan() {
                assert!(decoded.is_nan());
                assert_eq!(decoded.is_sign_negative(), code & 0x80 != 0);
                assert_eq!(
                    format.encode(decoded, Overflow::Saturate),
                    code & 0x80 | format.nan_code()
                );
                continue;
            }
            assert_eq!(f64::from(decoded).to_bits(), expected.to_bits());
            assert_eq!(format.encode(decoded, Overflow::Special), code);
            if expected.is_finite() {
                assert_eq!(format.encode(decoded, Overflow::Saturate), code);
            }
        }
        assert_eq!(format.decode(format.max_code()), format.max());
    }
}

#[test]
fn every_f16_encodes_to_the_nearest_code() {
    for pattern in 0..=u16::MAX {
        check(f16::from_bits(pattern).to_f32());
    }
}

#[test]
fn midpoints_and_their_f32_neighbours_encode_to_the_nearest_code() {
    for format in FORMATS {
        for code in 0..=format.max_code() {
            let low = value(format, code);
            let high = match format {
                Fp8::E4M3 if code == 0x7E => 480.0,
                Fp8::E5M2 if code == 0x7B => 65_536.0,
                _ => value(format, code + 1),
            };
            for point in [low, (low + high) / 2.0, high] {
                let bits = (point as f32).to_bits();
                for neighbour in [bits.saturating_sub(1), bits, bits + 1] {
                    check(f32::from_bits(neighbour));
                    check(-f32::from_bits(neighbour));
                }
            }
        }
    }
}

#[test]
fn extremes_encode_as_the_specification_says() {
    for x in [
        f32::MAX,
        f32::INFINITY,
        f32::from_bits(1),
        f32::MIN_POSITIVE,
        0.0,
        f32::NAN,
    ] {
        check(x);
        check(-x);
    }
    assert_eq!(Fp8::E4M3.encode(464.0, Overflow::Special), 0x7E);
    assert_eq!(Fp8::E4M3.encode(464.1, Overflow::Special), 0x7F);
    assert_eq!(Fp8::E5M2.encode(61_440.0, Overflow::Special), 0x7C);
    assert_eq!(
        Fp8::E4M3.encode(f32::NEG_INFINITY, Overflow::Saturate),
        0xFE
    );
    assert_eq!(Fp8::E5M2.encode(f32::INFINITY, Overflow::Saturate), 0x7B);
}

#[test]
fn scaled_round_trip_stays_within_half_a_step() {
    let values: Vec<f32> = (0..1000).map(|i| (i as f32 - 500.0) * 0.013).collect();
    for (format, relative) in [(Fp8::E4M3, 1.0 / 16.0), (Fp8::E5M2, 1.0 / 8.0)] {
        let scale = format.scale(6.5);
        let mut codes = [0; 1000];
        let mut back = [0.0; 1000];
        format.quantize(scale, &values, &mut codes).unwrap();
        format.dequantize(scale, &codes, &mut back).unwrap();
        for (x, y) in values.iter().zip(back) {
            // Half a step of the binade, or half the smallest subnormal; a little for the two roundings.
            let floor = scale * format.decode(1) / 2.0;
            assert!(
                (x - y).abs() <= (x.abs() * relative).max(floor) * 1.000_01,
                "{x} {y}"
            );
        }
    }
}

#[test]
fn bad_input_is_refused() {
    let mut codes = [0; 3];
    assert_eq!(
        Fp8::E4M3.quantize(1.0, &[0.0, f32::NAN, 1.0], &mut codes),
        Err(QuantError::NotFinite { index: 1 })
    );
    let refused = Err(QuantError::Length {
        expected: 2,
        found: 3,
    });
    assert_eq!(Fp8::E4M3.quantize(1.0, &[0.0, 1.0], &mut codes), refused);
    assert_eq!(Fp8::E5M2.dequantize(1.0, &[0, 1], &mut [0.0; 3]), refused);
    for scale in [0.0, f32::NAN, f32::INFINITY, -1.0] {
        Fp8::E5M2
            .quantize(scale, &[1.0, -2.0, 3.0], &mut codes)
            .unwrap();
        assert_eq!(codes, [0; 3]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_f32_encodes_to_the_nearest_code(pattern: u32) {
        check(f32::from_bits(pattern));
    }

    #[test]
    fn any_f32_in_range_encodes_to_the_nearest_code(pattern in 0x3500_0000_u32..0x4800_0000) {
        check(f32::from_bits(pattern));
    }
}
