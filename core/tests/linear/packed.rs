//! The tiles of int8 pairs and int4, by the words of their definition.

use proptest::prelude::*;
use tercet_core::linear::{I8Sym, Layer, Layout, LinearError, Matrix, pack, sums};

/// What the bytes of a matrix stand for, row-major.
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
                let even = i32::from(lane as i8);
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

/// Rows, and columns about where kernels fold their sums.
fn shape() -> impl Strategy<Value = (usize, usize)> {
    let cols = prop_oneof![1usize..70, 250usize..260, 505usize..530, Just(1040)];
    (0usize..10, cols)
}

proptest! {
    #[test]
    fn packing_is_undone_by_the_definition((rows, cols) in shape(), seed in any::<u32>()) {
        for layout in [Layout::Int8Pairs, Layout::Int4] {
            let (lowest, highest) = layout.codes();
            let span = i64::from(highest) - i64::from(lowest) + 1;
            let mut state = seed;
            let codes: Vec<i8> = std::iter::repeat_with(|| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (i64::from(lowest) + i64::from(state >> 8) % span) as i8
            }).take(rows * cols).collect();
            let bytes = super::matrices::packed(layout, rows, cols, &codes);
            let wide: Vec<i16> = codes.iter().map(|&code| code.into()).collect();
            prop_assert_eq!(decode(layout, rows, cols, &bytes), wide);
        }
    }

    #[test]
    fn any_bytes_are_weights((rows, cols) in shape(), seed in any::<u32>(), x in any::<bool>()) {
        for layout in [Layout::Int8Pairs, Layout::Int4] {
            let mut state = seed;
            let bytes: Vec<u8> = std::iter::repeat_with(|| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // 0x7FFF is the lane whose odd weight is 128.
                [(state >> 16) as u8, 0xFF, 0x7F, 0x80, 0x00][(state >> 24) as usize % 5]
            }).take(layout.bytes(rows, cols).unwrap()).collect();
            let x = vec![if x { 127 } else { -127 }; cols];
            let matrix = Matrix::new(layout, rows, cols, &bytes).unwrap();
            let mut out = vec![0; rows];
            let mut scratch = vec![0xDEAD_BEEF; matrix.scratch_len()];
            sums(&Layer::new(matrix), I8Sym::new(&x).unwrap(), &mut out, &mut scratch).unwrap();
            let codes = decode(layout, rows, cols, &bytes);
            let expected: Vec<i64> = codes.chunks_exact(cols).map(|row| {
                row.iter().zip(&x).map(|(&w, &x)| i64::from(w) * i64::from(x)).sum()
            }).collect();
            prop_assert_eq!(out, expected);
        }
    }
}

#[test]
fn codes_without_a_pattern_are_refused_with_their_place() {
    let mut codes = vec![0i8; 3 * 9];
    let mut bytes = [0; 64];
    for (layout, bad) in [(Layout::Int8Pairs, [-128, -128]), (Layout::Int4, [8, -9])] {
        let bytes = &mut bytes[..layout.bytes(3, 9).unwrap()];
        for code in bad {
            codes[2 * 9 + 8] = code;
            let place = Err(LinearError::CodeRange { row: 2, col: 8 });
            assert_eq!(pack::pack(layout, 3, 9, &codes, bytes), place);
        }
        codes[2 * 9 + 8] = 0;
        assert_eq!(pack::pack(layout, 3, 9, &codes, bytes), Ok(()));
    }
}
