//! Laws of the layouts that BitNet models are stored in.

use proptest::collection::vec;
use proptest::prelude::*;
use tercet_core::block::BlockError;
use tercet_core::block::bitnet_hf::{self, WeightScale};
use tercet_core::block::i2_s::{self, Interleave};
use tercet_core::{bf16, f16};

const LAYOUTS: [Interleave; 2] = [Interleave::X86x128, Interleave::Arm64];

/// An I2_S tensor, by the index rule alone: value i of a group lies in byte i mod lane, at bits 6 − 2 (i / lane).
fn i2_s_tensor(layout: Interleave, codes: &[i8], scale: f32) -> Vec<u8> {
    let lane = layout.group() / 4;
    let mut bytes = vec![0; codes.len() / 4];
    for (index, &code) in codes.iter().enumerate() {
        let (group, i) = (index / layout.group(), index % layout.group());
        bytes[group * lane + i % lane] |= ((code + 1) as u8) << (6 - 2 * (i / lane));
    }
    bytes.extend(scale.to_le_bytes());
    bytes.extend([0xEE; 28]);
    bytes
}

#[test]
fn i2_s_refuses_bits_three_with_the_lowest_index() {
    for layout in LAYOUTS {
        let mut codes = vec![0i8; 256];
        codes[130] = 2;
        codes[129 + layout.group() / 4] = 2;
        let tensor = i2_s_tensor(layout, &codes, 1.0);
        let refused = Err(BlockError::CodeRange { index: 130 });
        assert_eq!(i2_s::codes(layout, &tensor, &mut [0; 256]), refused);
        let refused = Err(BlockError::CodeRange { index: 130 });
        assert_eq!(i2_s::decode(layout, &tensor, &mut [0.0; 256]), refused);
    }
}

#[test]
fn i2_s_refuses_other_sizes_and_scales() {
    let tensor = i2_s_tensor(Interleave::Arm64, &[0; 192], 1.0);
    let partial = BlockError::Partial {
        len: 192,
        block: 128,
    };
    assert_eq!(
        i2_s::codes(Interleave::X86x128, &tensor, &mut [0; 192]),
        Err(partial)
    );
    let length = BlockError::Length {
        expected: 80,
        found: 79,
    };
    assert_eq!(
        i2_s::codes(Interleave::Arm64, &tensor[..79], &mut [0; 192]),
        Err(length)
    );
    for scale in [f32::NAN, f32::INFINITY, -1.0] {
        let tensor = i2_s_tensor(Interleave::Arm64, &[0; 64], scale);
        assert_eq!(
            i2_s::codes(Interleave::Arm64, &tensor, &mut [0; 64]),
            Err(BlockError::Scale)
        );
    }
    let zeros = i2_s_tensor(Interleave::Arm64, &[0; 64], 0.0);
    assert_eq!(
        i2_s::codes(Interleave::Arm64, &zeros, &mut [0; 64]),
        Ok(0.0)
    );
}

#[test]
fn i2_s_refuses_to_encode_what_it_cannot_hold_and_leaves_the_output() {
    let mut codes = vec![0i8; 256];
    let mut out = vec![0xEE; 256 / 4 + 32];
    let refused = |codes: &[i8], scale, out: &mut [u8]| {
        let error = i2_s::encode(Interleave::X86x128, codes, scale, out).unwrap_err();
        assert!(out.iter().all(|&byte| byte == 0xEE), "{error:?}");
        error
    };
    let partial = BlockError::Partial {
        len: 192,
        block: 128,
    };
    assert_eq!(refused(&codes[..192], 1.0, &mut out[..80]), partial);
    let length = BlockError::Length {
        expected: 96,
        found: 95,
    };
    assert_eq!(refused(&codes, 1.0, &mut out[..95]), length);
    for scale in [f32::NAN, f32::INFINITY, -1.0] {
        assert_eq!(refused(&codes, scale, &mut out), BlockError::Scale);
    }
    for other in [2, -2, i8::MAX, i8::MIN] {
        (codes[131], codes[200]) = (other, other);
        let range = BlockError::CodeRange { index: 131 };
        assert_eq!(refused(&codes, 1.0, &mut out), range);
    }
}

#[test]
fn layout_names_lead_back() {
    for layout in LAYOUTS {
        assert_eq!(Interleave::from_name(layout.name()), Some(layout));
    }
    assert_eq!(Interleave::from_name("x86"), None);
}

#[test]
fn ties_go_to_zero_and_large_weights_are_clipped() {
    let weights = [
        0.5f32,
        -0.5,
        0.50000006,
        -0.50000006,
        1.5,
        -9.0,
        0.0,
        -0.0,
        f32::MAX,
    ];
    let mut codes = [9i8; 9];
    bitnet_hf::quantize(&weights, 1.0, &mut codes).unwrap();
    assert_eq!(codes, [0, 0, 1, -1, 1, -1, 0, 0, 1]);
}

#[test]
fn the_scale_is_one_over_the_mean_but_no_more_than_a_hundred_thousand() {
    assert_eq!(bitnet_hf::scale(&[0.5f32, -1.0, 0.0, 0.5]), Ok(2.0));
    assert_eq!(bitnet_hf::scale(&[0f32; 3]), Ok(1.0 / 1e-5));
    assert_eq!(bitnet_hf::scale::<f32>(&[]), Err(BlockError::Empty));
    let bad = [1.0, f32::NAN, f32::INFINITY];
    assert_eq!(
        bitnet_hf::scale(&bad),
        Err(BlockError::NotFinite { index: 1 })
    );
}

#[test]
fn weights_and_scales_that_are_not_finite_are_refused() {
    let mut codes = [0; 2];
    let refused = Err(BlockError::NotFinite { index: 1 });
    assert_eq!(
        bitnet_hf::quantize(&[1.0, f32::NAN], 1.0, &mut codes),
        refused
    );
    assert_eq!(
        bitnet_hf::quantize(&[f16::ONE, f16::INFINITY], 1.0, &mut codes),
        refused
    );
    for s in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        assert_eq!(
            bitnet_hf::quantize(&[1f32; 2], s, &mut codes),
            Err(BlockError::Scale)
        );
    }
    let length = BlockError::Length {
        expected: 3,
        found: 2,
    };
    assert_eq!(
        bitnet_hf::quantize(&[1f32; 3], 1.0, &mut codes),
        Err(length)
    );
}

#[test]
fn packing_refuses_other_codes_and_lengths() {
    let mut packed = [0; 6];
    let range = Err(BlockError::CodeRange { index: 4 });
    assert_eq!(
        bitnet_hf::pack(2, 3, &[0, 1, -1, 0, 2, -2], &mut packed[..3]),
        range
    );
    let length = BlockError::Length {
        expected: 3,
        found: 6,
    };
    assert_eq!(bitnet_hf::pack(2, 3, &[0; 6], &mut packed), Err(length));
    let length = BlockError::Length {
        expected: 6,
        found: 5,
    };
    assert_eq!(
        bitnet_hf::pack(2, 3, &[0; 5], &mut packed[..3]),
        Err(length)
    );
    // Rows 0 to 4 of 2 columns: byte row 1 holds rows 1 and 3, and nothing of row 5.
    let range = Err(BlockError::CodeRange { index: 3 * 2 + 1 });
    assert_eq!(
        bitnet_hf::unpack(5, 2, &[0, 0, 0, 0b1100], &mut [0; 10]),
        range
    );
    assert_eq!(
        bitnet_hf::unpack(5, 2, &[0, 0, 0, 0b110000], &mut [0; 10]),
        Ok(())
    );
    let large = BlockError::TooLarge { len: usize::MAX };
    assert_eq!(bitnet_hf::packed_len(usize::MAX, 2), Err(large));
}

#[test]
fn both_kinds_of_weight_scale_mean_the_same_unit() {
    let s = bitnet_hf::scale_of_mean(0.015);
    let divisor = WeightScale::Divisor.stored(s);
    let multiplier = WeightScale::Multiplier.stored(s);
    assert_eq!((divisor, multiplier), (s, 1.0 / s));
    assert_eq!(
        WeightScale::Divisor.unit(divisor),
        WeightScale::Multiplier.unit(multiplier)
    );
    for kind in [WeightScale::Divisor, WeightScale::Multiplier] {
        for stored in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert_eq!(kind.unit(stored), Err(BlockError::Scale));
        }
    }
}

proptest! {
    #[test]
    fn i2_s_decodes_by_the_index_rule(
        layout in prop::sample::select(&LAYOUTS[..]),
        drawn in vec(-1i8..=1, 0..5 * 128),
        scale in 0f32..10.0,
    ) {
        let len = drawn.len() / 128 * 128;
        let tensor = i2_s_tensor(layout, &drawn[..len], scale);
        prop_assert_eq!(i2_s::encoded_len(layout, len), Ok(tensor.len()));
        let (mut found, mut floats) = (vec![9; len], vec![9.0; len]);
        prop_assert_eq!(i2_s::codes(layout, &tensor, &mut found), Ok(scale));
        prop_assert_eq!(&found, &drawn[..len]);
        i2_s::decode(layout, &tensor, &mut floats).unwrap();
        for (y, &code) in floats.iter().zip(&found) {
            prop_assert_eq!(y.to_bits(), (f32::from(code) * scale).to_bits());
        }
    }

    #[test]
    fn i2_s_encodes_by_the_index_rule(
        layout in prop::sample::select(&LAYOUTS[..]),
        drawn in vec(-1i8..=1, 0..5 * 128),
        scale in 0f32..10.0,
    ) {
        let codes = &drawn[..drawn.len() / 128 * 128];
        let mut expected = i2_s_tensor(layout, codes, scale);
        expected[codes.len() / 4 + 4..].fill(0);
        let mut tensor = vec![0xEE; expected.len()];
        prop_assert_eq!(i2_s::encode(layout, codes, scale, &mut tensor), Ok(()));
        prop_assert_eq!(tensor, expected);
    }

    #[test]
    fn unpacking_gives_back_what_was_packed(
        rows in 0..14usize,
        cols in 0..9usize,
        drawn in vec(-1i8..=1, 14 * 9),
        unit in 0.001f32..10.0,
    ) {
        let codes = &drawn[..rows * cols];
        let mut packed = vec![0xFF; bitnet_hf::packed_len(rows, cols).unwrap()];
        bitnet_hf::pack(rows, cols, codes, &mut packed).unwrap();
        let (mut found, mut floats) = (vec![9; codes.len()], vec![9.0; codes.len()]);
        bitnet_hf::unpack(rows, cols, &packed, &mut found).unwrap();
        prop_assert_eq!(&found, codes);
        bitnet_hf::decode(rows, cols, &packed, unit, &mut floats).unwrap();
        let expected: Vec<f32> = codes.iter().map(|&code| f32::from(code) * unit).collect();
        prop_assert_eq!(floats, expected);
    }

    #[test]
    fn a_tensor_of_halves_has_the_codes_of_its_widened_copy(
        weights in vec(-2f32..2.0, 1..200),
    ) {
        let half: Vec<bf16> = weights.iter().map(|&w| bf16::from_f32(w)).collect();
        let copy: Vec<f32> = half.iter().map(|w| w.to_f32()).collect();
        let s = bitnet_hf::scale(&half).unwrap();
        prop_assert_eq!(bitnet_hf::scale(&copy), Ok(s));
        let (mut ours, mut wide) = (vec![0; copy.len()], vec![0; copy.len()]);
        bitnet_hf::quantize(&half, s, &mut ours).unwrap();
        bitnet_hf::quantize(&copy, s, &mut wide).unwrap();
        prop_assert_eq!(ours, wide);
    }
}
