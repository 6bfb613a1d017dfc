//! Five ternary weights a byte, by the words of their definition.

use proptest::collection::vec;
use proptest::prelude::*;
use tercet_core::arch::plain::linear::for_each_sum;
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix, sums};

use super::matrices::{activations, packed};

/// What the bytes of a matrix stand for, row-major.
fn decode(rows: usize, cols: usize, bytes: &[u8]) -> Vec<i8> {
    let row_bytes = bytes.len() / rows.max(1);
    let code = |row: usize, col: usize| {
        let (group, column) = (col / 60, col % 60);
        let byte = bytes[row * row_bytes + group * 12 + column % 12];
        let v = 243 * u32::from(byte) / 256;
        (v / 3u32.pow(4 - (column / 12) as u32) % 3) as i8 - 1
    };
    let places = (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col)));
    places.map(|(row, col)| code(row, col)).collect()
}

/// Rows, and columns about where groups and the sums of eight of them end.
fn shape() -> impl Strategy<Value = (usize, usize)> {
    let cols = prop_oneof![1usize..130, 475usize..490, 955usize..965];
    (1usize..10, cols)
}

proptest! {
    #[test]
    fn packing_is_undone_by_the_definition(
        (rows, cols, codes) in shape().prop_flat_map(|(rows, cols)| {
            (Just(rows), Just(cols), vec(-1i8..=1, rows * cols))
        }),
    ) {
        let bytes = packed(Layout::FiveTrits, rows, cols, &codes);
        prop_assert_eq!(bytes.len(), rows * cols.div_ceil(60) * 12);
        prop_assert_eq!(&decode(rows, cols, &bytes), &codes);
        // Missing columns hold 0.
        let whole = cols.next_multiple_of(60);
        let row = bytes.len() / rows;
        for (bytes, codes) in bytes.chunks_exact(row).zip(codes.chunks_exact(cols)) {
            let mut expected = codes.to_vec();
            expected.resize(whole, 0);
            prop_assert_eq!(decode(1, whole, bytes), expected);
        }
    }

    #[test]
    fn any_bytes_are_weights(
        (rows, cols, bytes, x) in shape().prop_flat_map(|(rows, cols)| {
            let bytes = Layout::FiveTrits.bytes(rows, cols).unwrap();
            (Just(rows), Just(cols), vec(any::<u8>(), bytes), activations(cols))
        }),
    ) {
        let matrix = Matrix::new(Layout::FiveTrits, rows, cols, &bytes).unwrap();
        let expected: Vec<i64> = decode(rows, cols, &bytes)
            .chunks_exact(cols)
            .map(|row| row.iter().zip(&x).map(|(&w, &x)| i64::from(w) * i64::from(x)).sum())
            .collect();
        let x = I8Sym::new(&x).unwrap();
        let mut out = vec![0; rows];
        sums(&Layer::new(matrix), x, &mut out, &mut vec![7; matrix.fast_scratch_len()]).unwrap();
        prop_assert_eq!(&out, &expected);
        for_each_sum(&matrix, x, |row, sum| assert_eq!(sum, expected[row]));
    }
}

#[test]
fn thirteen_patterns_are_other_names() {
    let codes: std::collections::BTreeSet<Vec<i8>> =
        (0..=255).map(|byte| decode(1, 60, &[byte; 12])).collect();
    assert_eq!(codes.len(), 243);
    // The packer's name for each comes back.
    for codes in codes {
        let bytes = packed(Layout::FiveTrits, 1, 60, &codes);
        assert_eq!(decode(1, 60, &bytes), codes);
    }
}

#[test]
fn few_rows_and_many_take_the_scratch_that_is_documented() {
    let fast = |rows| Layout::FiveTrits.fast_scratch_len(rows, 1024);
    assert_eq!(Layout::FiveTrits.scratch_len(256, 1024), 0);
    assert_eq!([fast(0), fast(3)], [0, 0]);
    // Six tables; two words of sums and one of the total for each row, in fours.
    assert_eq!([fast(4), fast(5), fast(256)], [1548, 1560, 2304]);
    assert_eq!(fast(100_000), 2304);
}
