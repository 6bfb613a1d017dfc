//! Laws of activations that are normalized and quantized.

use proptest::collection::vec;
use proptest::prelude::*;
use tercet_core::number::dot;
use tercet_core::quant::QuantError;
use tercet_core::quant::activations::{self, Activations, Norm};

/// Codes widened, and scales.
fn quantize(
    x: &[f32],
    norm: Option<Norm<'_>>,
    rows: usize,
    wide: bool,
) -> (Result<(), QuantError>, Vec<i32>, Vec<f32>) {
    let (mut a8, mut a16) = (vec![99i8; x.len()], vec![99i16; x.len()]);
    let mut scales = vec![99.0; rows];
    let out = match wide {
        false => Activations::A8(&mut a8),
        true => Activations::A16(&mut a16),
    };
    let done = activations::quantize(x, norm, out, &mut scales);
    let codes = match wide {
        false => a8.into_iter().map(i32::from).collect(),
        true => a16.into_iter().map(i32::from).collect(),
    };
    (done, codes, scales)
}

const fn limit(wide: bool) -> f32 {
    if wide { 32_512.0 } else { 127.0 }
}

/// Rows of one length, gains for it, and ε.
fn rows() -> impl Strategy<Value = (Vec<f32>, usize, Vec<f32>, f32)> {
    (1usize..200, 1usize..5, -20i32..20).prop_flat_map(|(cols, rows, exponent)| {
        let unit = 2f32.powi(exponent);
        let x = vec((-8f32..8.0).prop_map(move |x| x * unit), cols * rows);
        let eps = prop_oneof![Just(0.0f32), Just(1e-5), Just(1e-6)];
        (x, Just(cols), vec(-2f32..2.0, cols), eps)
    })
}

proptest! {
    #[test]
    fn codes_and_scales_follow_the_formula((x, cols, gains, eps) in rows(), wide in any::<bool>()) {
        let norm = Norm { gains: &gains, eps };
        let (done, codes, scales) = quantize(&x, Some(norm), x.len() / cols, wide);
        prop_assert_eq!(done, Ok(()));
        for ((x, codes), scale) in x.chunks(cols).zip(codes.chunks(cols)).zip(scales) {
            let y: Vec<f32> = x.iter().zip(&gains).map(|(x, gain)| x * gain).collect();
            let largest = y.iter().fold(0f32, |max, y| max.max(y.abs()));
            let mean = dot(x, x).unwrap() / cols as f32;
            let root = (mean + eps).sqrt();
            if largest == 0.0 {
                prop_assert!(scale == 0.0 && codes.iter().all(|&code| code == 0));
                continue;
            }
            let factor = limit(wide) / largest;
            for (&code, y) in codes.iter().zip(&y) {
                prop_assert_eq!(code as f32, (y * factor).round_ties_even());
                // Within half a step of what is meant.
                let meant = f64::from(*y) / f64::from(root);
                let error = (f64::from(code) * f64::from(scale) - meant).abs();
                prop_assert!(error <= f64::from(scale) * 0.51, "{error} {scale}");
            }
            prop_assert_eq!(scale.to_bits(), (largest / root / limit(wide)).to_bits());
        }
    }

    #[test]
    fn without_a_norm_the_largest_magnitude_is_the_scale((x, cols, _, _) in rows(), wide in any::<bool>()) {
        let (done, codes, scales) = quantize(&x, None, x.len() / cols, wide);
        prop_assert_eq!(done, Ok(()));
        for ((x, codes), scale) in x.chunks(cols).zip(codes.chunks(cols)).zip(scales) {
            let largest = x.iter().fold(0f32, |max, x| max.max(x.abs()));
            prop_assert_eq!(scale.to_bits(), (largest / limit(wide)).to_bits());
            let most = codes.iter().map(|code| code.abs()).max();
            prop_assert_eq!(most, Some(if largest == 0.0 { 0 } else { limit(wide) as i32 }));
        }
    }

    #[test]
    fn a_row_does_not_depend_on_the_others((x, cols, gains, eps) in rows(), wide in any::<bool>()) {
        let norm = Some(Norm { gains: &gains, eps });
        let (_, codes, scales) = quantize(&x, norm, x.len() / cols, wide);
        for (row, x) in x.chunks(cols).enumerate() {
            let (_, alone, scale) = quantize(x, norm, 1, wide);
            prop_assert_eq!(&codes[row * cols..][..cols], &alone[..]);
            prop_assert_eq!(scales[row].to_bits(), scale[0].to_bits());
        }
    }

    #[test]
    fn a_power_of_two_cancels((x, cols, gains, _) in rows(), exponent in -10i32..10, wide in any::<bool>()) {
        let norm = Some(Norm { gains: &gains, eps: 0.0 });
        let before = quantize(&x, norm, x.len() / cols, wide);
        let x: Vec<f32> = x.iter().map(|x| x * 2f32.powi(exponent)).collect();
        prop_assert_eq!(before, quantize(&x, norm, x.len() / cols, wide));
    }
}

#[test]
fn both_planes_of_a_wide_code_lie_within_127() {
    for code in -32_512..=32_512i16 {
        let (mut high, mut low) = ([0; 1], [0; 1]);
        activations::planes(&[code], &mut high, &mut low);
        let [high, low] = [high[0], low[0]].map(i32::from);
        assert_eq!(high * 255 + low, i32::from(code));
        assert!(high.abs() <= 127 && low.abs() <= 127, "{code}");
    }
}

#[test]
fn a_row_that_is_not_finite_is_named_and_leaves_the_others() {
    let clean: Vec<f32> = (0..40).map(|i| i as f32 - 17.0).collect();
    let gains = [1.0; 8];
    let norm = Some(Norm {
        gains: &gains,
        eps: 1e-5,
    });
    let (_, codes, scales) = quantize(&clean, norm, 5, false);
    // NaN, infinities, and a magnitude whose square is beyond f32.
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e20] {
        let mut x = clean.clone();
        (x[11], x[30]) = (bad, bad);
        let (done, found, found_scales) = quantize(&x, norm, 5, false);
        assert_eq!(done, Err(QuantError::RowNotFinite { row: 1 }), "{bad}");
        for row in 0..5 {
            let spoiled = row == 1 || row == 3;
            let expected = if spoiled {
                &[0; 8]
            } else {
                &codes[8 * row..][..8]
            };
            assert_eq!(&found[8 * row..][..8], expected);
            assert_eq!(found_scales[row].is_nan(), spoiled);
            assert!(spoiled || found_scales[row] == scales[row]);
        }
    }
    // Gains can do it too, and a root of 0 where there is something to divide by it.
    let huge = [f32::MAX; 8];
    let norm = Some(Norm {
        gains: &huge,
        eps: 0.0,
    });
    let refused = Err(QuantError::RowNotFinite { row: 0 });
    assert_eq!(quantize(&[2.0; 8], norm, 1, true).0, refused);
    let norm = Some(Norm {
        gains: &gains,
        eps: 0.0,
    });
    assert_eq!(quantize(&[1e-30; 8], norm, 1, true).0, refused);
}

#[test]
fn what_is_too_small_for_a_reciprocal_becomes_zeros() {
    let tiny = f32::from_bits(1);
    for x in [[0.0, -0.0, 0.0], [tiny, -tiny, 0.0]] {
        let done = quantize(&x, None, 1, true);
        assert_eq!(done, (Ok(()), vec![0; 3], vec![0.0]));
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let mut codes = [0i8; 6];
    let mut quantize = |x: &[f32], gains: Option<&[f32]>, codes_len: usize, rows: usize| {
        let norm = gains.map(|gains| Norm { gains, eps: 0.0 });
        let out = Activations::A8(&mut codes[..codes_len]);
        activations::quantize(x, norm, out, &mut vec![0.0; rows])
    };
    let length = |expected, found| Err(QuantError::Length { expected, found });
    assert_eq!(quantize(&[1.0; 6], None, 5, 2), length(6, 5));
    assert_eq!(quantize(&[1.0; 6], Some(&[1.0; 2]), 6, 2), length(3, 2));
    let (len, group_len) = (6, 1);
    let partial = Err(QuantError::GroupLength { len, group_len });
    assert_eq!(quantize(&[1.0; 6], None, 6, 4), partial);
    let (len, group_len) = (6, 0);
    let none = Err(QuantError::GroupLength { len, group_len });
    assert_eq!(quantize(&[1.0; 6], None, 6, 0), none);
    let (len, group_len) = (0, 0);
    let empty = Err(QuantError::GroupLength { len, group_len });
    assert_eq!(quantize(&[], None, 0, 2), empty);
    assert_eq!(quantize(&[], None, 0, 0), Ok(()));
}
