//! Matrices of every layout with the codes they stand for.

use proptest::collection::vec;
use proptest::prelude::*;
use tercet_core::block::{self, Format};
use tercet_core::f16;
use tercet_core::linear::{Layout, pack};

/// A matrix as bytes, and what each weight is worth in the unit of the sums.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    pub(crate) layout: Layout,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// Bytes with some before them, so that they lie at any alignment.
    pub(crate) padded: Vec<u8>,
    pub(crate) start: usize,
    /// Row-major; codes, or codes times d·2²⁴.
    pub(crate) worth: Vec<i64>,
}

impl Weights {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.padded[self.start..]
    }

    /// Σ worth · x of each row.
    pub(crate) fn sums(&self, x: &[i8]) -> Vec<i64> {
        let rows = self.worth.chunks(self.cols);
        rows.map(|row| row.iter().zip(x).map(|(&w, &x)| w * i64::from(x)).sum())
            .collect()
    }
}

/// Packs row-major codes.
pub(crate) fn packed(layout: Layout, rows: usize, cols: usize, codes: &[i8]) -> Vec<u8> {
    let mut bytes = vec![0xAA; layout.bytes(rows, cols).unwrap()];
    pack::pack(layout, rows, cols, codes, &mut bytes).unwrap();
    bytes
}

fn plain(layout: Layout) -> impl Strategy<Value = Weights> {
    let (lowest, highest) = layout.codes();
    let code = prop_oneof![4 => lowest..=highest, 1 => Just(lowest), 1 => Just(highest)];
    let shape = (0usize..20, 1usize..140);
    let codes = shape.prop_flat_map(move |(rows, cols)| {
        let all = vec(code.clone(), rows * cols);
        // Every weight the same: where carries and folds go furthest.
        let one = code.clone().prop_map(move |code| vec![code; rows * cols]);
        (
            Just((rows, cols)),
            prop_oneof![3 => all, 1 => one],
            0usize..4,
        )
    });
    codes.prop_map(move |((rows, cols), codes, start)| {
        let mut padded = vec![0x55; start];
        padded.extend(packed(layout, rows, cols, &codes));
        Weights {
            layout,
            rows,
            cols,
            padded,
            start,
            worth: codes.into_iter().map(i64::from).collect(),
        }
    })
}

/// Any bytes that are blocks with finite scales and minima: all codes that the format can store.
fn blocks(format: Format) -> impl Strategy<Value = Weights> {
    let (len, size) = format.layout();
    let shape = (0usize..6, 1usize..4);
    let bytes = shape.prop_flat_map(move |(rows, blocks)| {
        let codes = vec(any::<u8>(), rows * blocks * size);
        let scale = (-300i32..300).prop_map(|s| s as f32 / 64.0);
        let scales = vec((scale.clone(), scale), rows * blocks);
        (Just((rows, blocks)), codes, scales, 0usize..4)
    });
    bytes.prop_map(move |((rows, blocks), mut bytes, scales, start)| {
        let mut worth = Vec::new();
        for (block, (scale, min)) in bytes.chunks_exact_mut(size).zip(scales) {
            let mut put = |at: Option<usize>, value: f32| match at {
                None => 0,
                Some(at) => {
                    let value = f16::from_f32(value);
                    block[at..at + 2].copy_from_slice(&value.to_le_bytes());
                    (f64::from(value) * 16_777_216.0) as i64
                }
            };
            let unit = put(Some(format.scale_offset()), scale);
            let min = put(format.min_offset(), min);
            let mut codes = vec![0; len];
            block::codes(format, block, &mut codes).unwrap();
            for (part, codes) in codes.chunks(format.part_len()).enumerate() {
                let (of_scale, of_min) = format.factors(block, part);
                let (unit, min) = (unit * i64::from(of_scale), min * i64::from(of_min));
                worth.extend(codes.iter().map(|&code| i64::from(code) * unit + min));
            }
        }
        let mut padded = vec![0x55; start];
        padded.extend(&bytes);
        Weights {
            layout: Layout::Block(format),
            rows,
            cols: blocks * len,
            padded,
            start,
            worth,
        }
    })
}

/// Matrices of every layout.
pub(crate) fn any_weights() -> impl Strategy<Value = Weights> {
    let all = Layout::ALL.map(|layout| match layout {
        Layout::Block(format) => blocks(format).boxed(),
        _ => plain(layout).boxed(),
    });
    proptest::strategy::Union::new(all)
}

/// Activations: any, or one extreme throughout.
pub(crate) fn activations(len: usize) -> impl Strategy<Value = Vec<i8>> {
    let all = vec(-127i8..=127, len);
    let one = prop_oneof![Just(127i8), Just(-127)].prop_map(move |x| vec![x; len]);
    prop_oneof![3 => all, 1 => one]
}
