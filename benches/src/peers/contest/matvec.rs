//! A small matrix times one vector: what NumPy does in f32, from int8 and ternary weights.

use super::data::codes;
use super::{Case, Event, Inputs, Rival, Subject, Work};
use crate::peers::process::Answer;
use serde_json::json;
use std::io;
use std::time::Instant;
use tercet_core::engine::LinearEngine;
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix, pack};
use tercet_host::parallel::Threads;

const ROWS: usize = 100_000;
const COLS: usize = 100;
/// What a code of the activations stands for; 1 for the weights.
const SCALE: f32 = 1.0 / 64.0;

pub(super) fn events() -> Vec<Event> {
    let layouts = [Layout::Int8, Layout::TernaryLanes, Layout::FiveTrits];
    let events = layouts.map(|layout| {
        Event::new(
            format!("matvec {}, 100K×100", layout.name()),
            move |name, inputs| case(name, inputs, layout),
        )
    });
    events.into()
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
        threads: true,
        inputs,
        options: json!({}),
        tercet: Box::new(Matvec {
            layout,
            bytes,
            x,
            y: vec![0.0; ROWS],
            scratch: Vec::new(),
        }),
        rivals: vec![Rival::Python {
            label: "NumPy, f32",
            module: "numpy_",
            what: "matvec",
        }],
    })
}

struct Matvec {
    layout: Layout,
    bytes: Vec<u8>,
    x: Vec<i8>,
    y: Vec<f32>,
    scratch: Vec<u32>,
}

impl Work for Matvec {
    fn run(&mut self, _: usize) -> f64 {
        let start = Instant::now();
        let matrix = Matrix::new(self.layout, ROWS, COLS, &self.bytes);
        let matrix = matrix.and_then(|matrix| matrix.with_scale(1.0));
        let layer = Layer::new(matrix.unwrap_or_else(|error| panic!("{error}")));
        self.scratch.resize(layer.weights().fast_scratch_len(), 0);
        let x = I8Sym::new(&self.x).expect("no code of -128");
        let mut engine = Threads::default();
        let done = engine.matvec(&layer, x, SCALE, &mut self.y, &mut self.scratch);
        done.unwrap_or_else(|error| panic!("{error}"));
        start.elapsed().as_secs_f64()
    }
}

impl Subject for Matvec {
    /// The f32 products are exact here, and sums of them below 2²⁴ units of 1/64 too.
    fn check(&mut self, answer: &Answer) -> Result<String, String> {
        let theirs = answer.f32("y");
        match self
            .y
            .iter()
            .zip(&theirs)
            .find(|(ours, theirs)| ours != theirs)
        {
            _ if theirs.len() != self.y.len() => Err(format!("{} sums", theirs.len())),
            Some((ours, theirs)) => Err(format!("a sum of {theirs} for {ours}")),
            None => Ok("same sums".into()),
        }
    }
}
