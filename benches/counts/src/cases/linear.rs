//! A matrix in each layout times one int8 vector.

use tercet_core::block;
use tercet_core::engine::LinearEngine;
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix, pack};
use tercet_core::quant::{Rule, ScaleRule};
use tercet_host::parallel::Threads;

use super::{Case, codes, normals};

const ROWS: usize = 32;
/// Weights in a row.
const COLS: usize = 1024;
/// Vectors of a product with many.
const VECTORS: usize = 8;

pub(super) fn cases() -> Vec<Case> {
    let layouts = Layout::ALL.into_iter();
    layouts
        .clone()
        .map(matvec)
        .chain(layouts.map(matmat))
        .collect()
}

/// Weights as they lie in memory: blocks of random values, or random codes of the layout.
fn encoded(layout: Layout) -> Vec<u8> {
    let mut bytes = vec![0; layout.bytes(ROWS, COLS).expect("whole blocks")];
    match layout {
        Layout::Block(format) => {
            let values = normals(ROWS * COLS);
            let (rule, scale) = (Rule::AbsMax, ScaleRule::Rule);
            block::encode(format, rule, scale, &values, &mut bytes).expect("finite values");
        }
        _ => {
            let (low, high) = layout.codes();
            let codes = codes(ROWS * COLS, low, high);
            pack::pack(layout, ROWS, COLS, &codes, &mut bytes).expect("codes of the layout");
        }
    }
    bytes
}

fn layer(layout: Layout, bytes: &[u8]) -> Layer<'_> {
    let matrix = Matrix::new(layout, ROWS, COLS, bytes).expect("a matrix");
    match layout {
        // Their scales lie in the blocks.
        Layout::Block(_) => Layer::new(matrix),
        _ => Layer::new(matrix.with_scale(0.01).expect("a scale")),
    }
}

fn matvec(layout: Layout) -> Case {
    let (bytes, x) = (encoded(layout), codes(COLS, -127, 127));
    let (mut out, mut scratch) = (vec![0.0; ROWS], Vec::new());
    Case::new("matvec", layout.name(), ROWS * COLS, move || {
        let layer = layer(layout, &bytes);
        scratch.resize(layer.weights().fast_scratch_len(), 0);
        let x = I8Sym::new(&x).expect("no code of -128");
        let done = Threads::default().matvec(&layer, x, 0.01, &mut out, &mut scratch);
        done.unwrap_or_else(|error| panic!("{error}"));
    })
}

fn matmat(layout: Layout) -> Case {
    let (bytes, x) = (encoded(layout), codes(VECTORS * COLS, -127, 127));
    let (mut out, mut scratch) = (vec![0.0; VECTORS * ROWS], Vec::new());
    Case::new("matmat", layout.name(), VECTORS * ROWS * COLS, move || {
        let layer = layer(layout, &bytes);
        scratch.resize(layer.weights().fast_scratch_len(), 0);
        let x = I8Sym::new(&x).expect("no code of -128");
        let scales = [0.01; VECTORS];
        let done = Threads::default().matmat(&layer, x, &scales, &mut out, &mut scratch);
        done.unwrap_or_else(|error| panic!("{error}"));
    })
}
