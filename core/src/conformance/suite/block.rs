//! Block formats and BitNet's two-bit tensors on any engine.

use super::{Digest, input};
use crate::block::{Format, bitnet_hf, i2_s};
use crate::engine::BlockEngine;
use crate::number::Random;
use crate::quant::{Rule, ScaleRule};

/// Number of bytes of the longest encoding of [`input::MAX`] values.
const BYTES: usize = 8 * 34;

pub(super) fn run<E: BlockEngine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    for format in Format::ALL {
        let [encode, decode, dot] = names(format);
        report(encode, encoding(engine, format));
        report(decode, decoding(engine, format));
        report(dot, product(engine, format));
    }
}

/// BitNet's tensors: I2_S, and Hugging Face's packing from floats to floats.
pub(super) fn two_bits<E: BlockEngine>(engine: &mut E, report: &mut dyn FnMut(&'static str, u64)) {
    report("block/i2_s", i2_s(engine));
    report("block/i2_s/encode", i2_s_bytes());
    report("block/bitnet_hf/values", hugging_face_values(engine));
}

fn names(format: Format) -> [&'static str; 3] {
    match format {
        Format::Tq1_0 => [
            "block/tq1_0/encode",
            "block/tq1_0/decode",
            "block/tq1_0/dot",
        ],
        Format::Tq2_0 => [
            "block/tq2_0/encode",
            "block/tq2_0/decode",
            "block/tq2_0/dot",
        ],
        Format::Q2_0 => ["block/q2_0/encode", "block/q2_0/decode", "block/q2_0/dot"],
        Format::Q8_0 => ["block/q8_0/encode", "block/q8_0/decode", "block/q8_0/dot"],
        Format::Q4_0 => ["block/q4_0/encode", "block/q4_0/decode", "block/q4_0/dot"],
        Format::Q4_1 => ["block/q4_1/encode", "block/q4_1/decode", "block/q4_1/dot"],
        Format::Q5_0 => ["block/q5_0/encode", "block/q5_0/decode", "block/q5_0/dot"],
        Format::Q5_1 => ["block/q5_1/encode", "block/q5_1/decode", "block/q5_1/dot"],
        Format::Q4K => ["block/q4_k/encode", "block/q4_k/decode", "block/q4_k/dot"],
        Format::Q6K => ["block/q6_k/encode", "block/q6_k/decode", "block/q6_k/dot"],
    }
}

/// Every rule over every input. Sizes that are not a whole number of blocks, and read-only formats, return errors
/// that are digested too.
#[inline(never)]
fn encoding<E: BlockEngine>(engine: &mut E, format: Format) -> u64 {
    let mut digest = Digest::new();
    for rule in [Rule::AbsMax, Rule::AbsMean, Rule::Twn, Rule::Optimal] {
        for scale in [ScaleRule::Rule, ScaleRule::LeastSquares] {
            input::for_each(5, &mut |values| {
                let mut bytes = [0; BYTES];
                let len = format.encoded_len(values.len()).unwrap_or(0);
                let Some(bytes) = bytes.get_mut(..len) else {
                    return;
                };
                let done = engine.encode_blocks(format, rule, scale, values, bytes);
                if let Some(done) = digest.outcome(done) {
                    digest.u64(done.blocks as u64);
                    digest.u64(done.flushed as u64);
                    digest.bytes(bytes);
                }
            });
        }
    }
    digest.value()
}

/// Random bytes with scales of every size; those that are not finite return errors that are digested too.
#[inline(never)]
fn decoding<E: BlockEngine>(engine: &mut E, format: Format) -> u64 {
    let mut digest = Digest::new();
    let mut random = Random::new(6);
    let mut out = [0.0; Format::MAX_LEN];
    for _ in 0..16 {
        let mut bytes = [0; BYTES];
        random_blocks(format, &mut random, &mut bytes);
        let Some(bytes) = bytes.get(..Format::MAX_LEN / format.len() * format.bytes()) else {
            continue;
        };
        if digest
            .outcome(engine.decode_blocks(format, bytes, &mut out))
            .is_some()
        {
            digest.f32s(&out);
        }
    }
    digest.value()
}

#[inline(never)]
fn product<E: BlockEngine>(engine: &mut E, format: Format) -> u64 {
    let mut digest = Digest::new();
    let mut random = Random::new(7);
    for round in 0..16 {
        let mut bytes = [0; BYTES];
        random_blocks(format, &mut random, &mut bytes);
        let Some(bytes) = bytes.get(..Format::MAX_LEN / format.len() * format.bytes()) else {
            continue;
        };
        let mut x = [0i8; Format::MAX_LEN];
        for value in &mut x {
            // One round in four with extreme values, for which sums are largest.
            *value = if round % 4 == 0 {
                -128
            } else {
                random.next_u64() as i8
            };
        }
        if let Some(y) = digest.outcome(engine.dot_blocks(format, bytes, &x, 0.0123)) {
            digest.f32(y);
        }
    }
    digest.value()
}

/// Random codes, scales and minima below f16's infinity. TQ1_0's random bytes include some that do not represent five
/// trits.
fn random_blocks(format: Format, random: &mut Random, bytes: &mut [u8]) {
    for byte in bytes.iter_mut() {
        *byte = random.next_u64() as u8;
    }
    for block in bytes.chunks_exact_mut(format.bytes()) {
        for at in [Some(format.scale_offset()), format.min_offset()] {
            let Some(slot) = at.and_then(|at| block.get_mut(at..at + 2)) else {
                continue;
            };
            // Exponents up to 30 of 31.
            let scale = random.below(0x7C00) as u16 | (random.below(2) as u16) << 15;
            slot.copy_from_slice(&scale.to_le_bytes());
        }
    }
}

/// Microsoft's I2_S in both layouts.
#[inline(never)]
fn i2_s<E: BlockEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    let mut random = Random::new(8);
    for layout in [i2_s::Interleave::X86x128, i2_s::Interleave::Arm64] {
        let mut bytes = [0u8; 64 + 32];
        for byte in bytes.iter_mut().take(64) {
            // Only codes 0 to 2; the test of code 3 is below.
            *byte = [0, 2, 4, 6]
                .iter()
                .fold(0, |byte, shift| byte | (random.below(3) as u8) << shift);
        }
        for scale in [0.75f32, 1.0e-40, f32::NAN] {
            if let Some(slot) = bytes.get_mut(64..68) {
                slot.copy_from_slice(&scale.to_le_bytes());
            }
            let mut out = [0.0; 256];
            if digest
                .outcome(engine.decode_i2_s(layout, &bytes, &mut out))
                .is_some()
            {
                digest.f32s(&out);
            }
        }
        bytes[17] = 0xFF;
        digest.outcome(engine.decode_i2_s(layout, &bytes, &mut [0.0; 256]));
    }
    digest.value()
}

/// Tensors of I2_S in both layouts. A number of codes that is not whole groups, a code that is none, and a scale that is
/// no number return errors.
#[inline(never)]
fn i2_s_bytes() -> u64 {
    let mut digest = Digest::new();
    let mut random = Random::new(11);
    for layout in [i2_s::Interleave::X86x128, i2_s::Interleave::Arm64] {
        for (len, scale) in [(256, 0.75), (128, 1.0e-40), (64, 3.0), (100, 1.0), (0, 0.5)] {
            let (mut codes, mut bytes) = ([0i8; 256], [0u8; 64 + 32]);
            for code in &mut codes {
                *code = random.below(3) as i8 - 1;
            }
            let (Some(codes), Some(bytes)) = (codes.get(..len), bytes.get_mut(..len / 4 + 32))
            else {
                continue;
            };
            digest.outcome(i2_s::encode(layout, codes, scale, bytes));
            digest.bytes(bytes);
        }
        let mut codes = [1i8; 128];
        let mut bytes = [7u8; 64];
        digest.outcome(i2_s::encode(layout, &codes, f32::NAN, &mut bytes));
        codes[77] = 2;
        digest.outcome(i2_s::encode(layout, &codes, 1.0, &mut bytes));
        // As they were.
        digest.bytes(&bytes);
    }
    digest.value()
}

/// Hugging Face's packing with odd and even numbers of rows.
#[inline(never)]
pub(super) fn hugging_face() -> u64 {
    let mut digest = Digest::new();
    for (rows, cols) in [(1usize, 31usize), (4, 51), (5, 51), (8, 31), (0, 7)] {
        let mut values = [0.0; 255];
        let Some(values) = values.get_mut(..rows * cols) else {
            continue;
        };
        input::Family::Bell.fill(9, values);
        let mut codes = [0; 255];
        let mut packed = [0; 102];
        let (Some(codes), Some(packed)) = (
            codes.get_mut(..rows * cols),
            packed.get_mut(..rows.div_ceil(4) * cols),
        ) else {
            continue;
        };
        let Some(s) = digest.outcome(bitnet_hf::scale(values)) else {
            continue;
        };
        digest.f32(s);
        digest.outcome(bitnet_hf::quantize(values, s, codes));
        digest.outcome(bitnet_hf::pack(rows, cols, codes, packed));
        digest.bytes(packed);
        digest.outcome(bitnet_hf::unpack(rows, cols, packed, codes));
        digest.i8s(codes);
    }
    digest.value()
}

/// The same matrices from floats to bytes and back. A weight that is not a number, and bits that are not a code,
/// return errors.
#[inline(never)]
fn hugging_face_values<E: BlockEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    for (rows, cols) in [(1usize, 31usize), (4, 51), (5, 51), (8, 31), (0, 7)] {
        let mut values = [0.0; 255];
        let mut packed = [0; 102];
        let (Some(values), Some(packed)) = (
            values.get_mut(..rows * cols),
            packed.get_mut(..rows.div_ceil(4) * cols),
        ) else {
            continue;
        };
        input::Family::Bell.fill(9, values);
        digest.outcome(engine.encode_bitnet_hf(rows, cols, values, 0.75, packed));
        digest.bytes(packed);
        digest.outcome(engine.decode_bitnet_hf(rows, cols, packed, 1.25, values));
        digest.f32s(values);
        if let Some(value) = values.last_mut() {
            *value = f32::NAN;
        }
        digest.outcome(engine.encode_bitnet_hf(rows, cols, values, 0.75, packed));
        if let Some(byte) = packed.first_mut() {
            *byte = 0b11;
        }
        digest.outcome(engine.decode_bitnet_hf(rows, cols, packed, 1.25, values));
    }
    digest.value()
}
