//! Eight-bit floats on a device have core's bits.

use std::fmt::Debug;

use crate::support::emulator::device;
use tercet_core::number::{Element, Random, Stats};
use tercet_core::quant::QuantError;
use tercet_core::quant::fp8::Fp8;
use tercet_core::{bf16, f16};
use tercet_gpu::engine::{Cuda, CudaError};

const FORMATS: [Fp8; 2] = [Fp8::E4M3, Fp8::E5M2];

/// Patterns of every finite exponent, and what lies between two codes of a format, to the last bit on each side.
fn values(len: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..len)
        .map(|index| {
            let bits = random.next_u64();
            let code = FORMATS[index % 2].decode((bits >> 40) as u8);
            let x = match bits % 3 {
                0 => f32::from_bits(bits as u32),
                1 => code * 1.125,
                _ => f32::from_bits((code * 1.0625).to_bits().wrapping_add(bits as u32 >> 8 & 2)),
            };
            if x.is_finite() { x } else { 1.0 }
        })
        .collect()
}

/// Codes, floats, extremes and refusals by both.
fn check<T: Element + Debug>(cuda: &mut Cuda, values: &[T], scale: f32) {
    let resident = cuda.upload(values).unwrap();
    let found = cuda.extremes(&resident).unwrap();
    assert_eq!(found, Stats::extremes_of(values));
    assert_eq!(cuda.stats(&resident).unwrap(), Stats::of(values));
    for format in FORMATS {
        let mut expected = vec![0x55; values.len()];
        let mut codes = cuda.zeros::<u8>(values.len()).unwrap();
        let result = format.quantize(scale, values, &mut expected);
        let found = cuda.quantize_resident_fp8(format, scale, &resident, &mut codes);
        assert_eq!(found, result.map_err(CudaError::from), "{format:?} {scale}");
        if result.is_err() {
            continue;
        }
        let mut there = vec![0; values.len()];
        cuda.read(&codes, &mut there).unwrap();
        assert_eq!(there, expected, "{format:?} {scale}");
    }
}

#[test]
fn codes_are_the_references() {
    let Some(device) = device() else { return };
    for (seed, len) in [0, 1, 3, 16, 17, 4099, 20_000].into_iter().enumerate() {
        device.set(&format!("seed={seed}"));
        let mut cuda = Cuda::first().unwrap();
        let values = values(len, seed as u64);
        for scale in [1.0, 0.37, 1e-30, f32::MIN_POSITIVE / 8.0, 3e38] {
            check(&mut cuda, &values, scale);
        }
        let narrow: Vec<f16> = values
            .iter()
            .map(|&x| f16::from_f32(x.clamp(-6e4, 6e4)))
            .collect();
        check(&mut cuda, &narrow, 0.25);
        let narrow: Vec<bf16> = values
            .iter()
            .map(|&x| bf16::from_f32(x.clamp(-1e38, 1e38)))
            .collect();
        check(&mut cuda, &narrow, 7.0);
    }
}

/// Between two codes of a format, and times a scale: up to four patterns off a tie.
#[test]
fn values_beside_ties_get_the_references_codes() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let mut random = Random::new(5);
    for scale in [
        0.37,
        1.1e-30,
        7.3e25,
        // Where reciprocals become subnormal, and infinite.
        f32::from_bits(0x7E80_0000),
        f32::from_bits(0x7E80_0001),
        f32::MIN_POSITIVE / 3.0,
        f32::MIN_POSITIVE / 4.0,
        f32::from_bits(7),
    ] {
        let values: Vec<f32> = (0..6000)
            .map(|index| {
                let format = FORMATS[index % 2];
                let code = random.below(u64::from(format.max_code()) + 1) as u8;
                let above = match code == format.max_code() {
                    true => format.max() * 1.25,
                    false => format.decode(code + 1),
                };
                let tie = (f64::from(format.decode(code)) + f64::from(above)) / 2.0;
                let pattern = (tie * f64::from(scale)).min(f64::from(f32::MAX)) as f32;
                let off = (pattern.to_bits() + random.below(9) as u32).saturating_sub(4);
                let x = f32::from_bits(off.min(f32::MAX.to_bits()));
                if index % 3 == 0 { -x } else { x }
            })
            .collect();
        check(&mut cuda, &values, scale);
    }
}

#[test]
fn every_code_is_decoded_as_by_core() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let codes: Vec<u8> = (0..=255).chain(0..3).collect();
    let resident = cuda.upload(&codes).unwrap();
    for format in FORMATS {
        for scale in [1.0, -0.3, 1e-40, 1e38, 0.0] {
            let mut expected = vec![0.0; codes.len()];
            format.dequantize(scale, &codes, &mut expected).unwrap();
            let mut floats = cuda.zeros::<f32>(codes.len()).unwrap();
            cuda.dequantize_resident_fp8(format, scale, &resident, &mut floats)
                .unwrap();
            let mut found = vec![0.0; codes.len()];
            cuda.read(&floats, &mut found).unwrap();
            for (code, (found, expected)) in codes.iter().zip(found.iter().zip(&expected)) {
                // Which NaN a product of one is, is the machine's.
                let same =
                    found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
                assert!(same, "{format:?} {code} {scale}: {found} {expected}");
            }
        }
    }
}

#[test]
fn the_first_value_that_is_not_finite_is_named() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let mut values = values(5_000, 9);
    values[4_999] = f32::NEG_INFINITY;
    check(&mut cuda, &values, 1.0);
    values[17] = f32::NAN;
    check(&mut cuda, &values, 1.0);
    // A scale that cannot be used makes zeros of the others, and is no excuse for these.
    check(&mut cuda, &values, 0.0);
    check(&mut cuda, &values[..17], f32::INFINITY);
    check(&mut cuda, &values[..17], -1.0);
}

#[test]
fn buffers_of_other_lengths_are_refused() {
    let Some(_device) = device() else { return };
    let mut cuda = Cuda::first().unwrap();
    let values = cuda.upload(&[1.0_f32, 2.0]).unwrap();
    let mut codes = cuda.zeros::<u8>(3).unwrap();
    let length = |expected, found| Err(CudaError::Length { expected, found });
    let found = cuda.quantize_resident_fp8(Fp8::E4M3, 1.0, &values, &mut codes);
    assert_eq!(found, length(2, 3));
    let mut floats = cuda.zeros::<f32>(2).unwrap();
    let found = cuda.dequantize_resident_fp8(Fp8::E5M2, 1.0, &codes, &mut floats);
    assert_eq!(found, length(3, 2));
    let bad = cuda.upload(&[f16::INFINITY]).unwrap();
    let mut code = cuda.zeros::<u8>(1).unwrap();
    let found = cuda.quantize_resident_fp8(Fp8::E5M2, 1.0, &bad, &mut code);
    assert_eq!(found, Err(QuantError::NotFinite { index: 0 }.into()));
}
