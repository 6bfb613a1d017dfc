//! What flows hold in memory on a microcontroller, by which `--profile edge` refuses them.
//!
//! Counted is what core's code is given to work in on a 32-bit machine, where the input lies in flash and results are sent away as they
//! come; the stack is not. Files, reports and pictures are the desk's own.

use tercet_core::engine::MagnitudeBin;
use tercet_core::linear::Layout;
use tercet_core::linear::network::LayerSize;
use tercet_core::palette;
use tercet_core::quant::{Comparison, HOST_BITS, Histogram, adaptive, ternary};
use tercet_host::cluster::KmeansOptions;
use tercet_host::convert::Target;
use tercet_host::network::BuildOptions;
use tercet_host::search::{Find, SearchOptions, Storage};
use tercet_host::{Amounts, BARS, Method, Model, QuantizeOptions};

/// A hit: a row and its score.
const HIT: usize = 8;
/// Room for the rows of a range: of more, the best are searched for again with more room.
const RANGE: usize = 1024;

/// The codes of the points, a label and a distance each, and the clusters: centroids, norms, sums and counts, and a second set of
/// centroids where the best are kept.
pub(crate) fn kmeans(points: usize, dims: usize, options: &KmeansOptions, sphere: bool) -> usize {
    let clusters = options.clusters;
    let table = clusters.saturating_mul(dims);
    let keeps = options.run.restarts > 1 || options.batch.is_some() || sphere;
    let parts = [
        points.saturating_mul(dims),
        points.saturating_mul(4 + 4),
        table.saturating_mul(if keeps { 1 + 1 + 8 } else { 1 + 8 }),
        clusters.saturating_mul(4 + 8),
        options.batch.unwrap_or(0).saturating_mul(4),
    ];
    total(&parts)
}

/// The codes of the centroids and of one point, its label and its distance.
pub(crate) fn assign(dims: usize, clusters: usize) -> usize {
    total(&[clusters.saturating_mul(dims), dims, 4 + 4])
}

/// One query as its storage has it, and as floats where those are asked too, and the hits of each.
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

/// The bins of the optimal rule, the table of a palette's search, or that of the choice among formats; else nothing, since values are coded
/// as they come.
pub(crate) fn quantize(model: &Model, options: &QuantizeOptions) -> usize {
    /// Formats that auto chooses from.
    const FORMATS: usize = 6;
    /// The longest group there may be: what has a limit is below it.
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

/// The codes of one point, the activations and scratch of a run, and the sums that it gives.
pub(crate) fn network(layers: &[LayerSize]) -> usize {
    total(&[
        layers.first().map_or(0, |first| first.cols),
        LayerSize::activations_len(layers),
        LayerSize::scratch_len(layers).saturating_mul(4),
        layers.last().map_or(0, |last| last.rows.saturating_mul(8)),
    ])
}

/// That, for a point at a time of those recorded, what [`calibrate`] takes for its activations, and the bins that the ternary rule
/// takes for a group of weights.
pub(crate) fn network_build(layers: &[LayerSize], options: &BuildOptions) -> usize {
    let bins = layers.iter().map(|layer| {
        let values = layer.rows.saturating_mul(layer.cols);
        let group = if options.per_tensor {
            values
        } else {
            layer.cols
        };
        match layer.layout {
            // As blocks come, in less than one of them.
            Layout::Block(_) => 0,
            layout if layout.codes().1 == 1 => ternary::scratch_len(options.rule, group),
            _ => 0,
        }
    });
    total(&[
        network(layers),
        calibrate(options.method),
        (bins.max().unwrap_or(0)).saturating_mul(size_of::<MagnitudeBin>()),
    ])
}

/// The buckets of the histogram that the range is chosen from, as wide as the desk's, so that the figures are the same; the extremes alone
/// need none.
pub(crate) const fn calibrate(method: Method) -> usize {
    match method {
        Method::AbsMax | Method::MinMax => 0,
        _ => Histogram::<HOST_BITS>::BUCKETS * size_of::<u64>(),
    }
}

/// The floats of a block, or of one value where there are no blocks.
pub(crate) fn dequantize(amounts: &Amounts) -> usize {
    amounts.longest.saturating_mul(4)
}

/// The floats of a block of each model, and the sums of a tensor and of all of them.
pub(crate) fn compare(models: &[Amounts]) -> usize {
    let sums = 2 * size_of::<Comparison>();
    models
        .iter()
        .fold(sums, |sum, model| sum.saturating_add(dequantize(model)))
}

/// The floats of a block, and the bars of a histogram.
pub(crate) fn inspect(amounts: &Amounts) -> usize {
    total(&[dequantize(amounts), BARS * 8])
}

fn total(parts: &[usize]) -> usize {
    parts.iter().fold(0, |sum, &part| sum.saturating_add(part))
}
