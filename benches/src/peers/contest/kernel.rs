//! ggml's and BitNet's kernels for quantized rows, as rivals.

use super::{Native, Rival, Work};
use crate::peers::process::Answer;
use crate::peers::vec_dot::{Activations, Kernel};
use std::time::Instant;
use tercet_core::block::{self, Format};
use tercet_core::quant::{Rule, ScaleRule};

/// The f32 values of ggml's smallest block of activations; it quantizes them by the largest magnitude.
const BLOCK: usize = 32;

/// Makes activations such that ggml's quantizers give them back as they are: a block's largest magnitude is 127.
pub(super) fn exact(x: &mut [i8]) {
    for block in x.chunks_mut(BLOCK) {
        block[0] = 127;
    }
}

/// Codes of a block format's weights, each block with its largest, so that the scale of each is 1 (of [`Format::Q8_0`], near it).
pub(super) fn encode(format: Format, weights: &[i8]) -> Vec<u8> {
    let values: Vec<f32> = weights.iter().map(|&code| f32::from(code)).collect();
    let mut bytes = vec![0; format.encoded_len(values.len()).expect("whole blocks")];
    block::encode(format, Rule::AbsMax, ScaleRule::Rule, &values, &mut bytes)
        .expect("finite values");
    bytes
}

/// Those of the two that are here and multiply what `bytes` of a format hold; `codes` are the same weights, one a byte.
pub(super) fn rivals(
    format: Format,
    bytes: &[u8],
    codes: &[i8],
    x: &[i8],
    cols: usize,
) -> Vec<Rival> {
    let mut rivals = Vec::new();
    let mut add = |label, kernel: Kernel, weights| {
        let x = kernel.activations(x, cols);
        let y = vec![0.0; codes.len() / cols * x.len()];
        let work = Box::new(Product {
            kernel,
            weights,
            x,
            y,
        });
        rivals.push(Rival::Native { label, work });
    };
    if let Some(kernel) = Kernel::ggml(format) {
        add("ggml", kernel, bytes.to_vec());
    }
    if let Some(kernel) = Kernel::bitnet().filter(|_| format == Format::Tq2_0) {
        add("BitNet, I2_S", kernel, Kernel::pack(codes));
    }
    rivals
}

struct Product {
    kernel: Kernel,
    weights: Vec<u8>,
    x: Activations,
    /// A row's sums with each vector.
    y: Vec<f32>,
}

impl Work for Product {
    fn run(&mut self, _: usize) -> f64 {
        let start = Instant::now();
        self.kernel.multiply(&self.weights, &self.x, &mut self.y);
        start.elapsed().as_secs_f64()
    }
}

impl Native for Product {
    /// A vector's sums with each row.
    fn answer(&self) -> Answer {
        let vectors = self.x.len();
        let sums = (0..vectors).flat_map(|vector| self.y.iter().skip(vector).step_by(vectors));
        let bytes: Vec<u8> = sums.flat_map(|sum| sum.to_le_bytes()).collect();
        Answer::of("y", &bytes)
    }
}
