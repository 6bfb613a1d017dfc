//! BitNet's two-bit codes by kernels: the floats, bytes and errors of core, for every instruction set of this machine.

use proptest::prelude::*;
use tercet_core::block::i2_s::{self, Interleave};
use tercet_core::block::{BlockError, bitnet_hf};
use tercet_core::engine::BlockEngine;
use tercet_core::number::{Element, Random};
use tercet_core::{bf16, f16};
use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

/// Large enough to go past the caches.
const LARGE: usize = 3 << 19;

fn engines() -> impl Iterator<Item = Threads> {
    let tiles = [7, 100, 1 << 16, usize::MAX];
    Backend::all()
        .flat_map(move |backend| tiles.map(|tile| Threads::with_tile(tile).with_backend(backend)))
}

/// −0 and +0 differ here.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// Bytes with no two bits 3.
fn legal(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut pair = || random.below(3) as u8;
    (0..len)
        .map(|_| pair() | pair() << 2 | pair() << 4 | pair() << 6)
        .collect()
}

fn check_i2_s(layout: Interleave, bytes: &[u8], len: usize, offset: usize) {
    let mut expected = vec![f32::NAN; len];
    let expected_result = i2_s::decode(layout, bytes, &mut expected);
    for mut engine in engines() {
        let mut memory = vec![f32::NAN; len + offset];
        let found = &mut memory[offset..];
        let result = engine.decode_i2_s(layout, bytes, found);
        assert_eq!(result, expected_result, "{engine:?}");
        if result.is_ok() {
            assert!(bits(found) == bits(&expected), "{engine:?}");
        }
    }
}

fn i2_s_tensor(len: usize, scale: f32, seed: u64) -> Vec<u8> {
    let mut bytes = legal(len / 4, seed);
    bytes.extend(scale.to_le_bytes());
    bytes.extend([0xFF; 28]);
    bytes
}

fn check_decode(rows: usize, cols: usize, packed: &[u8], unit: f32, offset: usize) {
    let mut expected = vec![f32::NAN; rows * cols];
    let expected_result = bitnet_hf::decode(rows, cols, packed, unit, &mut expected);
    for mut engine in engines() {
        let mut memory = vec![f32::NAN; rows * cols + offset];
        let found = &mut memory[offset..];
        let result = engine.decode_bitnet_hf(rows, cols, packed, unit, found);
        assert_eq!(result, expected_result, "{engine:?}");
        if result.is_ok() {
            assert!(bits(found) == bits(&expected), "{engine:?}");
        }
    }
}

fn by_core<T: Element>(
    rows: usize,
    cols: usize,
    weights: &[T],
    s: f32,
) -> Result<Vec<u8>, BlockError> {
    let mut codes = vec![0; weights.len()];
    bitnet_hf::quantize(weights, s, &mut codes)?;
    let mut packed = vec![0xA5; bitnet_hf::packed_len(rows, cols)?];
    bitnet_hf::pack(rows, cols, &codes, &mut packed)?;
    Ok(packed)
}

fn check_encode<T: Element>(rows: usize, cols: usize, weights: &[T], s: f32) {
    let expected = by_core(rows, cols, weights, s);
    let mut packed = vec![0x5A; bitnet_hf::packed_len(rows, cols).unwrap()];
    let at_once = bitnet_hf::encode(rows, cols, weights, s, &mut packed);
    assert!(at_once.map(|()| packed) == expected);
    for mut engine in engines() {
        let mut packed = vec![0x5A; bitnet_hf::packed_len(rows, cols).unwrap()];
        let found = engine.encode_bitnet_hf(rows, cols, weights, s, &mut packed);
        assert!(found.map(|()| packed) == expected, "{engine:?}");
    }
}

/// Weights about one, ties of the rounding among them, and every extreme.
fn weights(len: usize, s: f32, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    let tie = 0.5 / s;
    let special = [
        tie,
        -tie,
        f32::from_bits(tie.to_bits() + 1),
        -f32::from_bits(tie.to_bits() + 1),
        f32::from_bits(tie.to_bits() - 1),
        0.0,
        -0.0,
        f32::MAX,
        f32::MIN,
        f32::from_bits(1),
    ];
    let mut draw = || match random.below(3) {
        0 => special[random.below(10) as usize],
        _ => (random.below(1 << 20) as f32 / (1 << 19) as f32 - 1.0) / s,
    };
    (0..len).map(|_| draw()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn i2_s_decodes_as_core(groups in 0usize..40, scale in 0.0f32..10.0, seed: u64, offset in 0usize..17) {
        for layout in [Interleave::X86x128, Interleave::Arm64] {
            let len = groups * layout.group();
            check_i2_s(layout, &i2_s_tensor(len, scale, seed), len, offset);
        }
    }

    #[test]
    fn packed_rows_decode_as_core(rows in 0usize..10, cols in 0usize..200, seed: u64, offset in 0usize..17) {
        let mut packed = legal(bitnet_hf::packed_len(rows, cols).unwrap(), seed);
        if rows == 1 {
            // Bits of rows past the last are not looked at.
            packed.iter_mut().for_each(|byte| *byte |= 0b11_11_11_00);
        }
        check_decode(rows, cols, &packed, 0.3, offset);
    }

    #[test]
    fn rows_are_coded_and_packed_as_by_core(rows in 0usize..10, cols in 0usize..200, s in 1e-3f32..1e3, seed: u64) {
        let weights = weights(rows * cols, s, seed);
        check_encode(rows, cols, &weights, s);
        let halves: Vec<f16> = weights.iter().map(|x| f16::from_f32(x.clamp(-6e4, 6e4))).collect();
        check_encode(rows, cols, &halves, s);
        let brains: Vec<bf16> = weights.iter().map(|x| bf16::from_f32(x.clamp(-1e30, 1e30))).collect();
        check_encode(rows, cols, &brains, s);
    }
}

#[test]
fn large_tensors_go_past_the_caches() {
    for (layout, offset) in [(Interleave::X86x128, 0), (Interleave::Arm64, 5)] {
        check_i2_s(layout, &i2_s_tensor(LARGE, 0.25, 1), LARGE, offset);
    }
    let packed = legal(LARGE / 4, 2);
    check_decode(4 * 3, LARGE / 12, &packed, 1.5, 3);
}

/// Zero times −1 is −0.
#[test]
fn scales_at_their_ends() {
    for scale in [
        0.0,
        f32::from_bits(1),
        f32::MAX,
        -1.0,
        f32::NAN,
        f32::INFINITY,
    ] {
        check_i2_s(Interleave::Arm64, &i2_s_tensor(640, scale, 4), 640, 1);
        check_encode(4, 100, &weights(400, 1.0, 6), scale);
        check_encode(4, 100, &[0.0f32; 400], scale);
    }
    for unit in [0.0, f32::from_bits(1), f32::MAX, -1.0] {
        check_decode(4, 100, &legal(100, 5), unit, 1);
    }
}

#[test]
fn every_place_of_a_wrong_code_is_named() {
    let shifts = || [0, 2, 4, 6].into_iter().cycle();
    for layout in [Interleave::X86x128, Interleave::Arm64] {
        for (place, shift) in (0..96).step_by(7).zip(shifts()) {
            let mut bytes = i2_s_tensor(384, 1.0, 7);
            bytes[place] |= 3 << shift;
            bytes[95] |= 3;
            check_i2_s(layout, &bytes, 384, 0);
        }
    }
    for (place, shift) in (0..100).step_by(9).zip(shifts()) {
        let mut packed = legal(100, 8);
        packed[place] |= 3 << shift;
        check_decode(4, 100, &packed, 1.0, 0);
        check_decode(8, 50, &packed, 1.0, 0);
        let mut weights = weights(400, 1.0, 9);
        weights[4 * place + shift / 2] = [f32::NAN, f32::INFINITY, -f32::INFINITY][place % 3];
        weights[399] = f32::NAN;
        check_encode(4, 100, &weights, 1.0);
        check_encode(5, 80, &weights, 1.0);
    }
}

#[test]
fn lengths_that_do_not_fit_are_refused_as_by_core() {
    check_i2_s(Interleave::Arm64, &[0; 32], 65, 0);
    check_i2_s(Interleave::Arm64, &[0; 47], 64, 0);
    check_decode(4, 4, &[0; 5], 1.0, 0);
    let mut engine = Threads::default();
    let (expected, found) = (16, 15);
    let refused = engine.encode_bitnet_hf(4, 4, &[0.0f32; 15], 1.0, &mut [0; 4]);
    assert_eq!(refused, Err(BlockError::Length { expected, found }));
    let (expected, found) = (4, 3);
    let refused = engine.encode_bitnet_hf(4, 4, &[0.0f32; 16], 1.0, &mut [0; 3]);
    assert_eq!(refused, Err(BlockError::Length { expected, found }));
    let refused = engine.encode_bitnet_hf(usize::MAX, 2, &[0.0f32], 1.0, &mut [0]);
    assert_eq!(refused, Err(BlockError::TooLarge { len: usize::MAX }));
}
