//! Runs a network over a batch of points.

use super::{Buffers, Network, apart};
use crate::engine::LinearEngine;
use crate::linear::many::check_scratch;
use crate::linear::{I8Sym, LinearError, expect};

impl<const LAYERS: usize> Network<'_, LAYERS> {
    /// Runs a batch of inputs, consecutive in `x`, layer by layer. `sums` gets one row of logits per input,
    /// bit-identical to those of [`Network::run`], on any engine.
    ///
    /// Each layer processes all points before the next one begins, so an engine reads its weights once per batch
    /// ([`LinearEngine::dense_many`], [`LinearEngine::sums_many`]). O(points · weights). The buffers hold
    /// [`Network::activations_len_many`] activations and [`Network::scratch_len_on`] words; `sums` has
    /// [`Network::outputs`] elements per point. A batch may be empty.
    ///
    /// ```
    /// use tercet_core::linear::I8Sym;
    /// use tercet_core::linear::network::{Buffers, Network};
    /// use tercet_core::scalar::Scalar;
    ///
    /// # use tercet_core::gguf::{SliceSink, TensorSpec, TensorType, Writer};
    /// # let spec = |name, dims| TensorSpec::new(name, dims, TensorType::I8);
    /// # let scale = TensorSpec::new("network.0.scale", &[1], TensorType::F32)?;
    /// # let specs = [spec("network.0.weight", &[2, 3])?, scale];
    /// # let mut file = [0; 1024];
    /// # let mut writer = Writer::new(SliceSink::new(&mut file), 6, &specs)?;
    /// # writer.entry("tercet.network.version", 1u32)?;
    /// # writer.entry("tercet.network.layers", 1u32)?;
    /// # writer.entry("tercet.network.input_scale", 1f32)?;
    /// # writer.entry("tercet.network.0.layout", "int8")?;
    /// # writer.entry("tercet.network.0.rows", 3u32)?;
    /// # writer.entry("tercet.network.0.cols", 2u32)?;
    /// # let mut data = writer.into_data()?;
    /// # data.begin("network.0.weight")?;
    /// # data.write(&[1, 0, 0, 1, 1, 1])?;
    /// # data.begin("network.0.scale")?;
    /// # data.write(&1f32.to_le_bytes())?;
    /// # let len = data.finish()?.len();
    /// # let file = &file[..len];
    /// // One layer of 3 × 2: [[1, 0], [0, 1], [1, 1]].
    /// let network = Network::<1>::new(file)?;
    /// let points = I8Sym::new(&[10, 20, -1, 5])?;
    /// let mut buffers = Buffers {
    ///     activations: &mut vec![0; network.activations_len_many(2)],
    ///     scratch: &mut vec![0; network.scratch_len()],
    /// };
    /// let mut sums = [0; 6];
    /// network.run_many(&mut Scalar, points, &mut buffers, &mut sums)?;
    /// assert_eq!(sums, [10, 20, 30, -1, 5, 4]);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`LinearError::Length`] if `x` is not a whole number of inputs, for `sums`, and if there are too few
    /// activations; [`LinearError::TooLarge`] if the number of logits does not fit `usize`; [`LinearError::Scratch`];
    /// otherwise those of the engine. All lengths are checked before the first layer.
    pub fn run_many<E: LinearEngine>(
        &self,
        engine: &mut E,
        x: I8Sym<'_>,
        buffers: &mut Buffers<'_>,
        sums: &mut [i64],
    ) -> Result<(), E::Error> {
        let points = self.check_many(x, buffers.activations.len(), sums.len())?;
        check_scratch(self.scratch_len_on(engine), buffers.scratch.len())?;
        let scratch = &mut *buffers.scratch;
        let Some((last, hidden)) = self.stages.split_last() else {
            return Ok(());
        };
        // These fit, because the buffer of activations has this length.
        let all = |values: usize| values.saturating_mul(points);
        for (number, stage) in hidden.iter().enumerate() {
            let Some((rescale, _)) = &stage.rescale else {
                continue;
            };
            let weights = stage.layer.weights();
            let sizes = (all(weights.cols()), all(weights.rows()));
            let (own, out) = apart(buffers.activations, number, sizes);
            let x = if number == 0 { x } else { I8Sym::new(own)? };
            engine.dense_many(&stage.layer, rescale, x, out, scratch)?;
        }
        let sizes = (all(last.layer.weights().cols()), 0);
        let (own, _) = apart(buffers.activations, hidden.len(), sizes);
        let x = if hidden.is_empty() {
            x
        } else {
            I8Sym::new(own)?
        };
        engine.sums_many(&last.layer, x, sums, scratch)
    }

    /// Checks all lengths except scratch. Returns the number of points.
    fn check_many(&self, x: I8Sym<'_>, found: usize, sums: usize) -> Result<usize, LinearError> {
        // A matrix has at least one column.
        let points = x.len().div_ceil(self.inputs().max(1));
        let (Some(inputs), Some(outputs)) = (
            points.checked_mul(self.inputs()),
            points.checked_mul(self.outputs()),
        ) else {
            return Err(LinearError::TooLarge);
        };
        expect(inputs, x.len())?;
        expect(outputs, sums)?;
        let expected = self.activations_len_many(points);
        if found < expected {
            return Err(LinearError::Length { expected, found });
        }
        Ok(points)
    }
}
