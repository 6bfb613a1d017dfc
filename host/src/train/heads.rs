//! Removal of attention heads, by measured importance, before a run goes on with a model.

use serde::Serialize;

use crate::convert::importance::{best, scores};
use crate::language::{Parameters, Slot};
use crate::{Error, TensorFile};

/// Which key heads, with the query heads that they serve, a run kept of the model that it began with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KeptHeads {
    /// Key heads per layer.
    pub heads: usize,
    /// Key heads per layer that were kept.
    pub kept: usize,
    /// The kept heads' share of the importance of all, over all layers.
    pub importance: f64,
}

/// The kept key heads of each layer.
///
/// The files of a `bitnet` have as many values in heads as the width, so a removed head remains in the shapes. But its
/// weights are 0: those that make its queries, keys and values, those that take its output, and its gains. With them the
/// output is 0, so all their gradients are, and they stay 0 however long a run trains them.
#[derive(Debug)]
pub(super) struct Heads {
    layers: Vec<Vec<usize>>,
    /// Values of a key head, and of the query heads that it serves.
    values: (usize, usize),
    pub(super) kept: KeptHeads,
}

impl Heads {
    /// Chooses in each layer the `kept` key heads with the largest importance: the sum over its query heads' values of
    /// the mean square as an input of the output matrix, times the squares of the weights that it is multiplied with.
    /// Of equal ones the first.
    ///
    /// # Errors
    /// [`Error::Options`] if there are not more heads than are kept, or none is kept; those of [`scores`].
    pub(super) fn of(
        model: &TensorFile,
        importance: &TensorFile,
        (parameters, kept): (&Parameters, usize),
    ) -> Result<Self, Error> {
        let heads = parameters.head_count_kv as usize;
        if kept == 0 || heads <= kept {
            return Err(Error::options(format!(
                "the model has {heads} key heads in a layer, so {kept} cannot be kept by their importance; keep from 1 \
                 to {}",
                heads.saturating_sub(1)
            )));
        }
        let values = parameters.query_length() as usize / heads;
        let (mut layers, mut own, mut all) = (Vec::new(), 0.0, 0.0);
        for layer in 0..parameters.block_count {
            let name = format!("blk.{layer}.attn_output.weight");
            let scores = scores(model, importance, (&name, heads * values))?;
            let sums = scores.chunks_exact(values).map(|of| of.iter().sum());
            let sums: Vec<f64> = sums.collect();
            let order = best(&sums, kept);
            own += order.iter().map(|&head| sums[head]).sum::<f64>();
            all += sums.iter().sum::<f64>();
            layers.push(order);
        }
        Ok(Self {
            layers,
            values: (parameters.key_length() as usize / heads, values),
            kept: KeptHeads {
                heads,
                kept,
                importance: if all > 0.0 { own / all } else { 1.0 },
            },
        })
    }

    /// Sets the weights of the removed heads in a tensor to 0.
    pub(super) fn clear(&self, slot: &Slot, values: &mut [f32]) {
        let Some((layer, part)) = slot.of_layer() else {
            return;
        };
        let Some(kept) = self.layers.get(layer) else {
            return;
        };
        let (own, served) = self.values;
        let (heads, cols) = (self.kept.heads, slot.shape.last().copied().unwrap_or(1));
        let removed = (0..heads).filter(|head| !kept.contains(head));
        match part {
            "attn_q" | "attn_k" | "attn_v" => {
                let rows = if part == "attn_q" { served } else { own };
                let heads = removed.map(|head| head * rows * cols);
                heads.for_each(|first| values[first..][..rows * cols].fill(0.0));
            }
            // Before the norm's gains are made for a `llama`, they are the squares of its inputs.
            "attn_output" | "attn_sub_norm" => {
                for row in values.chunks_exact_mut(cols) {
                    let heads = removed.clone().map(|head| head * served);
                    heads.for_each(|first| row[first..][..served].fill(0.0));
                }
            }
            _ => {}
        }
    }
}
