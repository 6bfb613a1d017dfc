//! Rows of activations for one layer whose weights stay on a device.

use tercet_core::linear::{I8Sym, Layer};
use tercet_host::engine::EngineError;

use super::layers::{Activations, Multiply, check, gathered, parted};
use super::room::most;
use crate::batch::Executor;
use crate::engine::{Cuda, CudaError, DeviceLayer};

/// [`Multiply`] on a CUDA device, to which the weights are copied once.
///
/// A batch of n rows takes about `n · (cols + 4 · rows)` bytes there; it is run in parts if they do not fit.
#[derive(Debug)]
pub struct DeviceLayers {
    cuda: Cuda,
    layer: DeviceLayer,
    /// Bytes of the given weights.
    bytes: usize,
}

impl DeviceLayers {
    /// Copies a layer to an engine's device.
    ///
    /// # Errors
    /// Those of [`Cuda::layer`].
    pub fn new(mut cuda: Cuda, layer: &Layer<'_>) -> Result<Self, CudaError> {
        let bytes = layer.weights().bytes().len();
        let layer = cuda.layer(layer)?;
        Ok(Self { cuda, layer, bytes })
    }

    /// Returns rows, columns and bytes of the weights.
    pub(super) const fn shape(&self) -> (usize, usize, usize) {
        (self.layer.rows(), self.layer.cols(), self.bytes)
    }

    fn product(&mut self, requests: &[Activations]) -> Result<Vec<f32>, CudaError> {
        let (values, scales) = gathered(requests);
        let x = self.cuda.activations(&self.layer, I8Sym::new(&values)?)?;
        let scales = self.cuda.upload(&scales)?;
        let mut out = vec![0.0; self.layer.rows() * requests.len()];
        let mut there = self.cuda.zeros(out.len())?;
        self.cuda.multiply(&self.layer, &x, &scales, &mut there)?;
        self.cuda.read(&there, &mut out)?;
        Ok(out)
    }
}

impl Executor<Multiply> for DeviceLayers {
    /// Checks their number, and that none is −128.
    fn check(&self, request: &Activations) -> Result<(), EngineError> {
        Ok(check(request, self.layer.cols())?)
    }

    fn most(&self, (): &(), wanted: usize) -> usize {
        // Rows of activations are padded to match 16 bytes of weights, at most 64 activations.
        let stride = self.layer.cols().next_multiple_of(64);
        most(&self.cuda, wanted, |count| {
            [count * stride, 4 * count, 4 * count * self.layer.rows()]
        })
    }

    fn run(&mut self, (): &(), requests: &[Activations]) -> Result<Vec<Vec<f32>>, EngineError> {
        let out = self.product(requests)?;
        Ok(parted(&out, self.layer.rows(), requests.len()))
    }

    fn splits(&self, error: &EngineError) -> bool {
        matches!(error, EngineError::NoRoom(_))
    }
}
