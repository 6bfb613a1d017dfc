//! What the linear layer does not take.

use tercet_core::block::Format;
use tercet_core::engine::LinearEngine;
use tercet_core::f16;
use tercet_core::linear::{
    I8Sym, Layer, Layout, LinearError, MAX_COLS, Matrix, Requantize, Rescale, Table, dense, matvec,
    pack, sums,
};
use tercet_core::scalar::Scalar;

const TQ2: Layout = Layout::Block(Format::Tq2_0);

fn codes() -> I8Sym<'static> {
    I8Sym::new(&[1, 2, 3]).unwrap()
}

#[test]
fn shapes_that_could_wrap_or_do_not_fit_are_refused() {
    let max = MAX_COLS;
    for layout in [Layout::Int8, Layout::TernaryLanes, Layout::FiveTrits, TQ2] {
        let refused = |cols| Err(LinearError::Columns { cols, max });
        assert_eq!(layout.bytes(1, 0), refused(0));
        assert_eq!(layout.bytes(1, max + 256), refused(max + 256));
        assert_eq!(layout.bytes(usize::MAX, 512), Err(LinearError::TooLarge));
        assert!(layout.bytes(1, max).is_ok());
    }
    let partial = LinearError::Partial {
        cols: 64,
        block: 256,
    };
    assert_eq!(TQ2.bytes(1, 64), Err(partial));
    let length = LinearError::Length {
        expected: 6,
        found: 5,
    };
    assert_eq!(Matrix::new(Layout::Int8, 2, 3, &[0; 5]), Err(length));
}

#[test]
fn lanes_of_no_code_are_refused_with_their_place() {
    let (rows, cols) = (16, 130);
    let clean = {
        let mut bytes = vec![0; Layout::TernaryLanes.bytes(rows, cols).unwrap()];
        pack::ternary_lanes(rows, cols, &vec![0; rows * cols], &mut bytes).unwrap();
        bytes
    };
    assert!(Matrix::new(Layout::TernaryLanes, rows, cols, &clean).is_ok());
    // Two bits of every byte pair are one code: turning any of them to its illegal bits must be seen.
    let mut places = std::collections::BTreeSet::new();
    for bit in (0..clean.len() * 8).step_by(2) {
        for bits in 0..4u8 {
            let mut bytes = clean.clone();
            let byte = &mut bytes[bit / 8];
            *byte = (*byte & !(3 << (bit % 8))) | (bits << (bit % 8));
            match Matrix::new(Layout::TernaryLanes, rows, cols, &bytes) {
                Ok(_) => {}
                Err(LinearError::CodeRange { row, col }) => {
                    assert_eq!(bits, if row % 2 == 0 { 3 } else { 2 });
                    assert!(places.insert((row, col)), "{row}, {col} twice");
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    // Once for every code, those that fill up among them.
    assert_eq!(places.len(), rows * 192);
    assert_eq!(places.last(), Some(&(rows - 1, 191)));
}

#[test]
fn the_lowest_bad_lane_is_named_whatever_the_order_in_memory() {
    let mut bytes = vec![0; Layout::TernaryLanes.bytes(8, 64).unwrap()];
    pack::ternary_lanes(8, 64, &[0; 512], &mut bytes).unwrap();
    // Row 2, columns 0: bits 4 and 5 of the first word. Row 0, column 2: bits 0 and 1 of the second.
    bytes[0] |= 0x30;
    bytes[4] |= 0x03;
    let refused = Matrix::new(Layout::TernaryLanes, 8, 64, &bytes);
    assert_eq!(refused, Err(LinearError::CodeRange { row: 0, col: 2 }));
}

#[test]
fn codes_that_a_layout_cannot_hold_are_refused() {
    let mut bytes = [0; 128];
    let refused = pack::ternary_lanes(2, 2, &[0, 1, -1, 2], &mut bytes);
    assert_eq!(refused, Err(LinearError::CodeRange { row: 1, col: 1 }));
    let length = LinearError::Length {
        expected: 4,
        found: 3,
    };
    assert_eq!(pack::ternary_lanes(2, 2, &[0; 3], &mut bytes), Err(length));
}

#[test]
fn scales_are_finite_and_given_once() {
    let plain = Matrix::new(Layout::Int8, 2, 1, &[1, 2]).unwrap();
    let not_finite = |row| Err(LinearError::ScaleNotFinite { row });
    assert_eq!(plain.with_scale(f32::NAN), not_finite(0));
    let infinite = [0, f32::INFINITY.to_bits() as i32];
    assert_eq!(
        plain.with_row_scales(Table::Words(&infinite)),
        not_finite(1)
    );
    let one = plain.with_row_scales(Table::Words(&[0]));
    assert_eq!(
        one,
        Err(LinearError::Length {
            expected: 2,
            found: 1
        })
    );

    let mut block = [0; 66];
    let blocks = Matrix::new(TQ2, 1, 256, &block).unwrap();
    assert_eq!(blocks.with_scale(1.0), Err(LinearError::ScaleTwice));
    assert_eq!(
        blocks.with_row_scales(Table::Words(&[0])),
        Err(LinearError::ScaleTwice)
    );
    block[64..].copy_from_slice(&f16::NEG_INFINITY.to_le_bytes());
    assert_eq!(Matrix::new(TQ2, 1, 256, &block), not_finite(0));
}

/// Parts multiply their block's scale: 1,024 · 2²⁴ · 16 · 128 · 32 · 127 · 16 is 2⁶¹ nearly, so two such blocks do
/// not reach 2⁶², three do.
#[test]
fn factors_of_parts_count_as_scales_do() {
    const Q6: Layout = Layout::Block(Format::Q6K);
    let mut block = [0; 210];
    block[208..].copy_from_slice(&f16::from_f32(1024.0).to_le_bytes());
    // Factors of 0 are worth nothing.
    assert!(Matrix::new(Q6, 1, 3 * 256, &block.repeat(3)).is_ok());
    block[192..208].fill(0x80);
    let three = block.repeat(3);
    let refused = Matrix::new(Q6, 1, 3 * 256, &three);
    assert_eq!(refused, Err(LinearError::ScaleRange { row: 0 }));
    let bytes = block.repeat(2);
    let layer = Layer::new(Matrix::new(Q6, 1, 2 * 256, &bytes).unwrap());
    let (x, mut out) = ([127; 512], [0]);
    sums(&layer, I8Sym::new(&x).unwrap(), &mut out, &mut []).unwrap();
    assert_eq!(out, [(512 * 127 * 32 * 128) << 34]);
}

#[test]
fn scales_that_could_leave_64_bits_are_refused() {
    // 65,504 · 2²⁴ · 256 · 2 · 127 is 2⁵⁶ nearly: 64 such blocks pass 2⁶², 32 do not.
    let mut block = [0; 66];
    block[64..].copy_from_slice(&f16::MAX.to_le_bytes());
    let row = |blocks: usize| block.repeat(blocks);
    assert!(Matrix::new(TQ2, 1, 32 * 256, &row(32)).is_ok());
    let two_rows = [vec![0; 66 * 70], row(70)].concat();
    let refused = Matrix::new(TQ2, 2, 70 * 256, &two_rows);
    assert_eq!(refused, Err(LinearError::ScaleRange { row: 1 }));
    // The largest that is taken is summed exactly.
    let codes_of_two = {
        let mut block = [0xFF; 66];
        block[64..].copy_from_slice(&f16::MAX.to_le_bytes());
        block.repeat(32)
    };
    let matrix = Matrix::new(TQ2, 1, 32 * 256, &codes_of_two).unwrap();
    let x = vec![-127; 32 * 256];
    let mut out = [0];
    let mut scratch = vec![0; matrix.scratch_len()];
    let x = I8Sym::new(&x).unwrap();
    sums(&Layer::new(matrix), x, &mut out, &mut scratch).unwrap();
    assert_eq!(out, [-(65_504i64 << 24) * 2 * 127 * 8192]);
}

#[test]
fn activations_of_minus_128_are_refused_once() {
    assert_eq!(
        I8Sym::new(&[1, -128, -128]),
        Err(LinearError::NotSymmetric { index: 1 })
    );
    assert!(I8Sym::new(&[]).unwrap().is_empty());
}

#[test]
fn buffers_of_other_lengths_are_refused() {
    let matrix = Matrix::new(Layout::TernaryLanes, 2, 3, &[0; 128]);
    // All bits 0: −1 in first rows, 0 in second.
    let layer = Layer::new(matrix.unwrap());
    let needed = layer.weights().scratch_len();
    let mut scratch = vec![0; needed];
    let x = codes();
    let long = I8Sym::new(&[0; 4]).unwrap();
    let rescale = Rescale::one(Requantize::new(1 << 30, 30).unwrap());
    let length = |expected, found| Err(LinearError::Length { expected, found });

    assert_eq!(sums(&layer, long, &mut [0; 2], &mut scratch), length(3, 4));
    assert_eq!(sums(&layer, x, &mut [0; 3], &mut scratch), length(2, 3));
    assert_eq!(
        matvec(&layer, x, 1.0, &mut [0.0], &mut scratch),
        length(2, 1)
    );
    assert_eq!(
        dense(&layer, &rescale, x, &mut [0], &mut scratch),
        length(2, 1)
    );
    let found = needed - 1;
    let short = sums(&layer, x, &mut [0; 2], &mut scratch[..found]);
    assert_eq!(short, Err(LinearError::Scratch { needed, found }));

    let multipliers = [1 << 30; 3];
    let three = Rescale::rows(Table::Words(&multipliers), &[30; 3]).unwrap();
    assert_eq!(
        dense(&layer, &three, x, &mut [0; 2], &mut scratch),
        length(2, 3)
    );
    // Of many rows of activations, and of none.
    let many = |scratch: &mut [u32], rescale, x: &[i8], outputs: usize| {
        let mut out = vec![0; outputs];
        Scalar.dense_many(&layer, rescale, I8Sym::new(x).unwrap(), &mut out, scratch)
    };
    assert_eq!(many(&mut scratch, &rescale, &[1; 9], 6), Ok(()));
    assert_eq!(many(&mut scratch, &rescale, &[1; 8], 6), length(9, 8));
    assert_eq!(many(&mut scratch, &rescale, &[1; 9], 5), length(6, 5));
    assert_eq!(many(&mut scratch, &three, &[1; 9], 6), length(2, 3));
    assert_eq!(many(&mut scratch, &three, &[], 0), length(2, 3));
    assert_eq!(many(&mut scratch[..found], &rescale, &[], 0), short);
    let two = Rescale::rows(Table::Words(&multipliers), &[30; 2]);
    assert_eq!(two.map(drop), length(3, 2));
    assert_eq!(
        layer.with_bias(Table::Bytes(&[0; 4]), 0),
        Err(LinearError::Length {
            expected: 2,
            found: 1
        })
    );
    let shift = 31;
    assert_eq!(
        layer.with_bias(Table::Words(&[0; 2]), shift),
        Err(LinearError::BiasShift { shift })
    );
}

#[test]
fn multipliers_out_of_range_are_named_by_row() {
    let multipliers = [1 << 30, (1 << 30) - 1];
    let refused = Rescale::rows(Table::Words(&multipliers), &[1, 1]);
    assert_eq!(refused, Err(LinearError::Multiplier { row: 1 }));
    let refused = Rescale::rows(Table::Words(&[1 << 30; 3]), &[94, 1, 95]);
    assert_eq!(refused, Err(LinearError::Shift { row: 2 }));
    let refused = Rescale::rows(Table::Words(&[1 << 30]), &[0]);
    assert_eq!(refused, Err(LinearError::Shift { row: 0 }));
}

#[test]
fn parts_begin_at_whole_groups() {
    let matrix = Matrix::new(Layout::TernaryLanes, 9, 1, &[0; 256]).unwrap();
    assert_eq!(matrix.part(0, 100).unwrap(), matrix);
    assert_eq!(matrix.part(8, 100).unwrap().rows(), 1);
    assert!(matrix.part(4, 1).is_none());
    assert!(matrix.part(16, 1).is_none());
    assert_eq!(
        Matrix::new(Layout::Int8, 2, 1, &[0; 2])
            .unwrap()
            .part(2, 1)
            .unwrap()
            .rows(),
        0
    );
}
