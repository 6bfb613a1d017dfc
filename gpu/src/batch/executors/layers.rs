//! Rows of activations for one layer.

use std::fmt;

use tercet_core::engine::LinearEngine;
use tercet_core::linear::{I8Sym, Layer, LinearError};
use tercet_host::engine::EngineError;

use super::CanAllocate;
use super::room::most;
use crate::batch::{BatchJob, Executor};

/// The job of multiplying a layer: the request is [`Activations`], the answer an output for each row of weights.
#[derive(Clone, Copy, Debug)]
pub struct Multiply;

/// A row of int8 activations.
#[derive(Clone, Debug, PartialEq)]
pub struct Activations {
    /// As many values as the layer has columns, in −127..=127.
    pub values: Vec<i8>,
    /// The value of the code 1.
    pub scale: f32,
}

impl BatchJob for Multiply {
    type Request = Activations;
    type Answer = Vec<f32>;
    type Error = EngineError;
    type Kind = ();

    fn kind(_: &Activations) {}
}

/// [`Multiply`] on an engine that receives the weights with each batch, ternary, int8 or in blocks:
/// [`LinearEngine::matmat`].
///
/// A batch of n rows takes `n · (cols + 4 · rows)` bytes beside the engine's. If an engine has its own memory, it is
/// asked for room for n rows of activations and of sums, 8 bytes each, and gets fewer rows if they do not fit
/// ([`CanAllocate`]).
pub struct Layers<'a, E> {
    engine: E,
    layer: Layer<'a>,
    scratch: Vec<u32>,
}

impl<'a, E> Layers<'a, E> {
    /// Returns the work of an engine on a layer.
    pub fn new(engine: E, layer: Layer<'a>) -> Self
    where
        E: LinearEngine,
    {
        let scratch = vec![0; engine.product_scratch_len(layer.weights())];
        Self {
            engine,
            layer,
            scratch,
        }
    }

    /// Returns rows, columns and bytes of the weights.
    pub(super) const fn shape(&self) -> (usize, usize, usize) {
        let weights = self.layer.weights();
        (weights.rows(), weights.cols(), weights.bytes().len())
    }
}

/// Checks that activations fit a layer with so many columns.
pub(super) fn check(request: &Activations, cols: usize) -> Result<(), LinearError> {
    let (expected, found) = (cols, request.values.len());
    if expected != found {
        return Err(LinearError::Length { expected, found });
    }
    I8Sym::new(&request.values).map(|_| ())
}

/// Returns the activations of a batch one after another, and their scales.
pub(super) fn gathered(requests: &[Activations]) -> (Vec<i8>, Vec<f32>) {
    let values = requests.iter().flat_map(|row| &row.values);
    (
        values.copied().collect(),
        requests.iter().map(|row| row.scale).collect(),
    )
}

/// Returns the outputs of each of `count` rows of activations.
pub(super) fn parted(out: &[f32], rows: usize, count: usize) -> Vec<Vec<f32>> {
    // A layer may have no rows.
    (0..count)
        .map(|row| out[row * rows..(row + 1) * rows].to_vec())
        .collect()
}

impl<E: LinearEngine<Error: Into<EngineError>> + CanAllocate + Send> Executor<Multiply>
    for Layers<'_, E>
{
    /// Checks their number, and that none is −128.
    fn check(&self, request: &Activations) -> Result<(), EngineError> {
        Ok(check(request, self.layer.weights().cols())?)
    }

    fn most(&self, (): &(), wanted: usize) -> usize {
        let weights = self.layer.weights();
        // The engine itself only splits the weights.
        most(&self.engine, wanted, |count| {
            [count * weights.cols(), 8 * count * weights.rows()]
        })
    }

    fn run(&mut self, (): &(), requests: &[Activations]) -> Result<Vec<Vec<f32>>, EngineError> {
        let rows = self.layer.weights().rows();
        let (values, scales) = gathered(requests);
        let mut out = vec![0.0; rows * requests.len()];
        self.engine
            .matmat(
                &self.layer,
                I8Sym::new(&values)?,
                &scales,
                &mut out,
                &mut self.scratch,
            )
            .map_err(Into::into)?;
        Ok(parted(&out, rows, requests.len()))
    }

    fn splits(&self, error: &EngineError) -> bool {
        matches!(error, EngineError::NoRoom(_))
    }
}

impl<E: fmt::Debug> fmt::Debug for Layers<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weights = self.layer.weights();
        f.debug_struct("Layers")
            .field("engine", &self.engine)
            .field("rows", &weights.rows())
            .field("cols", &weights.cols())
            .finish_non_exhaustive()
    }
}
