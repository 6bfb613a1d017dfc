//! Memory that flows need on a microcontroller; `--profile edge` refuses flows that need more than allowed.
//!
//! The numbers count the working memory of core's code on a 32-bit machine, with inputs in flash and results sent away
//! as they are produced. The stack is not included. Files, reports and pictures exist only on the desktop.

use tercet_core::engine::{BufferLengths, MagnitudeBin};
use tercet_core::linear::Layout;
use tercet_core::linear::network::LayerSize;
use tercet_core::palette;
use tercet_core::quant::calibrate::RangeRule;
use tercet_core::quant::{Comparison, HOST_BITS, Histogram, adaptive, ternary};
use tercet_host::cluster::KmeansOptions;
use tercet_host::convert::Target;
use tercet_host::network::BuildOptions;
use tercet_host::search::{Find, SearchOptions, Storage};
use tercet_host::{Amounts, BARS, QuantizeOptions, TensorFile};

/// A hit on a machine of 32 bits: a row and its score.
const HIT: usize = 8;
/// Room for the rows of a range search: if there are more, the best are searched again with more room.
const RANGE: usize = 1024;

/// Counts the codes of the points, a label and a distance for each, and the clusters: centroids, norms, sums and
/// counts, and a second set of centroids if the best are kept.
pub(crate) fn kmeans(points: usize, dims: usize, options: &KmeansOptions, sphere: bool) -> usize {
    let keeps = options.run.restarts > 1 || options.batch.is_some() || sphere;
    total(&[
        points.saturating_mul(dims),
        BufferLengths::of(points, dims, options.clusters, keeps).bytes(),
        options.batch.unwrap_or(0).saturating_mul(size_of::<u32>()),
    ])
}

/// Counts the codes of the centroids and of one point, its label and its distance.
pub(crate) fn assign(dims: usize, clusters: usize) -> usize {
    total(&[clusters.saturating_mul(dims), dims, 4 + 4])
}

/// Counts one query in its storage, and as floats if those are searched too, and the hits of each.
pub(crate) fn search(dims: usize, options: &SearchOptions) -> usize {
    let floats = matches!(options.storage, Storage::F32);
    let size = match options.storage {
        Storage::F32 => 4,
        Storage::F16 => 2,
        _ => 1,
    };
    let (k, candidates) = match options.find {
        Find::Nearest(k) => (k, options.rerank),
        Find::Within(_) => (RANGE, None),
    };
    let twice = !floats && (options.recall || candidates.is_some());
    total(&[
        dims.saturating_mul(if twice { size + 4 } else { size }),
        k.saturating_mul(if twice { 2 * HIT } else { HIT }),
        candidates.unwrap_or(0).saturating_mul(HIT),
    ])
}

/// Counts the bins of the optimal rule, the table of a palette's search, or that of the choice among formats. Otherwise
/// nothing, because values are quantized as they come.
pub(crate) fn quantize(model: &TensorFile, options: &QuantizeOptions) -> usize {
    /// Formats that auto chooses from.
    const FORMATS: usize = 6;
    /// The longest possible group: any limit is below it.
    const ANY: usize = usize::MAX;
    match options.target {
        Target::Ternary | Target::BitnetHf => {
            let rule = options.rule.unwrap_or_default();
            ternary::scratch_len(rule, ANY).saturating_mul(size_of::<MagnitudeBin>())
        }
        Target::Palette(width) => palette::scratch_len(255, width.entries()).saturating_mul(8),
        Target::Auto => {
            let costs = model.tensors().count().saturating_mul(FORMATS);
            costs.saturating_mul(size_of::<Option<adaptive::Cost>>())
        }
        _ => 0,
    }
}

/// Counts the codes of one point, the activations and scratch of a run, and the resulting sums.
pub(crate) fn network(layers: &[LayerSize]) -> usize {
    total(&[
        layers.first().map_or(0, |first| first.cols),
        LayerSize::activations_len(layers),
        LayerSize::scratch_len(layers).saturating_mul(4),
        layers.last().map_or(0, |last| last.rows.saturating_mul(8)),
    ])
}

/// Counts the memory of [`network`], processing one recorded point at a time, the memory of [`calibrate`] for its
/// activations, and the bins that the ternary rule needs for a group of weights.
pub(crate) fn network_build(layers: &[LayerSize], options: &BuildOptions) -> usize {
    let bins = layers.iter().map(|layer| {
        let values = layer.rows.saturating_mul(layer.cols);
        let group = if options.per_tensor {
            values
        } else {
            layer.cols
        };
        match layer.layout {
            // Written block by block, in less than the memory of one.
            Layout::Block(_) => 0,
            layout if layout.codes().1 == 1 => ternary::scratch_len(options.rule, group),
            _ => 0,
        }
    });
    total(&[
        network(layers),
        calibrate(options.range),
        (bins.max().unwrap_or(0)).saturating_mul(size_of::<MagnitudeBin>()),
    ])
}

/// Counts the buckets of the histogram for choosing the range. They are as wide as on the desktop, so the figures are
/// the same; the extremes alone need none.
pub(crate) const fn calibrate(rule: RangeRule) -> usize {
    match rule {
        RangeRule::AbsMax | RangeRule::MinMax => 0,
        _ => Histogram::<HOST_BITS>::BUCKETS * size_of::<u64>(),
    }
}

/// Counts the floats of a block, or of one value if there are no blocks.
pub(crate) fn dequantize(amounts: &Amounts) -> usize {
    amounts.longest.saturating_mul(4)
}

/// Counts the floats of a block of each model, and the sums of a tensor and of all tensors.
pub(crate) fn compare(models: &[Amounts]) -> usize {
    let sums = 2 * size_of::<Comparison>();
    models
        .iter()
        .fold(sums, |sum, model| sum.saturating_add(dequantize(model)))
}

/// Counts the floats of a block, and the bars of a histogram.
pub(crate) fn inspect(amounts: &Amounts) -> usize {
    total(&[dequantize(amounts), BARS * 8])
}

fn total(parts: &[usize]) -> usize {
    parts.iter().fold(0, |sum, &part| sum.saturating_add(part))
}
