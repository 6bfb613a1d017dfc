//! A matrix times many vectors: int8 by int8, and ternary by int8.

use super::data::codes;
use super::kernel;
use super::{Case, Event, Inputs, Native, Pools, Rival, Subject, TimedWork};
use crate::peers::process::Answer;
use serde_json::json;
use std::io;
use std::time::Instant;
use tercet_core::block::Format;
use tercet_core::engine::LinearEngine;
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix};
use tercet_host::parallel::Threads;

/// Maximum difference of sums in f32 from exact ones, relative to the largest.
const NEAR: f32 = 1e-4;

pub(super) fn events(quick: bool) -> Vec<Event> {
    let side = if quick { 1024 } else { 2048 };
    let wide = 2 * side;
    vec![
        Event::new(
            format!("matmat int8, {side}×{side}×{side}"),
            move |name, inputs| case(name, inputs, Layout::Int8, [side; 3]),
        ),
        Event::new(
            format!("matmat tq2_0, {wide}×{wide}×128"),
            move |name, inputs| {
                let layout = Layout::Block(Format::Tq2_0);
                case(name, inputs, layout, [wide, wide, 128])
            },
        ),
    ]
}

fn case(
    name: &str,
    mut inputs: Inputs,
    layout: Layout,
    [rows, cols, vectors]: [usize; 3],
) -> io::Result<Case> {
    let (tercet, weights) = Matmat::drawn(&mut inputs, layout, [rows, cols, vectors])?;
    let mut rivals = match layout {
        Layout::Block(format) => kernel::rivals(format, &tercet.bytes, &weights, &tercet.x, cols),
        _ => Vec::new(),
    };
    rivals.extend([
        Rival::python("torch, int8", "torch_", "matmat"),
        Rival::python("NumKong, int8", "numkong_", "matmat"),
        Rival::python("NumPy, f32", "numpy_", "matmat"),
    ]);
    Ok(Case {
        name: name.into(),
        work: (rows * cols * vectors) as f64,
        unit: "products",
        steps: None,
        pools: Pools::OneAndAll,
        inputs,
        options: json!({}),
        tercet: Box::new(tercet),
        rivals,
    })
}

#[derive(Clone)]
pub(super) struct Matmat {
    layout: Layout,
    rows: usize,
    cols: usize,
    bytes: Vec<u8>,
    pub(super) x: Vec<i8>,
    /// One per vector.
    pub(super) scales: Vec<f32>,
    pub(super) y: Vec<f32>,
    scratch: Vec<u32>,
}

impl Matmat {
    /// Makes rows, columns and vectors of random codes and also writes them to `inputs`; also returns the weights, one
    /// code per byte.
    pub(super) fn drawn(
        inputs: &mut Inputs,
        layout: Layout,
        [rows, cols, vectors]: [usize; 3],
    ) -> io::Result<(Self, Vec<i8>)> {
        let most = if layout == Layout::Int8 { 127 } else { 1 };
        let weights = codes(rows * cols, -most, most);
        let mut x = codes(vectors * cols, -127, 127);
        kernel::exact(&mut x);
        inputs.put("weights", &weights, &[rows, cols])?;
        inputs.put("x", &x, &[vectors, cols])?;
        let bytes = match layout {
            Layout::Block(format) => kernel::encode(format, &weights),
            _ => weights.iter().map(|&code| code as u8).collect(),
        };
        let drawn = Self {
            layout,
            rows,
            cols,
            bytes,
            x,
            scales: vec![1.0; vectors],
            y: vec![0.0; vectors * rows],
            scratch: Vec::new(),
        };
        Ok((drawn, weights))
    }

    /// Returns the minimum number of bytes that a product moves: it reads weights and activations, and writes f32
    /// outputs.
    pub(super) const fn moved(&self) -> usize {
        self.bytes.len() + self.x.len() + 4 * self.y.len()
    }

    pub(super) fn layer(&self) -> Layer<'_> {
        let matrix = Matrix::new(self.layout, self.rows, self.cols, &self.bytes);
        let matrix = matrix.and_then(|matrix| match self.layout {
            // Its scales are in the blocks.
            Layout::Block(_) => Ok(matrix),
            _ => matrix.with_scale(1.0),
        });
        Layer::new(matrix.unwrap_or_else(|error| panic!("{error}")))
    }
}

impl TimedWork for Matmat {
    fn run(&mut self, _: usize) -> f64 {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut y = std::mem::take(&mut self.y);
        let layer = self.layer();
        scratch.resize(layer.weights().fast_scratch_len(), 0);
        let x = I8Sym::new(&self.x).expect("no code of -128");
        let mut engine = Threads::default();
        // Weights are checked once, when a layer is made.
        let start = Instant::now();
        let done = engine.matmat(&layer, x, &self.scales, &mut y, &mut scratch);
        let seconds = start.elapsed().as_secs_f64();
        done.unwrap_or_else(|error| panic!("{error}"));
        (self.y, self.scratch) = (y, scratch);
        seconds
    }
}

impl Native for Matmat {
    fn answer(&self) -> Answer {
        Answer::of_floats("y", &self.y)
    }
}

impl Subject for Matmat {
    fn check(&mut self, answer: &Answer) -> Result<String, String> {
        super::near(&self.y, &answer.f32("y"), NEAR)
    }
}
