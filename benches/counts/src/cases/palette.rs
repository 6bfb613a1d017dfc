//! Palettes of 4 bits.

use tercet_core::engine::PaletteEngine;
use tercet_core::palette::{Layout, Output, Palette, Width};
use tercet_host::parallel::Threads;

use super::{Case, codes, normals};

const ROWS: usize = 8;
/// Weights in a row.
const COLS: usize = 1024;

pub(super) fn cases() -> Vec<Case> {
    let width = Width::new(4).expect("1 to 8 bits");
    let layout = Layout::new(width, ROWS, COLS, 1).expect("a matrix");
    let (work, on) = (ROWS * COLS, "palette:4");
    let (values, x) = (normals(work), codes(COLS, -127, 127));
    let mut of_encode = Encoded::new(layout);
    of_encode.encode(&values);
    let (of_decode, of_matvec) = (of_encode.clone(), of_encode.clone());
    let (mut floats, mut out) = (vec![0.0; work], vec![0.0; ROWS]);
    vec![
        Case::new("encode", on, work, move || of_encode.encode(&values)),
        Case::new("decode", on, work, move || {
            let done = Threads::default().decode_palette(&of_decode.view(), &mut floats);
            done.expect("a palette");
        }),
        Case::new("matvec", on, work, move || {
            let done = Threads::default().multiply_palette(&of_matvec.view(), &x, 0.01, &mut out);
            done.expect("a palette");
        }),
    ]
}

/// An encoded matrix of one group.
#[derive(Clone)]
struct Encoded {
    layout: Layout,
    indices: Vec<u8>,
    codebook: Vec<i8>,
    scale: [f32; 1],
    scratch: Vec<u64>,
}

impl Encoded {
    fn new(layout: Layout) -> Self {
        Self {
            indices: vec![0; layout.index_bytes()],
            codebook: vec![0; layout.codebook_len()],
            scale: [0.0],
            scratch: vec![0; layout.scratch_len()],
            layout,
        }
    }

    fn encode(&mut self, values: &[f32]) {
        let out = Output {
            indices: &mut self.indices,
            codebooks: &mut self.codebook,
            scales: &mut self.scale,
        };
        let done =
            Threads::default().encode_palette(&self.layout, values, &[], out, &mut self.scratch);
        done.expect("finite values");
    }

    fn view(&self) -> Palette<'_> {
        Palette {
            layout: self.layout,
            indices: &self.indices,
            codebooks: &self.codebook,
            scales: &self.scale,
        }
    }
}
