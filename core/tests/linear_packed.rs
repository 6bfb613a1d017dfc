//! Packed layouts of int8 and int4: what a matrix in them multiplies as.

use proptest::prelude::*;
use tercet_core::linear::{I8Sym, Layer, Layout, LinearError, Matrix, pack, sums};

type Pack = fn(usize, usize, &[i8], &mut [u8]) -> Result<(), LinearError>;

fn product(layout: Layout, rows: usize, cols: usize, bytes: &[u8], x: &[i8]) -> Vec<i64> {
    let weights = Matrix::new(layout, rows, cols, bytes).unwrap();
    let mut out = vec![0; rows];
    let mut scratch = vec![0; weights.scratch_len()];
    sums(
        &Layer::new(weights),
        I8Sym::new(x).unwrap(),
        &mut out,
        &mut scratch,
    )
    .unwrap();
    out
}

fn plain_product(cols: usize, codes: &[i16], x: &[i8]) -> Vec<i64> {
    let dot = |row: &[i16]| {
        let products = row
            .iter()
            .zip(x)
            .map(|(&w, &x)| i64::from(w) * i64::from(x));
        products.sum()
    };
    codes.chunks_exact(cols).map(dot).collect()
}

/// Codes of a layout by the words of its definition, from any bytes.
fn decode(layout: Layout, rows: usize, cols: usize, bytes: &[u8]) -> Vec<i16> {
    let tiles = cols.div_ceil(8);
    let half = |at: usize| i16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]);
    let code = |row: usize, col: usize| {
        let tile = row / 4 * tiles + col / 8;
        match layout {
            Layout::Int4 => {
                let lane = half(tile * 8 + col % 8) as u16 ^ 0x8000;
                (lane >> (4 * (row % 4)) & 15) as i16 - 8
            }
            _ => {
                let word = tile * 8 + col % 8 / 4 * 4 + row % 4;
                let lane = i32::from(half(2 * word + col % 4 / 2));
                let even = i32::from(lane as u8 as i8);
                match col % 2 {
                    0 => even as i16,
                    _ => ((lane - even) / 256) as i16,
                }
            }
        }
    };
    let places = (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col)));
    places.map(|(row, col)| code(row, col)).collect()
}

fn shape() -> impl Strategy<Value = (usize, usize)> {
    let cols = prop_oneof![1usize..70, 250usize..260, 505usize..530, Just(1040)];
    (0usize..10, cols)
}

fn case(
    codes: std::ops::RangeInclusive<i8>,
) -> impl Strategy<Value = (usize, usize, Vec<i8>, Vec<i8>)> {
    let ends = (*codes.start(), *codes.end());
    shape().prop_flat_map(move |(rows, cols)| {
        // Half of the cases hold nothing but the extremes.
        let code = prop_oneof![
            proptest::collection::vec(codes.clone(), rows * cols),
            proptest::collection::vec(prop_oneof![Just(ends.0), Just(ends.1)], rows * cols),
        ];
        let x = prop_oneof![
            proptest::collection::vec(-127i8..=127, cols),
            proptest::collection::vec(prop_oneof![Just(-127i8), Just(127)], cols),
        ];
        (Just(rows), Just(cols), code, x)
    })
}

fn packed_is_plain(
    layout: Layout,
    pack: Pack,
    (rows, cols, codes, x): (usize, usize, Vec<i8>, Vec<i8>),
) -> Result<(), TestCaseError> {
    let mut bytes = vec![0xA5; layout.bytes(rows, cols).unwrap()];
    pack(rows, cols, &codes, &mut bytes).unwrap();
    let wide: Vec<i16> = codes.iter().map(|&code| code.into()).collect();
    prop_assert_eq!(&decode(layout, rows, cols, &bytes), &wide);
    prop_assert_eq!(
        product(layout, rows, cols, &bytes, &x),
        plain_product(cols, &wide, &x)
    );
    Ok(())
}

proptest! {
    #[test]
    fn int8_pairs_multiply_as_their_codes(case in case(-127..=127)) {
        packed_is_plain(Layout::Int8Pairs, pack::int8_pairs, case)?;
    }

    #[test]
    fn int4_multiplies_as_its_codes(case in case(-8..=7)) {
        packed_is_plain(Layout::Int4, pack::int4, case)?;
    }

    #[test]
    fn any_bytes_are_weights((rows, cols) in shape(), seed in any::<u64>(), x in any::<bool>()) {
        for layout in [Layout::Int8Pairs, Layout::Int4] {
            let len = layout.bytes(rows, cols).unwrap();
            let mut state = seed;
            let bytes: Vec<u8> = std::iter::repeat_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // 0x7FFF is the lane whose odd weight is 128.
                [(state >> 40) as u8, 0xFF, 0x7F, 0x80, 0x00][(state >> 60) as usize % 5]
            }).take(len).collect();
            let x = vec![if x { 127 } else { -127 }; cols];
            let codes = decode(layout, rows, cols, &bytes);
            prop_assert_eq!(product(layout, rows, cols, &bytes, &x), plain_product(cols, &codes, &x));
        }
    }
}

#[test]
fn codes_without_a_pattern_are_refused_with_their_place() {
    let mut codes = vec![0i8; 3 * 9];
    codes[2 * 9 + 8] = -128;
    let place = Err(LinearError::CodeRange { row: 2, col: 8 });
    let mut bytes = [0; 64];
    assert_eq!(pack::int8_pairs(3, 9, &codes, &mut bytes), place);
    for code in [8, -9] {
        codes[2 * 9 + 8] = code;
        assert_eq!(pack::int4(3, 9, &codes, &mut bytes[..32]), place);
    }
    codes[2 * 9 + 8] = 0;
    let short = Err(LinearError::Length {
        expected: 64,
        found: 63,
    });
    assert_eq!(pack::int8_pairs(3, 9, &codes, &mut bytes[..63]), short);
    assert_eq!(
        pack::int4(3, 9, &codes[1..], &mut bytes[..32]),
        Err(LinearError::Length {
            expected: 27,
            found: 26
        })
    );
}

#[test]
fn a_part_begins_at_a_group_of_four_rows() {
    let codes: Vec<i8> = (0..9 * 10).map(|i| (i % 15) as i8 - 7).collect();
    let mut bytes = vec![0; Layout::Int4.bytes(9, 10).unwrap()];
    pack::int4(9, 10, &codes, &mut bytes).unwrap();
    let whole = Matrix::new(Layout::Int4, 9, 10, &bytes).unwrap();
    assert!(whole.part(2, 4).is_none());
    let x: Vec<i8> = (0..10).map(|i| 14 * i - 60).collect();
    let part = whole.part(4, 5).unwrap();
    assert_eq!(
        product(Layout::Int4, 5, 10, part.bytes(), &x),
        product(Layout::Int4, 9, 10, &bytes, &x)[4..]
    );
}
