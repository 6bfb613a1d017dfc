//! Measured importance, and the removal of channels of the feed-forward network by it, before a run goes on with a model.

use serde::Serialize;

use crate::convert::importance::{best, scores};
use crate::language::{Parameters, Slot};
use crate::{Error, TensorFile};

/// Which channels of the feed-forward network a run kept of the model that it began with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pruned {
    /// Channels per layer before.
    pub channels: usize,
    /// Channels per layer that were kept.
    pub kept: usize,
    /// The kept channels' share of the importance of all, over all layers.
    pub importance: f64,
}

/// The kept channels of each layer, in order.
#[derive(Debug)]
pub(super) struct Channels {
    layers: Vec<Vec<usize>>,
    pub(super) pruned: Pruned,
}

impl Channels {
    /// Chooses in each layer the `kept` channels with the largest importance: the mean square of the channel as an input
    /// of the matrix down, times the sum of squares of the weights that it is multiplied with. Of equal ones the first.
    ///
    /// # Errors
    /// [`Error::Options`] if there are not more channels than are kept; those of [`scores`].
    pub(super) fn of(
        model: &TensorFile,
        importance: &TensorFile,
        (full, kept): (&Parameters, usize),
    ) -> Result<Self, Error> {
        let channels = full.feed_forward_length as usize;
        if channels <= kept {
            return Err(Error::options(format!(
                "the model has {channels} channels in a layer, so {kept} cannot be kept by their importance; keep fewer"
            )));
        }
        let (mut layers, mut own, mut all) = (Vec::new(), 0.0, 0.0);
        for layer in 0..full.block_count {
            let name = format!("blk.{layer}.ffn_down.weight");
            let scores = scores(model, importance, (&name, channels))?;
            let order = best(&scores, kept);
            own += order.iter().map(|&channel| scores[channel]).sum::<f64>();
            all += scores.iter().sum::<f64>();
            layers.push(order);
        }
        let pruned = Pruned {
            channels,
            kept,
            importance: if all > 0.0 { own / all } else { 1.0 },
        };
        Ok(Self { layers, pruned })
    }

    /// Returns the values of a tensor of the whole model without those of the removed channels.
    pub(super) fn of_tensor(&self, slot: &Slot, values: Vec<f32>) -> Vec<f32> {
        let Some((layer, part)) = slot.of_layer() else {
            return values;
        };
        let Some(kept) = self.layers.get(layer) else {
            return values;
        };
        match part {
            "ffn_gate" | "ffn_up" | "ffn_sub_norm" => {
                let width = values.len() / self.pruned.channels;
                let rows = kept.iter();
                rows.flat_map(|&row| &values[row * width..][..width])
                    .copied()
                    .collect()
            }
            "ffn_down" => {
                let rows = values.chunks_exact(self.pruned.channels);
                rows.flat_map(|row| kept.iter().map(|&col| row[col]))
                    .collect()
            }
            _ => values,
        }
    }
}
