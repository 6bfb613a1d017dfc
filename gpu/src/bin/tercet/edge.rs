//! Memory that flows need on a microcontroller; `--profile edge` refuses flows that need more than allowed.
//!
//! The numbers count the working memory of core's code on a 32-bit machine, with inputs in flash and results sent away
//! as they are produced. The stack is not included. Files, reports and pictures exist only on the desktop.

use tercet_core::engine::{BufferLengths, MagnitudeBin};
use tercet_core::linear::Layout;
use tercet_core::linear::network::LayerSize;
use tercet_core::palette;
use tercet_core::quant::calibrate::RangeRule;
use tercet_core::quant::{Comparison, HOST_BITS, Histogram, ternary};
use tercet_host::cluster::KmeansOptions;
use tercet_host::convert::{Target, auto_bytes};
use tercet_host::network::BuildOptions;
use tercet_host::search::{Find, SearchOptions, Storage};
use tercet_host::{Amounts, BARS, QuantizeOptions, TensorFile};

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
    total(&[dims, BufferLengths::of_labels(1, dims, clusters).bytes()])
}

/// Counts one query of the base's kind and its hits. If candidates are scored again, or recall is measured, the query
/// as floats and the hits of floats are counted too.
pub(crate) fn search(rows: usize, dims: usize, options: &SearchOptions) -> usize {
    let metric = options.metric;
    let integers = matches!(options.storage, Storage::Int8 | Storage::Ternary);
    let (k, candidates) = match options.find {
        Find::Nearest(k) => (k, options.rerank),
        Find::Within(_) => (RANGE, None),
    };
    let truth = options.recall && options.storage != Storage::F32;
    let first = candidates.map_or(k, |candidates| candidates.min(rows));
    let again = usize::from(candidates.is_some()) + usize::from(truth);
    let (codes, hits) = if integers {
        (dims, metric.integer_hit_bytes(first))
    } else {
        (0, metric.float_hit_bytes(first))
    };
    let floats = if integers && again == 0 { 0 } else { dims };
    total(&[
        codes,
        floats.saturating_mul(size_of::<f32>()),
        hits,
        metric.float_hit_bytes(k.saturating_mul(again)),
    ])
}

/// Counts the bins of the optimal rule, the table of a palette's search, or that of the choice among formats. Otherwise
/// nothing, because values are quantized as they come.
pub(crate) fn quantize(model: &TensorFile, options: &QuantizeOptions) -> usize {
    /// The longest possible group: any limit is below it.
    const ANY: usize = usize::MAX;
    match options.target {
        Target::Ternary | Target::BitnetHf => {
            let rule = options.rule.unwrap_or_default();
            ternary::scratch_len(rule, ANY).saturating_mul(size_of::<MagnitudeBin>())
        }
        Target::Palette(width) => {
            palette::scratch_len(255, width.entries()).saturating_mul(size_of::<u64>())
        }
        // The flow itself refuses a conversion that cannot be planned.
        Target::Auto => auto_bytes(model, options).unwrap_or(0),
        _ => 0,
    }
}

/// Counts the memory of a run ([`LayerSize::bytes`]), processing one recorded point at a time, the memory of [`calibrate`] for its
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
        LayerSize::bytes(layers),
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
    amounts.longest.saturating_mul(size_of::<f32>())
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
    total(&[dequantize(amounts), size_of::<[u64; BARS]>()])
}

fn total(parts: &[usize]) -> usize {
    parts.iter().fold(0, |sum, &part| sum.saturating_add(part))
}
