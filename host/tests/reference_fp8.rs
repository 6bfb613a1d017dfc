//! FP8 codecs against ml_dtypes.

use crate::support;
use std::ffi::OsStr;
use std::fs;

use tercet_core::f16;
use tercet_core::number::Random;
use tercet_core::quant::fp8::{Fp8, Overflow};

/// Random f32 patterns beside the systematic ones.
const RANDOM: usize = 1 << 20;

/// Every f16, every f32 whose low 16 bits are 0, 1 or all ones (each FP8 midpoint and its neighbours
/// among them), and random patterns, half of them within the formats' range.
fn values() -> Vec<f32> {
    let mut values: Vec<f32> = (0..=u16::MAX)
        .map(|half| f16::from_bits(half).to_f32())
        .collect();
    for high in 0..=u32::from(u16::MAX) {
        values.extend([0, 1, 0xFFFF].map(|low| f32::from_bits(high << 16 | low)));
    }
    let mut random = Random::new(8);
    for _ in 0..RANDOM / 2 {
        let draw = random.next_u64();
        let exponent = 100 + random.below(45) as u32;
        values.push(f32::from_bits(draw as u32));
        values.push(f32::from_bits(
            (draw >> 32) as u32 & 0x807F_FFFF | exponent << 23,
        ));
    }
    values
}

#[test]
fn fp8_equals_ml_dtypes() {
    let Some(python) = support::python_with(&["numpy", "ml_dtypes"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let values = values();
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    fs::write(path("in"), bytes).unwrap();

    for (format, name) in [(Fp8::E4M3, "e4m3"), (Fp8::E5M2, "e5m2")] {
        let files = [path("in"), path("codes"), path("values")];
        let args = files.iter().map(|file| file.as_os_str());
        support::run(
            &python,
            "fp8.py",
            [OsStr::new(name)].into_iter().chain(args),
        );

        let decoded = fs::read(path("values")).unwrap();
        assert_eq!(decoded.len(), 4 * 256);
        for (code, expected) in (0..=u8::MAX).zip(decoded.chunks_exact(4)) {
            let expected = f32::from_le_bytes(expected.try_into().unwrap());
            let found = format.decode(code);
            let same = found.to_bits() == expected.to_bits();
            assert!(
                same || (found.is_nan() && expected.is_nan()),
                "{name} code {code:#x}"
            );
        }

        let codes = fs::read(path("codes")).unwrap();
        assert_eq!(codes.len(), values.len());
        let mut saturated = 0;
        for (&x, &expected) in values.iter().zip(&codes) {
            assert_eq!(
                format.encode(x, Overflow::Special),
                expected,
                "{name} {x:e}"
            );
            let value = format.decode(expected);
            let over = !value.is_finite() && !x.is_nan();
            let clipped = if over {
                expected & 0x80 | format.max_code()
            } else {
                expected
            };
            assert_eq!(
                format.encode(x, Overflow::Saturate),
                clipped,
                "{name} {x:e}"
            );
            saturated += u32::from(over);
        }
        assert!(saturated > 1000);
        println!(
            "{name}: {} values and 256 codes equal ml_dtypes",
            values.len()
        );
    }
}
