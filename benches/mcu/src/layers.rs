//! Layers of random weights in every layout, with their product as cases.

use tercet_core::arch::plain::linear::for_each_sum;
use tercet_core::block::{self, Format};
use tercet_core::engine::LinearEngine;
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix, Requantize, Rescale, Table, dense, pack};
use tercet_core::number::Random;
use tercet_core::quant::{Rule, ScaleRule};
use tercet_core::scalar::Only;

use crate::memory::Memory;
use crate::run::{Case, Name, Shape};

/// A layer, its input, and the output of the plain loops.
#[derive(Debug)]
pub struct Data<'a> {
    layer: Layer<'a>,
    rescale: Rescale<'a>,
    x: I8Sym<'a>,
    out: &'a mut [i8],
    expected: &'a mut [i8],
    scratch: &'a mut [u32],
    offset: usize,
}

impl<'a> Data<'a> {
    /// Makes random weights, biases and activations; the weights begin `offset` bytes after a multiple of 16.
    ///
    /// # Panics
    /// If `memory` is too small, or the layout does not allow the shape.
    pub fn new(layout: Layout, shape: Shape, offset: usize, memory: &mut Memory<'a>) -> Self {
        let Shape(rows, cols) = shape;
        let mut random = Random::new(4);
        let len = layout.bytes(rows, cols).expect("a legal shape");
        let bytes = &mut memory.slice::<u8>(offset + len)[offset..];
        fill(layout, shape, &mut random, bytes, memory);
        let x = memory.slice(cols);
        x.fill_with(|| (random.below(255) as i64 - 127) as i8);
        let x = I8Sym::new(x).expect("-127 to 127");
        let weights = Matrix::new(layout, rows, cols, bytes).expect("legal codes");

        // The biases are as large as the sums, and scaled so that the largest output is int8's largest.
        let mut largest = 0;
        for_each_sum(&weights, x, |_, sum| largest = largest.max(sum.abs()));
        let shift = (64 - largest.leading_zeros()).saturating_sub(30).min(30) as u8;
        let limit = (largest >> shift) as u64;
        let bias = memory.slice::<i32>(rows);
        bias.fill_with(|| random.below(2 * limit + 1) as i32 - limit as i32);
        let layer = Layer::new(weights)
            .with_bias(Table::Words(bias), shift)
            .expect("one a row");
        let mut largest = 1;
        for_each_sum(&weights, x, |row, sum| {
            largest = largest.max((sum + layer.bias(row)).abs());
        });
        let scale = Requantize::from_scale(127.0 / largest as f64).expect("below 1");

        let mut data = Self {
            layer,
            rescale: Rescale::one(scale),
            x,
            out: memory.slice(rows),
            expected: memory.slice(rows),
            scratch: memory.slice(weights.fast_scratch_len()),
            offset,
        };
        Plain(&mut data).run();
        data.expected.copy_from_slice(data.out);
        data
    }

    fn name(&self, operation: &'static str, code: &'static str) -> Name {
        let weights = self.layer.weights();
        Name {
            operation,
            layout: weights.layout().name(),
            shape: Shape(weights.rows(), weights.cols()),
            code,
        }
    }

    fn work(&self) -> usize {
        self.layer.weights().rows() * self.layer.weights().cols()
    }

    /// Returns true if `out` is right and not trivial. Clears it for the next run.
    fn check(&mut self) -> bool {
        let right = self.out == self.expected && self.out.iter().any(|&code| code.abs() == 127);
        self.out.fill(-128);
        right
    }
}

/// [`dense`]: widens activations, multiplies, adds the bias, and rounds once to int8.
#[derive(Debug)]
pub struct Dense<'a, 'b>(pub &'b mut Data<'a>);

impl Case for Dense<'_, '_> {
    fn name(&self) -> Name {
        let operation = match self.0.offset {
            0 => "dense",
            _ => "dense@1",
        };
        self.0.name(operation, "kernel")
    }

    fn work(&self) -> usize {
        self.0.work()
    }

    fn scratch(&self) -> usize {
        size_of_val(self.0.scratch)
    }

    fn run(&mut self) {
        let data = &mut *self.0;
        // The sizes fit; the check of the result would show an error.
        let _ = dense(&data.layer, &data.rescale, data.x, data.out, data.scratch);
    }

    fn check(&mut self) -> bool {
        self.0.check()
    }
}

/// The same with the plain loops of [`tercet_core::arch::plain::linear`].
#[derive(Debug)]
pub struct Plain<'a, 'b>(pub &'b mut Data<'a>);

impl Case for Plain<'_, '_> {
    fn name(&self) -> Name {
        self.0.name("dense", "plain")
    }

    fn work(&self) -> usize {
        self.0.work()
    }

    fn run(&mut self) {
        let data = &mut *self.0;
        for_each_sum(data.layer.weights(), data.x, |row, sum| {
            if let Some(out) = data.out.get_mut(row) {
                *out = data.rescale.apply(row, sum + data.layer.bias(row));
            }
        });
    }

    fn check(&mut self) -> bool {
        self.0.check()
    }
}

/// [`Dense`] with an engine of one layout.
#[derive(Debug)]
pub struct Alone<'a, 'b, const SET: u32>(pub &'b mut Data<'a>);

impl<const SET: u32> Case for Alone<'_, '_, SET> {
    fn name(&self) -> Name {
        self.0.name("dense", "alone")
    }

    fn work(&self) -> usize {
        self.0.work()
    }

    fn scratch(&self) -> usize {
        size_of_val(self.0.scratch)
    }

    fn run(&mut self) {
        let data = &mut *self.0;
        let _ = Only::<SET>.dense(&data.layer, &data.rescale, data.x, data.out, data.scratch);
    }

    fn check(&mut self) -> bool {
        self.0.check()
    }
}

/// Fills weights with codes of every kind that the layout has.
fn fill(
    layout: Layout,
    shape: Shape,
    random: &mut Random,
    bytes: &mut [u8],
    memory: &mut Memory<'_>,
) {
    let Shape(rows, cols) = shape;
    let mut memory = memory.fork();
    if let Layout::Block(format) = layout {
        return fill_blocks(format, random, bytes);
    }
    let (lowest, highest) = layout.codes();
    let span = (i64::from(highest) - i64::from(lowest) + 1) as u64;
    let codes = memory.slice(rows * cols);
    codes.fill_with(|| (random.below(span) as i64 + i64::from(lowest)) as i8);
    pack::pack(layout, rows, cols, codes, bytes).expect("codes of the layout");
}

/// Fills blocks with values between −4 and 4, and also the code +2 if the format has it. For read-only formats, fills
/// them with any bytes under scales and minima of 1.
fn fill_blocks(format: Format, random: &mut Random, bytes: &mut [u8]) {
    for block in bytes.chunks_exact_mut(format.bytes()) {
        if !format.can_encode() {
            block.fill_with(|| random.next_u64() as u8);
            for at in [Some(format.scale_offset()), format.min_offset()]
                .into_iter()
                .flatten()
            {
                block[at..at + 2].copy_from_slice(&0x3C00u16.to_le_bytes());
            }
            continue;
        }
        let mut values = [0.0; Format::MAX_LEN];
        let values = &mut values[..format.len()];
        values.fill_with(|| 4.0 * random.signed_f32());
        block::encode(format, Rule::AbsMax, ScaleRule::Rule, values, block).expect("whole blocks");
        if matches!(format, Format::Tq2_0 | Format::Q2_0) {
            // Byte 2 contains codes in both.
            block[2] = 0xFF;
        }
    }
}
