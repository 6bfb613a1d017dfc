//! A matrix times one vector: a small one as NumPy multiplies it in f32, and larger ones of blocks.

use super::data::codes;
use super::kernel;
use super::{Case, Event, Inputs, Native, Pools, Rival, Subject, TimedWork};
use crate::peers::process::Answer;
use serde_json::json;
use std::io;
use std::time::Instant;
use tercet_core::block::Format;
use tercet_core::engine::LinearEngine;
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix, pack};
use tercet_host::measure::short;
use tercet_host::parallel::Threads;

const ROWS: usize = 100_000;
const COLS: usize = 100;
/// Value of a code of the activations; a code of the weights has the value 1.
const SCALE: f32 = 1.0 / 64.0;
/// Maximum difference of sums in f32 in other orders from Tercet's, relative to the largest.
const NEAR: f32 = 1e-4;

pub(super) fn events(quick: bool) -> Vec<Event> {
    let layouts = [Layout::Int8, Layout::TernaryLanes, Layout::FiveTrits];
    let small = layouts.map(|layout| {
        Event::new(
            format!("matvec {}, 100K×100", layout.name()),
            move |name, inputs| case(name, inputs, layout),
        )
    });
    let square = Format::ENCODED.map(|format| (format, 4096, 4096));
    let large = if quick { 4096 } else { 65_536 };
    let blocks = square.into_iter().chain([(Format::Tq2_0, large, 16_384)]);
    let blocks = blocks.map(|(format, rows, cols)| {
        let name = format!("matvec {}, {}×{}", format.name(), short(rows), short(cols));
        Event::new(name, move |name, inputs| {
            blocks_case(name, inputs, format, rows, cols)
        })
    });
    small.into_iter().chain(blocks).collect()
}

fn case(name: &str, mut inputs: Inputs, layout: Layout) -> io::Result<Case> {
    let (low, high) = layout.codes();
    let weights = codes(ROWS * COLS, low, high);
    let x = codes(COLS, -127, 127);
    let floats: Vec<f32> = weights.iter().map(|&code| f32::from(code)).collect();
    inputs.put("weights", &floats, &[ROWS, COLS])?;
    let floats: Vec<f32> = x.iter().map(|&code| f32::from(code) * SCALE).collect();
    inputs.put("x", &floats, &[COLS])?;
    let mut bytes = vec![0; layout.bytes(ROWS, COLS).expect("it fits")];
    pack::pack(layout, ROWS, COLS, &weights, &mut bytes).expect("codes of the layout");
    Ok(Case {
        name: name.into(),
        work: (ROWS * COLS) as f64,
        unit: "products",
        steps: None,
        pools: Pools::OneAndAll,
        inputs,
        options: json!({}),
        tercet: Box::new(Matvec {
            layout,
            rows: ROWS,
            bytes,
            scale: SCALE,
            x,
            y: vec![0.0; ROWS],
            scratch: Vec::new(),
        }),
        rivals: vec![Rival::python("NumPy, f32", "numpy_", "matvec")],
    })
}

/// Makes a [`case`] of blocks, whose scales are as near 1 as the format allows.
fn blocks_case(
    name: &str,
    inputs: Inputs,
    format: Format,
    rows: usize,
    cols: usize,
) -> io::Result<Case> {
    let layout = Layout::Block(format);
    let (low, high) = match format {
        Format::Tq1_0 | Format::Tq2_0 | Format::Q2_0 => (-1, 1),
        Format::Q8_0 => (-127, 127),
        other => other.codes(),
    };
    let weights = codes(rows * cols, low, high);
    let mut x = codes(cols, -127, 127);
    kernel::exact(&mut x);
    let bytes = kernel::encode(format, &weights);
    let rivals = kernel::rivals(format, &bytes, &weights, &x, cols);
    Ok(Case {
        name: name.into(),
        work: (rows * cols) as f64,
        unit: "products",
        steps: None,
        pools: Pools::OneAndAll,
        inputs,
        options: json!({}),
        tercet: Box::new(Matvec {
            layout,
            rows,
            bytes,
            scale: 1.0,
            x,
            y: vec![0.0; rows],
            scratch: Vec::new(),
        }),
        rivals,
    })
}

struct Matvec {
    layout: Layout,
    rows: usize,
    bytes: Vec<u8>,
    /// Value of a code of the activations.
    scale: f32,
    x: Vec<i8>,
    y: Vec<f32>,
    scratch: Vec<u32>,
}

impl TimedWork for Matvec {
    fn run(&mut self, _: usize) -> f64 {
        let matrix = Matrix::new(self.layout, self.rows, self.x.len(), &self.bytes);
        let matrix = matrix.and_then(|matrix| match self.layout {
            // Its scales are in the blocks.
            Layout::Block(_) => Ok(matrix),
            _ => matrix.with_scale(1.0),
        });
        let layer = Layer::new(matrix.unwrap_or_else(|error| panic!("{error}")));
        self.scratch.resize(layer.weights().fast_scratch_len(), 0);
        let x = I8Sym::new(&self.x).expect("no code of -128");
        let mut engine = Threads::default();
        // Weights are checked once, when a layer is made.
        let start = Instant::now();
        let done = engine.matvec(&layer, x, self.scale, &mut self.y, &mut self.scratch);
        done.unwrap_or_else(|error| panic!("{error}"));
        start.elapsed().as_secs_f64()
    }
}

impl Native for Matvec {
    fn answer(&self) -> Answer {
        Answer::of_floats("y", &self.y)
    }
}

impl Subject for Matvec {
    /// NumPy's f32 products are exact here, and so are their sums below 2²⁴ units of 1/64.
    fn check(&mut self, answer: &Answer) -> Result<String, String> {
        super::near(&self.y, &answer.f32("y"), NEAR)
    }
}
