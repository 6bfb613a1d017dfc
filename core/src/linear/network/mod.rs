//! A small dense network that runs directly from a GGUF file.
//!
//! [`Network`] borrows weights, biases and multipliers from the file's bytes, in flash or in a memory map, and runs
//! them with integers on any [`LinearEngine`]. Layers exchange int8 activations; the last layer returns exact sums.
//! Only the step from a sum to int8 rounds, so logits are equal on every machine. `tercet network build` makes such
//! files from float models.
//!
//! # The file
//! A GGUF file with these keys and tensors; `i` counts layers from 0. The file may contain other keys and tensors.
//!
//! | key | type | meaning |
//! |---|---|---|
//! | `tercet.network.version` | u32 | 1 |
//! | `tercet.network.layers` | u32 | number of layers, at least 1 |
//! | `tercet.network.input_scale` | f32, > 0 | value of 1 in the input |
//! | `tercet.network.i.layout` | string | [`Layout::name`](super::Layout::name) |
//! | `tercet.network.i.rows`, `.cols` | u32, ≥ 1 | numbers of outputs and inputs; the inputs are the outputs of the previous layer |
//! | `tercet.network.i.bias_shift` | u32, ≤ 30 | left shift of the bias; 0 if missing |
//! | `tercet.network.i.activation` | string | `none` or `relu`, for all layers except the last; `none` if missing |
//! | `tercet.network.i.output_scale` | f32, > 0 | value of 1 in the outputs, for all layers except the last |
//!
//! | tensor | type | shape (row first) |
//! |---|---|---|
//! | `network.i.weight` | the blocks' type for [`Layout::Block`](super::Layout::Block), otherwise I8 | \[cols, rows\]; \[bytes\] for the packed layouts, which are Tercet's own |
//! | `network.i.scale` | F32 | \[1\] or \[rows\]: value of 1 in a weight; none for blocks, which contain theirs |
//! | `network.i.bias` | I32 | \[rows\]; may be missing |
//! | `network.i.multiplier` | I32, 2³⁰ to 2³¹ − 1 | \[1\] or \[rows\], for all layers except the last |
//! | `network.i.shift` | I8, 1 to 94 | as many as multipliers |
//!
//! # The rules
//! With x the int8 inputs (−127 to 127), and everything an exact integer:
//! 1. `sum[r] = Σ w[r][c] · x[c] + bias[r] · 2^bias_shift`. For blocks, Σ is over blocks: `Σ_b d_b · 2²⁴ · Σ w · x`.
//! 2. All layers except the last: `y[r] = clamp((sum[r] · multiplier + 2^(shift − 1)) >> shift, low, 127)`, with an
//!    arithmetic shift; low is 0 for `relu` and −127 for `none`. y is the next layer's x. See
//!    [`Requantize`](super::Requantize).
//! 3. The last layer's sums are the logits. As f32: `fl(fl(f32(sum) · unit · scale[r]) · x_scale)`. The unit is 2⁻²⁴
//!    for blocks and 1 otherwise; x_scale is the `output_scale` of the previous layer, or `input_scale`.
//! 4. The class is the row of the largest f32 logit, the lowest of equal ones.
//!
//! ```
//! use tercet_core::linear::network::{Buffers, Network};
//! use tercet_core::scalar::Scalar;
//!
//! # fn classify(file: &[u8], pixels: &[f32]) -> Result<usize, Box<dyn core::error::Error>> {
//! // At most four layers; the weights stay in `file`.
//! let network = Network::<4>::new(file)?;
//! // Sizes are known before (`LayerSize`) or asked for; on a desktop a vector serves.
//! let mut buffers = Buffers {
//!     activations: &mut vec![0; network.activations_len()],
//!     scratch: &mut vec![0; network.scratch_len()],
//! };
//! let (mut codes, mut sums) = (vec![0; network.inputs()], vec![0; network.outputs()]);
//! let x = network.quantize(pixels, &mut codes)?;
//! network.run(&mut Scalar, x, &mut buffers, &mut sums)?;
//! # let _ =
//! network.class(&sums)
//! # ; Ok(network.class(&sums))
//! # }
//! ```

mod entries;
mod error;
mod load;
mod many;
mod memory;

pub use error::NetworkError;
pub use memory::{Buffers, LayerSize};

use super::many::check_scratch;
use super::{I8Sym, Layer, LinearError, Rescale, expect};
use crate::engine::LinearEngine;
use crate::quant::Grid;

/// The supported version of the file format.
pub const VERSION: u32 = 1;

/// A network of at most `LAYERS` dense layers, borrowed from a file; see [the module](self) for its format and an
/// example.
#[derive(Clone, Debug, PartialEq)]
pub struct Network<'a, const LAYERS: usize> {
    input_scale: f32,
    /// At least one.
    stages: heapless::Vec<Stage<'a>, LAYERS>,
}

/// A layer and, for all except the last, the rule that converts its sums to int8 and the value of 1 in them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stage<'a> {
    layer: Layer<'a>,
    rescale: Option<(Rescale<'a>, f32)>,
}

impl<'a, const LAYERS: usize> Network<'a, LAYERS> {
    /// Returns the layers, first to last.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = &Layer<'a>> {
        self.stages.iter().map(|stage| &stage.layer)
    }

    /// Returns the number of inputs of the first layer.
    pub fn inputs(&self) -> usize {
        let first = self.stages.first();
        first.map_or(0, |stage| stage.layer.weights().cols())
    }

    /// Returns the number of outputs of the last layer.
    pub fn outputs(&self) -> usize {
        self.last().map_or(0, |layer| layer.weights().rows())
    }

    /// Returns the value of 1 in the input.
    pub const fn input_scale(&self) -> f32 {
        self.input_scale
    }

    /// Returns the value of 1 in the inputs of the last layer.
    pub fn last_scale(&self) -> f32 {
        let mut scales = self.stages.iter().filter_map(|stage| stage.rescale);
        scales
            .next_back()
            .map_or(self.input_scale, |(_, scale)| scale)
    }

    /// Returns the number of bytes of activations that a run needs; see [`LayerSize::activations_len`].
    pub fn activations_len(&self) -> usize {
        let hidden = self.stages.iter().filter(|stage| stage.rescale.is_some());
        let (mut most, mut before) = (0, 0);
        for stage in hidden {
            let rows = stage.layer.weights().rows();
            most = rows.saturating_add(before).max(most);
            before = rows;
        }
        most
    }

    /// Returns the number of bytes of activations that [`Network::run_many`] needs for that many points; see
    /// [`LayerSize::activations_len_many`].
    pub fn activations_len_many(&self, points: usize) -> usize {
        self.activations_len().saturating_mul(points)
    }

    /// Returns the number of words of scratch that a run needs on the core's own engines, which is the same for a
    /// batch as for one point; see [`LayerSize::scratch_len`].
    pub fn scratch_len(&self) -> usize {
        let words = self.layers().map(|layer| layer.weights().scratch_len());
        words.max().unwrap_or(0)
    }

    /// Returns the number of words of scratch that a run needs on `engine`, which may be 0.
    pub fn scratch_len_on<E: LinearEngine>(&self, engine: &E) -> usize {
        let words = self
            .layers()
            .map(|layer| engine.product_scratch_len(layer.weights()));
        words.max().unwrap_or(0)
    }

    /// Returns the largest number of words of scratch that a run uses; see
    /// [`Layout::fast_scratch_len`](crate::linear::Layout::fast_scratch_len).
    pub fn fast_scratch_len(&self) -> usize {
        let words = self
            .layers()
            .map(|layer| layer.weights().fast_scratch_len());
        words.max().unwrap_or(0)
    }

    /// Rounds f32 inputs to codes: `clamp(half_even(fl(x / input_scale)), −127, 127)`.
    ///
    /// # Errors
    /// [`NetworkError::Input`] unless `values` and `out` have [`Network::inputs`] elements;
    /// [`NetworkError::NotFinite`].
    pub fn quantize<'o>(
        &self,
        values: &[f32],
        out: &'o mut [i8],
    ) -> Result<I8Sym<'o>, NetworkError> {
        let expected = self.inputs();
        for found in [values.len(), out.len()] {
            if found != expected {
                return Err(NetworkError::Input { expected, found });
            }
        }
        if let Some(index) = values.iter().position(|x| !x.is_finite()) {
            return Err(NetworkError::NotFinite { index });
        }
        let grid = Grid {
            scale: self.input_scale,
            zero_point: 0,
            low: -127,
            high: 127,
        };
        for (code, &x) in out.iter_mut().zip(values) {
            *code = grid.code(x);
        }
        // The grid ends at −127.
        I8Sym::new(out).map_err(|error| NetworkError::Layer { layer: 0, error })
    }

    /// Runs one input through all layers. `sums` gets the last layer's exact sums: the logits as integers.
    ///
    /// O(weights). `sums` has [`Network::outputs`] elements.
    ///
    /// # Errors
    /// [`LinearError::Length`] for `x` and `sums`, and if there are too few activations; [`LinearError::Scratch`];
    /// otherwise those of the engine. All lengths are checked before the first layer.
    pub fn run<E: LinearEngine>(
        &self,
        engine: &mut E,
        x: I8Sym<'_>,
        buffers: &mut Buffers<'_>,
        sums: &mut [i64],
    ) -> Result<(), E::Error> {
        self.check(x, buffers.activations.len(), sums.len())?;
        check_scratch(self.scratch_len_on(engine), buffers.scratch.len())?;
        let scratch = &mut *buffers.scratch;
        let Some((last, hidden)) = self.stages.split_last() else {
            return Ok(());
        };
        for (number, stage) in hidden.iter().enumerate() {
            let Some((rescale, _)) = &stage.rescale else {
                continue;
            };
            let weights = stage.layer.weights();
            let sizes = (weights.cols(), weights.rows());
            let (own, out) = apart(buffers.activations, number, sizes);
            let x = if number == 0 { x } else { I8Sym::new(own)? };
            engine.dense(&stage.layer, rescale, x, out, scratch)?;
        }
        let sizes = (last.layer.weights().cols(), 0);
        let (own, _) = apart(buffers.activations, hidden.len(), sizes);
        let x = if hidden.is_empty() {
            x
        } else {
            I8Sym::new(own)?
        };
        engine.sums(&last.layer, x, sums, scratch)
    }

    /// Checks all lengths for [`Network::run`] except scratch.
    fn check(&self, x: I8Sym<'_>, found: usize, sums: usize) -> Result<(), LinearError> {
        expect(self.inputs(), x.len())?;
        expect(self.outputs(), sums)?;
        let expected = self.activations_len();
        if found < expected {
            return Err(LinearError::Length { expected, found });
        }
        Ok(())
    }

    /// Returns a logit as f32 from its row and its sum, as [`super::matvec`] computes it for the last layer.
    pub fn logit(&self, row: usize, sum: i64) -> f32 {
        let layer = self.last();
        layer.map_or(0.0, |layer| layer.value(row, sum, self.last_scale()))
    }

    /// Returns the row of the largest logit, the lowest of equal ones.
    pub fn class(&self, sums: &[i64]) -> usize {
        let mut best = (0, f32::NEG_INFINITY);
        for (row, &sum) in sums.iter().enumerate() {
            let logit = self.logit(row, sum);
            if logit > best.1 {
                best = (row, logit);
            }
        }
        best.0
    }

    fn last(&self) -> Option<&Layer<'a>> {
        self.stages.last().map(|stage| &stage.layer)
    }
}

/// Returns the inputs and the outputs of layer `number` in the activations. Outputs are at the front and at the back
/// in turn; inputs are the outputs of the previous layer.
fn apart(
    activations: &mut [i8],
    number: usize,
    (inputs, outputs): (usize, usize),
) -> (&[i8], &mut [i8]) {
    let len = activations.len();
    if number.is_multiple_of(2) {
        let (out, rest) = halves(activations, outputs.min(len));
        let start = rest.len().saturating_sub(inputs);
        (rest.get(start..).unwrap_or_default(), out)
    } else {
        let (rest, out) = halves(activations, len.saturating_sub(outputs));
        (rest.get(..inputs).unwrap_or_default(), out)
    }
}

fn halves(activations: &mut [i8], at: usize) -> (&mut [i8], &mut [i8]) {
    activations.split_at_mut_checked(at).unwrap_or_default()
}
