//! ggml's and BitNet's kernels for quantized rows, as rivals.

use super::{Native, Rival, TimedWork};
use crate::peers::process::Answer;
use crate::peers::vec_dot::{Activations, Kernel};
use std::time::Instant;
use tercet_core::block::{self, Format};
use tercet_core::quant::{Rule, ScaleRule};

/// Number of f32 values in ggml's smallest block of activations, which it quantizes by their largest magnitude.
const BLOCK: usize = 32;

/// Changes activations so that ggml's quantizers return them unchanged: a block's largest magnitude is 127.
pub(super) fn exact(x: &mut [i8]) {
    for block in x.chunks_mut(BLOCK) {
        block[0] = 127;
    }
}

/// Encodes a block format's weights. Each block contains its largest code, so that its scale is 1 (for
/// [`Format::Q8_0`], near 1).
pub(super) fn encode(format: Format, weights: &[i8]) -> Vec<u8> {
    let values: Vec<f32> = weights.iter().map(|&code| f32::from(code)).collect();
    let mut bytes = vec![0; format.encoded_len(values.len()).expect("whole blocks")];
    block::encode(format, Rule::AbsMax, ScaleRule::Rule, &values, &mut bytes)
        .expect("finite values");
    bytes
}

/// Returns those of the two that are available and multiply the weights in `bytes` of a format; `codes` are the same
/// weights, one per byte.
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
    /// The sums of a row with each vector.
    y: Vec<f32>,
}

impl TimedWork for Product {
    fn run(&mut self, _: usize) -> f64 {
        let start = Instant::now();
        self.kernel.multiply(&self.weights, &self.x, &mut self.y);
        start.elapsed().as_secs_f64()
    }
}

impl Native for Product {
    /// Returns the sums of a vector with each row.
    fn answer(&self) -> Answer {
        let vectors = self.x.len();
        let sums = (0..vectors).flat_map(|vector| self.y.iter().skip(vector).step_by(vectors));
        let bytes: Vec<u8> = sums.flat_map(|sum| sum.to_le_bytes()).collect();
        Answer::of("y", &bytes)
    }
}
