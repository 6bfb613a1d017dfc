//! What the codecs refuse, and what they say of it.

use tercet_core::block::{self, BlockError, Format, Ternary};
use tercet_core::quant::{Rule, ScaleRule};

use super::encode;

#[test]
fn sizes_that_wrap_are_refused() {
    let len = usize::MAX / 32 * 32;
    assert_eq!(
        Format::Q8_0.encoded_len(len),
        Err(BlockError::TooLarge { len })
    );
    assert_eq!(Format::Q8_0.encoded_len(64), Ok(68));
    let partial = BlockError::Partial { len: 65, block: 32 };
    assert_eq!(Format::Q8_0.encoded_len(65), Err(partial));
}

#[test]
fn views_of_other_formats_and_lengths_are_refused() {
    assert_eq!(
        Ternary::new(Format::Q8_0, &[0; 34]),
        Err(BlockError::NotTernary)
    );
    assert_eq!(
        Ternary::new(Format::Q4_0, &[0; 18]),
        Err(BlockError::NotTernary)
    );
    let length = BlockError::Length {
        expected: 66,
        found: 67,
    };
    assert_eq!(Ternary::new(Format::Tq2_0, &[0; 67]), Err(length));
}

#[test]
fn a_value_that_is_not_finite_is_named() {
    for format in Format::ENCODED {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut values = vec![1.0; 3 * format.len()];
            let index = format.len() + 5;
            values[index] = bad;
            values[index + 1] = f32::NAN;
            assert_eq!(
                encode(format, &values),
                Err(BlockError::NotFinite { index })
            );
        }
    }
}

#[test]
fn a_scale_that_overflows_names_its_block() {
    for (format, reach) in [
        (Format::Tq1_0, 1.0),
        (Format::Tq2_0, 1.0),
        (Format::Q2_0, 1.0),
        (Format::Q8_0, 127.0),
        (Format::Q4_0, 8.0),
        (Format::Q5_0, 16.0),
    ] {
        let mut values = vec![1.0f32; 4 * format.len()];
        // 65,520 is the middle between the largest f16 and what would follow: it rounds to infinity.
        values[2 * format.len()] = 65_520.0 * reach;
        assert_eq!(
            encode(format, &values),
            Err(BlockError::ScaleOverflow { block: 2 })
        );
        values[2 * format.len()] = f32::from_bits((65_520.0f32 * reach).to_bits() - 2);
        assert!(encode(format, &values).is_ok(), "{format:?}");
        values[2 * format.len()] = f32::MAX;
        assert_eq!(
            encode(format, &values),
            Err(BlockError::ScaleOverflow { block: 2 })
        );
    }
}

#[test]
fn formats_with_one_rule_refuse_others() {
    for format in Format::ENCODED
        .into_iter()
        .filter(|format| !format.is_ternary())
    {
        let mut out = vec![0; format.bytes()];
        for (rule, scale) in [
            (Rule::AbsMean, ScaleRule::Rule),
            (Rule::AbsMax, ScaleRule::LeastSquares),
        ] {
            let done = block::encode(format, rule, scale, &[1f32; 32], &mut out);
            assert_eq!(done, Err(BlockError::Rule));
        }
    }
}

#[test]
fn formats_that_are_read_only_refuse_to_encode() {
    for format in Format::ALL {
        assert_eq!(format.can_encode(), Format::ENCODED.contains(&format));
        if format.can_encode() {
            continue;
        }
        let values = vec![1f32; 2 * format.len()];
        assert_eq!(encode(format, &values), Err(BlockError::ReadOnly));
        let mut out = vec![0; format.bytes()];
        for (rule, scale) in [
            (Rule::Optimal, ScaleRule::Rule),
            (Rule::AbsMax, ScaleRule::LeastSquares),
        ] {
            let done = block::encode(format, rule, scale, &values[..format.len()], &mut out);
            assert_eq!(done, Err(BlockError::ReadOnly));
        }
    }
}

#[test]
fn a_scale_that_is_not_finite_is_refused() {
    for format in Format::ALL {
        for bits in [0x7C00u16, 0xFC00, 0x7E00, 0x7C01] {
            let mut bytes = vec![0; 3 * format.bytes()];
            let at = format.bytes() + format.scale_offset();
            bytes[at..at + 2].copy_from_slice(&bits.to_le_bytes());
            refused_second(format, &bytes, BlockError::ScaleNotFinite { block: 1 });
            let refused = Err(BlockError::ScaleNotFinite { block: 1 });
            let mut scales = vec![0.0; 3 * format.parts()];
            assert_eq!(block::scales(format, &bytes, &mut scales), refused);
        }
    }
}

#[test]
fn a_minimum_that_is_not_finite_is_refused() {
    for (format, min) in with_minimum() {
        for bits in [0x7C00u16, 0xFC00, 0x7E00, 0x7C01] {
            let mut bytes = vec![0; 3 * format.bytes()];
            let at = format.bytes() + min;
            bytes[at..at + 2].copy_from_slice(&bits.to_le_bytes());
            refused_second(format, &bytes, BlockError::MinNotFinite { block: 1 });
        }
    }
}

/// Three blocks of which the second cannot be decoded or multiplied.
fn refused_second(format: Format, bytes: &[u8], refused: BlockError) {
    let mut floats = vec![0.0; 3 * format.len()];
    assert_eq!(block::decode(format, bytes, &mut floats), Err(refused));
    let x = vec![1i8; 3 * format.len()];
    assert_eq!(block::dot_fixed(format, bytes, &x), Err(refused));
}

/// The formats whose blocks have a minimum, and where it lies.
fn with_minimum() -> impl Iterator<Item = (Format, usize)> {
    let formats = Format::ALL.into_iter();
    formats.filter_map(|format| Some((format, format.min_offset()?)))
}

#[test]
fn a_minimum_or_a_width_that_overflows_names_its_block() {
    for (format, _) in with_minimum().filter(|(format, _)| format.can_encode()) {
        let mut values = vec![0.0f32; 4 * format.len()];
        values[2 * format.len()] = -65_520.0;
        let refused = Err(BlockError::MinOverflow { block: 2 });
        assert_eq!(encode(format, &values), refused, "{format:?}");
        // The width: of one value, and one that is beyond f32 itself.
        let refused = Err(BlockError::ScaleOverflow { block: 2 });
        values[2 * format.len()] = f32::MAX;
        assert_eq!(encode(format, &values), refused, "{format:?}");
        values[2 * format.len() + 1] = f32::MIN;
        assert_eq!(encode(format, &values), refused, "{format:?}");
        values[2 * format.len()..][..2].copy_from_slice(&[-65_519.0, 65_504.0]);
        assert!(encode(format, &values).is_ok(), "{format:?}");
    }
}

#[test]
fn buffers_of_other_lengths_are_refused() {
    for format in Format::ALL {
        let (len, size) = format.layout();
        let length = |expected, found| Err(BlockError::Length { expected, found });
        let values = vec![1f32; 2 * len];
        let short = &mut vec![0; 2 * size - 1];
        let done = block::encode(format, Rule::AbsMax, ScaleRule::Rule, &values, short);
        assert_eq!(done.map(|_| ()), length(2 * size, 2 * size - 1));
        let bytes = vec![0; size];
        assert_eq!(
            block::decode(format, &bytes, &mut vec![0.0; 2 * len]),
            length(2 * size, size)
        );
        assert_eq!(block::codes(format, &bytes, &mut []), length(0, size));
        let parts = format.parts();
        assert_eq!(
            block::scales(format, &bytes, &mut vec![0.0; 2 * parts]),
            length(2 * size, size)
        );
        if parts > 1 {
            assert_eq!(
                block::scales(format, &bytes, &mut vec![0.0; parts + 1]),
                length(parts, parts + 1)
            );
        }
        let partial = BlockError::Partial {
            len: len + 1,
            block: len,
        };
        assert_eq!(
            block::dot(format, &bytes, &vec![0; len + 1], 1.0),
            Err(partial)
        );
    }
}

#[test]
fn nothing_is_encoded_to_nothing() {
    for format in Format::ALL {
        let nothing = match format.can_encode() {
            true => Ok(vec![]),
            false => Err(BlockError::ReadOnly),
        };
        assert_eq!(encode(format, &[]), nothing);
        assert_eq!(block::dot(format, &[], &[], 1.0), Ok(0.0));
    }
}
