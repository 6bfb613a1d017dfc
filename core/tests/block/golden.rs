//! Fixed inputs for the block encoders, and the digests of what ggml's reference makes of them.
//!
//! `edges.rs` compares Tercet with the digests anywhere; `host/tests/reference_blocks.rs` compares
//! ggml with them where ggml is at hand.

// Each test binary compiles its own copy.
#![allow(unreachable_pub)]

use tercet_core::block::Format;
use tercet_core::conformance::Digest;
use tercet_core::number::Random;

/// Digests of ggml's bytes for [`values`], and of the floats they decode to.
pub const DIGESTS: [(Format, u64, u64); 8] = [
    (Format::Tq1_0, 0x60E8_480C_B494_E957, 0xCBD7_71BC_6E60_E1D2),
    (Format::Tq2_0, 0xEE7E_FC9B_DF90_1661, 0xCBD7_71BC_6E60_E1D2),
    (Format::Q2_0, 0xEC54_8A85_D7AB_AC11, 0x4DA6_7325_7C61_ABB6),
    (Format::Q8_0, 0xC13B_36DC_3A4F_FDC3, 0x1C1D_6C2C_7B2E_BACE),
    (Format::Q4_0, 0xFE7C_3C00_2CD0_39DF, 0xA1BE_C5A5_BA11_4AD5),
    (Format::Q4_1, 0x5D09_94A3_BD44_0CB8, 0xFBFC_6F56_805E_1B03),
    (Format::Q5_0, 0xD3BF_3B03_FF2B_1C1B, 0x4236_9EA6_807E_AE3F),
    (Format::Q5_1, 0x74F9_207B_72AA_F573, 0xF9FA_084C_27E7_1024),
];

/// Digests of the floats that ggml decodes [`blocks`] to: of the formats that are read only.
pub const DECODED: [(Format, u64); 2] = [
    (Format::Q4K, 0x9553_8A51_FC85_1CB8),
    (Format::Q6K, 0x2A2D_47C5_86C5_DA0B),
];

/// 512 blocks of random bytes under finite scales and minima of every size.
pub fn blocks(format: Format) -> Vec<u8> {
    let mut random = Random::new(0x4B6B);
    let mut bytes = vec![0; 512 * format.bytes()];
    bytes.fill_with(|| random.next_u64() as u8);
    for block in bytes.chunks_exact_mut(format.bytes()) {
        for at in [Some(format.scale_offset()), format.min_offset()]
            .into_iter()
            .flatten()
        {
            let finite = random.below(0x7C00) as u16 | (random.below(2) as u16) << 15;
            block[at..at + 2].copy_from_slice(&finite.to_le_bytes());
        }
    }
    bytes
}

/// 64 blocks of 256 values, made of integers and exact steps: whole and half steps of a power of two, values
/// of all mantissas, of mixed exponents, zeros, and scales below the smallest f16.
pub fn values() -> Vec<f32> {
    let mut random = Random::new(0x7E5C_E7B1);
    let mut values = Vec::new();
    for block in 0..64 {
        let unit = f32::from_bits((127 - 40 + block) << 23).min(64.0);
        for _ in 0..256 {
            let draw = random.next_u64();
            let sign = if draw >> 63 == 0 { 1.0 } else { -1.0 };
            values.push(match block % 4 {
                0 => sign * unit * ((draw % 255) as f32 / 2.0),
                1 => sign * unit * ((draw % (1 << 24)) as f32 / 65_536.0),
                2 => {
                    let exponent = f32::from_bits((120 + draw as u32 % 14) << 23);
                    sign * unit * exponent * (1.0 + (draw >> 40 & 0xFFFF) as f32 / 65_536.0)
                }
                _ if block < 8 => sign * 0.0,
                _ => sign * unit * ((draw % 3) as f32 + (draw >> 32 & 1) as f32 / 4_194_304.0),
            });
        }
    }
    values
}

/// The digest of bytes.
pub fn digest(bytes: &[u8]) -> u64 {
    let mut digest = Digest::new();
    digest.bytes(bytes);
    digest.value()
}
