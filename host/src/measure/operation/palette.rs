//! Palettes: encode, decode, multiply.

use tercet_core::engine::PaletteEngine;
use tercet_core::palette::{self, IndexMatrix, Output, Palette, PaletteError, Width};

use super::{Bits, Operation, legal};
use crate::measure::clock::Clock;
use crate::measure::contender::{Contender, with_engine};
use crate::measure::task::Task;
use crate::measure::work::{Arithmetic, LeastWork};
use crate::measure::{Traffic, input};

/// The scale of activations.
const X_SCALE: f32 = 0.01;

/// The measured part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::measure) enum PaletteStep {
    /// Values to indices and a codebook.
    Encode,
    /// Back to values.
    Decode,
    /// The encoded matrix times an int8 vector.
    MatVec,
}

/// A matrix of one group.
#[derive(Clone)]
pub(in crate::measure) struct Coded {
    layout: IndexMatrix,
    indices: Vec<u8>,
    codebook: Vec<i8>,
    scale: [f32; 1],
    scratch: Vec<u64>,
    part: PaletteStep,
}

impl Coded {
    /// Returns an operation on a matrix of normal values.
    pub(in crate::measure) fn new(
        part: PaletteStep,
        bits: u8,
        rows: usize,
        cols: usize,
    ) -> (LeastWork, Self) {
        let width = legal(Width::new(bits));
        let layout = legal(IndexMatrix::new(width, rows, cols, 1));
        let mut this = Self {
            indices: vec![0; layout.index_bytes()],
            codebook: vec![0; layout.codebook_len()],
            scale: [0.0],
            scratch: vec![0; layout.scratch_len()],
            layout,
            part,
        };
        let values = rows * cols;
        this.encode(Contender::Scalar, &input::normals(values));
        let indices = this.indices.len();
        let work = match part {
            // The codebook needs the whole group before the first index.
            PaletteStep::Encode => LeastWork::pass(values, Traffic::Narrow, values * 4 + indices)
                .after_reading(values * 4),
            PaletteStep::Decode => LeastWork::pass(values, Traffic::Widen, values * 4 + indices),
            PaletteStep::MatVec => {
                LeastWork::pass(values, Traffic::Read, indices + cols + rows * 4)
                    .with_products(values as u64, Arithmetic::Int8)
            }
        };
        (work, this)
    }

    fn encode(&mut self, by: Contender, values: &[f32]) {
        let Self {
            layout,
            indices,
            codebook,
            scale,
            scratch,
            ..
        } = self;
        let out = Output {
            indices,
            codebooks: codebook,
            scales: scale,
        };
        with_engine!(by, engine => encode(&mut engine, layout, values, out, scratch));
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

impl Operation for Coded {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let (rows, cols) = (self.layout.rows(), self.layout.cols());
        match self.part {
            PaletteStep::Encode => {
                let values = input::normals(rows * cols);
                let mut out = self.clone();
                clock.time(&mut || out.encode(by, &values));
                let bits = Bits::default().with(&out.indices).with(&out.codebook);
                bits.with_floats(&out.scale).finish()
            }
            PaletteStep::Decode => {
                let mut out = vec![0.0; rows * cols];
                clock.time(&mut || {
                    with_engine!(by, engine => decode(&mut engine, &self.view(), &mut out));
                });
                Bits::default().with_floats(&out).finish()
            }
            PaletteStep::MatVec => {
                let (x, mut out) = (input::codes(cols), vec![0.0; rows]);
                clock.time(&mut || {
                    with_engine!(by, engine => matvec(&mut engine, &self.view(), &x, &mut out));
                });
                Bits::default().with_floats(&out).finish()
            }
        }
    }

    fn task(&self) -> Option<Task<'_>> {
        let palette = self.view();
        match self.part {
            // Devices count codes for it and the host chooses: none does it completely on the device.
            PaletteStep::Encode => None,
            PaletteStep::Decode => Some(Task::PaletteDecode { palette }),
            PaletteStep::MatVec => Some(Task::PaletteMatVec {
                x: input::codes(palette.layout.cols()).to_vec(),
                x_scale: X_SCALE,
                palette,
            }),
        }
    }
}

fn encode(
    engine: &mut impl PaletteEngine<Error = PaletteError>,
    layout: &IndexMatrix,
    values: &[f32],
    out: Output<'_>,
    scratch: &mut [u64],
) -> palette::Encoded {
    legal(engine.encode_palette(layout, values, &[], out, scratch))
}

fn decode(
    engine: &mut impl PaletteEngine<Error = PaletteError>,
    palette: &Palette<'_>,
    out: &mut [f32],
) {
    legal(engine.decode_palette(palette, out));
}

fn matvec(
    engine: &mut impl PaletteEngine<Error = PaletteError>,
    palette: &Palette<'_>,
    x: &[i8],
    out: &mut [f32],
) {
    legal(engine.multiply_palette(palette, x, X_SCALE, out));
}
