//! Fixed bits: ggml's digests, every digit, the ends of every range.

use tercet_core::block::{self, BlockError, Format, Ternary};
use tercet_core::f16;
use tercet_core::quant::{Rule, ScaleRule};

use super::{RULES, TERNARY, codes, decode, encode, golden};

#[test]
fn encoding_and_decoding_have_ggmls_digests() {
    let values = golden::values();
    for (format, encoded, decoded) in golden::DIGESTS {
        let bytes = encode(format, &values).unwrap();
        let floats = decode(format, &bytes);
        let floats: Vec<u8> = floats.iter().flat_map(|x| x.to_le_bytes()).collect();
        let found = (golden::digest(&bytes), golden::digest(&floats));
        assert_eq!(found, (encoded, decoded), "{format:?} {found:#x?}");
    }
}

#[test]
fn decoding_random_blocks_has_ggmls_digests() {
    for (format, decoded) in golden::DECODED {
        let floats = decode(format, &golden::blocks(format));
        let floats: Vec<u8> = floats.iter().flat_map(|x| x.to_le_bytes()).collect();
        let found = golden::digest(&floats);
        assert_eq!(found, decoded, "{format:?} {found:#x?}");
    }
}

/// The sums that come nearest to what 64 bits hold: every factor at its extreme.
#[test]
fn the_largest_blocks_of_k_quants_are_multiplied_exactly() {
    for (format, of_code, of_min) in [(Format::Q4K, 63 * 15, -63), (Format::Q6K, 128 * 32, 0)] {
        let mut block = vec![0xFF; format.bytes()];
        if format == Format::Q6K {
            // Codes of −32 and scales of −128.
            block[..192].fill(0);
            block[192..208].fill(0x80);
        }
        block[format.scale_offset()..][..2].copy_from_slice(&f16::MAX.to_le_bytes());
        if let Some(at) = format.min_offset() {
            // Less than none, so that both terms have one sign.
            block[at..][..2].copy_from_slice(&f16::MIN.to_le_bytes());
        }
        let largest = 65_504i128 << 24;
        for x in [-128i8, 127] {
            let expected = 256 * i128::from(x) * largest * (of_code - of_min);
            let found = block::dot_fixed(format, &block.repeat(3), &[x; 3 * 256]);
            assert_eq!(found, Ok(3 * expected), "{format:?} {x}");
        }
    }
}

/// As ggml's `get_scale_min_k4` says, for every pair of bits in every place.
#[test]
fn six_bit_factors_lie_where_ggml_has_them() {
    for bit in 0..96 {
        for rest in [0x00, 0xFF] {
            let mut block = [0xA5; 144];
            block[4..16].fill(rest);
            block[4 + bit / 8] ^= 1 << (bit % 8);
            let q = |at: usize| block[4 + at];
            for part in 0..8 {
                let (scale, min) = if part < 4 {
                    (q(part) & 63, q(part + 4) & 63)
                } else {
                    (
                        (q(part + 4) & 0xF) | ((q(part - 4) >> 6) << 4),
                        (q(part + 4) >> 4) | ((q(part) >> 6) << 4),
                    )
                };
                let found = Format::Q4K.factors(&block, part);
                assert_eq!(found, (scale as i8, -(min as i8)), "{bit} {part}");
            }
            assert_eq!(Format::Q4K.factors(&block, 8), (0, 0));
        }
    }
    assert_eq!(Format::Q4K.factors(&[0xFF; 15], 0), (0, 0));
    assert_eq!(Format::Q6K.factors(&[0xFF; 210], 16), (0, 0));
}

/// Every scale goes through this conversion; hosts use the processor's and others `half`'s own.
#[test]
fn scales_round_to_the_nearest_f16_ties_to_even() {
    let step = |x: f32, by: i32| f32::from_bits(x.to_bits().saturating_add_signed(by));
    for bits in 0..0x7C00u16 {
        let low = f16::from_bits(bits).to_f32();
        // What would follow the largest f16 is 65,536: from the middle on, infinity.
        let high = if bits == 0x7BFF {
            65_536.0
        } else {
            f16::from_bits(bits + 1).to_f32()
        };
        let middle = low + (high - low) / 2.0;
        let even = bits + (bits & 1);
        let expected = [
            (low, bits),
            (step(middle, -1), bits),
            (middle, even),
            (step(middle, 1), bits + 1),
        ];
        for (x, bits) in expected {
            assert_eq!(f16::from_f32(x).to_bits(), bits, "{x:e}");
            assert_eq!(f16::from_f32(-x).to_bits(), bits | 0x8000, "-{x:e}");
        }
    }
}

#[test]
fn names_and_type_numbers_lead_back() {
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.name()), Some(format));
        assert_eq!(
            Format::from_name(&format.name().to_uppercase()),
            Some(format)
        );
        assert_eq!(Format::from_gguf_type(format.gguf_type()), Some(format));
        assert_eq!(format.layout(), (format.len(), format.bytes()));
        assert!(format.len() <= Format::MAX_LEN);
        assert_eq!(format.parts() * format.part_len(), format.len());
    }
    assert_eq!(Format::from_name("q5_k"), None);
    assert_eq!(Format::from_gguf_type(0), None);
}

#[test]
fn every_five_digits_survive_tq1_0() {
    // Value v of a block's first byte has digits v / 81, v / 27 % 3, … in lanes 32 apart.
    for v in 0..243u32 {
        let mut values = [0f32; 256];
        for (lane, power) in [81, 27, 9, 3, 1].into_iter().enumerate() {
            values[lane * 32] = (v / power % 3) as f32 - 1.0;
            values[160 + lane * 16] = -values[lane * 32];
        }
        values[255] = 1.0;
        let bytes = encode(Format::Tq1_0, &values).unwrap();
        assert_eq!(decode(Format::Tq1_0, &bytes), values, "{v}");
        assert_eq!(u32::from(bytes[0]), (v * 256).div_ceil(243));
    }
}

#[test]
fn two_bit_code_three_is_plus_two_and_no_ternary_view() {
    for (format, byte, shift, index) in [
        (Format::Tq2_0, 33, 4, 128 + 64 + 1),
        (Format::Q2_0, 2 + 7, 6, 7 * 4 + 3),
    ] {
        let zeros = encode(format, &vec![0.0; format.len()]).unwrap();
        let mut bytes = [zeros.clone(), zeros].concat();
        assert_eq!(
            Ternary::new(format, &bytes).unwrap().len(),
            2 * format.len()
        );
        bytes[format.bytes() + byte] |= 3 << shift;
        let index = index + format.len();
        assert_eq!(codes(format, &bytes)[index], 2);
        assert_eq!(
            Ternary::new(format, &bytes),
            Err(BlockError::CodeRange { index })
        );
    }
}

#[test]
fn every_byte_of_tq1_0_is_ternary() {
    for byte in 0..=255 {
        let bytes = [byte; 54];
        assert!(
            codes(Format::Tq1_0, &bytes)
                .iter()
                .all(|code| (-1..=1).contains(code))
        );
        assert!(Ternary::new(Format::Tq1_0, &bytes).is_ok());
    }
}

#[test]
fn a_block_too_small_for_a_reciprocal_becomes_zeros_and_is_counted() {
    for format in Format::ENCODED {
        let mut values = vec![0.0f32; 3 * format.len()];
        values[0] = 1.0;
        values[format.len()] = -f32::from_bits(0x10_0000); // 2⁻¹²⁹
        let mut bytes = vec![0; format.encoded_len(values.len()).unwrap()];
        let done = block::encode(format, Rule::AbsMax, ScaleRule::Rule, &values, &mut bytes);
        assert_eq!(
            done,
            Ok(block::Encoded {
                blocks: 3,
                flushed: 1
            })
        );
        let (_, rest) = bytes.split_at(format.bytes());
        let (flushed, zeros) = rest.split_at(format.bytes());
        assert_eq!(flushed, zeros);
        assert!(decode(format, zeros).iter().all(|&x| x == 0.0));
    }
}

#[test]
fn a_scale_below_the_smallest_f16_keeps_its_codes() {
    for format in Format::ENCODED {
        let mut values = vec![0.0f32; format.len()];
        values[3] = -1e-12;
        let bytes = encode(format, &values).unwrap();
        let extreme = match format {
            Format::Q8_0 => -127,
            // The lowest of all values has the lowest code.
            _ => format.codes().0,
        };
        assert_eq!(codes(format, &bytes)[3], extreme);
        assert_eq!(decode(format, &bytes)[3], 0.0);
    }
}

#[test]
fn every_rule_flushes_what_is_too_small_for_a_reciprocal() {
    for format in TERNARY {
        for rule in RULES {
            let values = vec![f32::from_bits(0x10_0000); format.len()];
            let mut bytes = vec![0xFF; format.bytes()];
            let done = block::encode(format, rule, ScaleRule::LeastSquares, &values, &mut bytes);
            assert_eq!(
                done,
                Ok(block::Encoded {
                    blocks: 1,
                    flushed: 1
                }),
                "{rule:?}"
            );
            assert_eq!(bytes, encode(format, &vec![0.0; format.len()]).unwrap());
        }
    }
}

#[test]
fn a_dot_product_beyond_64_bits_is_exact() {
    // Each block contributes 65,504 · 2²⁴ · 32 · 2¹⁴ ≈ 2⁵⁹.
    let mut block = [0x80; 34];
    block[..2].copy_from_slice(&f16::MAX.to_le_bytes());
    let bytes = block.repeat(100);
    let one = 65_504i128 << (24 + 5 + 14);
    assert_eq!(
        block::dot_fixed(Format::Q8_0, &bytes, &[-128; 3200]),
        Ok(100 * one)
    );
    let y = block::dot(Format::Q8_0, &bytes, &[-128; 3200], 0.5).unwrap();
    assert_eq!(y, (100.0 * 65_504.0 * 524_288.0) * 0.5);
}

/// 2⁶⁰ + 2³⁶ + 1 lies just above the middle of two f32, but an f64 cannot tell it from the middle.
#[test]
fn a_dot_product_is_rounded_once() {
    let block = |scale: f32, code: i8| {
        let mut block = [0; 34];
        block[..2].copy_from_slice(&f16::from_f32(scale).to_le_bytes());
        block[2] = code as u8;
        block
    };
    let mut full = block(32_768.0, -128);
    full[2..].fill(0x80);
    let mut bytes = full.repeat(4);
    bytes.extend(block(1.0, 64));
    bytes.extend(block(f32::from_bits((127 - 24) << 23), 1));
    let mut x = [-128i8; 6 * 32];
    (x[4 * 32], x[5 * 32]) = (64, 1);
    let sum = (1i128 << 60) + (1 << 36) + 1;
    assert_eq!(block::dot_fixed(Format::Q8_0, &bytes, &x), Ok(sum));
    let above = f32::from_bits((127 + 36) << 23 | 1);
    assert_eq!(block::dot(Format::Q8_0, &bytes, &x, 1.0), Ok(above));
}
