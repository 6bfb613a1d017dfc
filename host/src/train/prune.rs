//! Measured importance, and the removal of channels of the feed-forward network by it, before a run goes on with a model.

use serde::Serialize;

use crate::convert::importance::of_inputs;
use crate::language::{Parameters, Slot};
use crate::source::Source;
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

/// Returns the importance of each of the `cols` inputs of a matrix: its mean square as recorded, times the sum of
/// squares of the weights that it is multiplied with.
///
/// # Errors
/// [`Error::Tensor`] for a matrix that is missing or has another number of inputs; those of [`of_inputs`], and of
/// reading a tensor.
pub(super) fn scores(
    model: &TensorFile,
    importance: &TensorFile,
    (name, cols): (&str, usize),
) -> Result<Vec<f64>, Error> {
    let refuse = |reason: String| Error::tensor(model.path(), name, reason);
    let tensor = model
        .get(name)
        .ok_or_else(|| refuse("it is missing".into()))?;
    let source = Source::new(model, tensor)?;
    let means = of_inputs(importance, &source)?;
    if means.len() != cols {
        return Err(refuse(format!("it has {} inputs, not {cols}", means.len())));
    }
    let mut weights = vec![0.0; source.values()];
    source.read(0, &mut weights)?;
    let mut scores = vec![0.0; cols];
    for row in weights.chunks_exact(cols) {
        for (score, &weight) in scores.iter_mut().zip(row) {
            *score += f64::from(weight) * f64::from(weight);
        }
    }
    for (score, mean) in scores.iter_mut().zip(means) {
        *score *= mean;
    }
    Ok(scores)
}

/// Returns the places of the largest scores, in order. Of equal ones the first.
pub(super) fn best(scores: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    order.truncate(count);
    order.sort_unstable();
    order
}
