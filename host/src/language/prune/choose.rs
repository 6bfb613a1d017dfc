//! Chooses the heads and channels that stay.

use tercet_core::model::Config;

use super::{PruneOptions, PrunedLayer};
use crate::convert::importance::{best, of_inputs, scores};
use crate::source::Source;
use crate::{Result, TensorFile};

/// What stays of a layer.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// Indices of key and value heads, ascending.
    pub(super) heads: Vec<usize>,
    heads_importance: f64,
    /// Indices of feed-forward channels, ascending.
    pub(super) channels: Vec<usize>,
    channels_importance: f64,
    /// Factor of the gains of the norm over the heads.
    pub(super) heads_gain: f64,
    /// Factor of the gains of the norm over the channels.
    pub(super) channels_gain: f64,
}

impl Kept {
    /// Chooses for one layer.
    pub(super) fn choose(
        model: &TensorFile,
        importance: Option<&TensorFile>,
        options: &PruneOptions,
        config: &Config,
        layer: usize,
    ) -> Result<Self> {
        let mut kept = Self {
            heads: (0..config.kv_heads).collect(),
            heads_importance: 1.0,
            channels: (0..config.hidden).collect(),
            channels_importance: 1.0,
            heads_gain: 1.0,
            channels_gain: 1.0,
        };
        let Some(importance) = importance else {
            return Ok(kept);
        };
        if let Some(count) = options.heads {
            let name = format!("blk.{layer}.attn_output.weight");
            // The queries of a key head are neighbours.
            let group = config.query_width() / config.kv_heads;
            let heads: Vec<f64> = scores(model, importance, (&name, config.query_width()))?
                .chunks_exact(group)
                .map(|values| values.iter().sum())
                .collect();
            kept.heads = best(&heads, count);
            kept.heads_importance = share(&heads, &kept.heads);
            let norm = (&*format!("blk.{layer}.attn_sub_norm.weight"), &*name);
            let values = spread(&kept.heads, group);
            // The removed values are zeros that are still counted.
            let counted = values.len() as f64 / config.query_width() as f64;
            let gain = gain(model, importance, norm, &values)?;
            kept.heads_gain = gain.map_or(1.0, |gain| gain * counted.sqrt());
        }
        if let Some(count) = options.feed_forward {
            let name = format!("blk.{layer}.ffn_down.weight");
            let channels = scores(model, importance, (&name, config.hidden))?;
            kept.channels = best(&channels, count);
            kept.channels_importance = share(&channels, &kept.channels);
            let norm = (&*format!("blk.{layer}.ffn_sub_norm.weight"), &*name);
            kept.channels_gain = gain(model, importance, norm, &kept.channels)?.unwrap_or(1.0);
        }
        Ok(kept)
    }

    /// Returns the layer's report, without weights.
    pub(super) fn report(self) -> PrunedLayer {
        PrunedLayer {
            heads: self.heads,
            heads_importance: self.heads_importance,
            channels: self.channels,
            channels_importance: self.channels_importance,
            weights: 0,
            zeroed: 0,
        }
    }
}

/// Returns the share of some values of the sum of all; 1 if that is 0.
fn share(all: &[f64], kept: &[usize]) -> f64 {
    let sum: f64 = all.iter().sum();
    let own: f64 = kept.iter().map(|&index| all[index]).sum();
    if sum > 0.0 { (own / sum).min(1.0) } else { 1.0 }
}

/// Returns the values of heads, each of so many neighbours.
pub(super) fn spread(heads: &[usize], each: usize) -> Vec<usize> {
    let values = |&head: &usize| head * each..(head + 1) * each;
    heads.iter().flat_map(values).collect()
}

/// Returns the factor of a norm's gains after which its outputs for the kept values are what they were on average: the
/// root of their mean square before the gains, relative to that of all values. A value whose gain is 0 shows nothing and
/// is left out. `None` if there is no such norm, or nothing but zeros was recorded in `matrix` after it.
fn gain(
    model: &TensorFile,
    importance: &TensorFile,
    (norm, matrix): (&str, &str),
    kept: &[usize],
) -> Result<Option<f64>> {
    let (Some(norm), Some(matrix)) = (model.get(norm), model.get(matrix)) else {
        return Ok(None);
    };
    let means = of_inputs(importance, &Source::new(model, matrix)?)?;
    let norm = Source::new(model, norm)?;
    let mut gains = vec![0.0; norm.values()];
    norm.read(0, &mut gains)?;
    let before = |index: usize| {
        let gain = f64::from(gains[index]);
        (gain != 0.0).then(|| means[index] / (gain * gain))
    };
    let mean = |found: &mut dyn Iterator<Item = f64>| {
        let (sum, count) = found.fold((0.0, 0u32), |(sum, count), x| (sum + x, count + 1));
        sum / f64::from(count.max(1))
    };
    let all = mean(&mut (0..gains.len()).filter_map(before));
    let kept = mean(&mut kept.iter().filter_map(|&index| before(index)));
    Ok((all > 0.0 && kept > 0.0).then(|| (kept / all).sqrt()))
}
