//! The linear layer: a matrix in each layout times int8 vectors, one or many.

use tercet_core::engine::LinearEngine;
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
    /// The vectors, one after another.
    x: Vec<i8>,
    count: usize,
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
        let arithmetic = match layout {
            Layout::Block(format) => blocks::arithmetic(format),
            _ if layout.codes() == (-1, 1) => Arithmetic::Ternary,
            _ => Arithmetic::Int8,
        };
        let vectors = count * (cols + rows * 4);
        let work = LeastWork::pass(values, Traffic::Read, bytes.len() + vectors)
            .with_products((values * count) as u64, arithmetic);
        let this = Self {
            layout,
            rows,
            cols,
            bytes,
            x: input::codes(count * cols),
            count,
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
        clock.time(&mut || {
            let x = legal(I8Sym::new(&self.x));
            with_engine!(by, engine => multiply(&mut engine, &layer, x, &scales, &mut out, &mut scratch));
        });
        Bits::default().with_floats(&out).finish()
    }

    fn task(&self) -> Option<Task<'_>> {
        Some(Task::Product {
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
