//! The linear layer: a matrix in each layout times int8 vectors, one or many, and blocks times vectors of 16 bits.

use half::f16;
use tercet_core::block::Format;
use tercet_core::engine::{LinearEngine, ModelEngine};
use tercet_core::linear::{I8Sym, Layer, Layout, LinearError, Matrix, pack};

use super::{Bits, Operation, blocks, legal};
use crate::measure::clock::Clock;
use crate::measure::contender::{Contender, with_engine};
use crate::measure::task::Task;
use crate::measure::work::{Arithmetic, LeastWork};
use crate::measure::{Traffic, input};

/// The scale of every vector.
const X_SCALE: f32 = 0.01;

/// A matrix and vectors.
pub(in crate::measure) struct Product {
    layout: Layout,
    rows: usize,
    cols: usize,
    bytes: Vec<u8>,
    /// The vectors, one after another; for those of 16 bits the high planes, and then the low ones.
    x: Vec<i8>,
    count: usize,
    planes: usize,
}

impl Product {
    /// Returns a matrix of random codes, or of blocks of normal values, times `count` vectors.
    pub(in crate::measure) fn new(
        layout: Layout,
        rows: usize,
        cols: usize,
        count: usize,
    ) -> (LeastWork, Self) {
        let values = rows * cols;
        let bytes = match layout {
            Layout::Block(format) => blocks::encoded(values, format),
            _ => {
                let (lowest, highest) = layout.codes();
                let codes = input::codes_between(lowest, highest, values);
                let mut bytes = vec![0; legal(layout.bytes(rows, cols))];
                legal(pack::pack(layout, rows, cols, &codes, &mut bytes));
                bytes
            }
        };
        Self::of(layout, (rows, cols), bytes, count, 1)
    }

    /// Returns blocks times `count` vectors of 16 bits, each multiply-add of which counts as two of 8.
    pub(in crate::measure) fn wide(
        format: Format,
        rows: usize,
        cols: usize,
        count: usize,
    ) -> (LeastWork, Self) {
        let mut bytes = blocks::encoded(rows * cols, format);
        // A model's weights are so small; with larger ones the sums of long rows would not fit f64.
        for block in bytes.chunks_exact_mut(format.bytes()) {
            for at in [Some(format.scale_offset()), format.min_offset()] {
                if let Some(half) = at.and_then(|at| block[at..].first_chunk_mut()) {
                    *half = f16::from_f32(f16::from_le_bytes(*half).to_f32() / 64.0).to_le_bytes();
                }
            }
        }
        Self::of(Layout::Block(format), (rows, cols), bytes, count, 2)
    }

    /// Returns the product of encoded weights with vectors of so many planes.
    fn of(
        layout: Layout,
        (rows, cols): (usize, usize),
        bytes: Vec<u8>,
        count: usize,
        planes: usize,
    ) -> (LeastWork, Self) {
        let values = rows * cols;
        let arithmetic = match layout {
            Layout::Block(format) => blocks::arithmetic(format),
            _ if layout.codes() == (-1, 1) => Arithmetic::Ternary,
            _ => Arithmetic::Int8,
        };
        let vectors = count * (planes * cols + rows * 4);
        let work = LeastWork::pass(values, Traffic::Read, bytes.len() + vectors)
            .with_products((planes * values * count) as u64, arithmetic);
        let this = Self {
            layout,
            rows,
            cols,
            bytes,
            x: input::codes(planes * count * cols),
            count,
            planes,
        };
        (work, this)
    }

    fn layer(&self) -> Layer<'_> {
        let matrix = legal(Matrix::new(self.layout, self.rows, self.cols, &self.bytes));
        match self.layout {
            // Their scales are in the blocks.
            Layout::Block(_) => Layer::new(matrix),
            _ => Layer::new(legal(matrix.with_scale(0.01))),
        }
    }
}

impl Operation for Product {
    /// Times the whole call: checks, preparation of the activations, products, scales.
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let layer = self.layer();
        let mut out = vec![0.0; self.count * self.rows];
        let scales = vec![X_SCALE; self.count];
        let mut scratch = vec![0; layer.weights().fast_scratch_len()];
        // Sixteen for each vector; engines of threads have their own.
        let mut sums = vec![0; 16 * self.count];
        clock.time(&mut || {
            let x = legal(I8Sym::new(&self.x));
            if self.planes == 1 {
                with_engine!(by, engine => multiply(&mut engine, &layer, x, &scales, &mut out, &mut scratch));
            } else {
                let room = (&mut sums[..], &mut scratch[..]);
                with_engine!(by, engine => legal(engine.matmat_wide(&layer, x, &scales, &mut out, room)));
            }
        });
        Bits::default().with_floats(&out).finish()
    }

    fn task(&self) -> Option<Task<'_>> {
        (self.planes == 1).then(|| Task::Product {
            layer: self.layer(),
            x: &self.x,
            scales: vec![X_SCALE; self.count],
        })
    }
}

fn multiply(
    engine: &mut impl LinearEngine<Error = LinearError>,
    layer: &Layer<'_>,
    x: I8Sym<'_>,
    scales: &[f32],
    out: &mut [f32],
    scratch: &mut [u32],
) {
    match scales {
        [scale] => legal(engine.matvec(layer, x, *scale, out, scratch)),
        scales => legal(engine.matmat(layer, x, scales, out, scratch)),
    }
}
