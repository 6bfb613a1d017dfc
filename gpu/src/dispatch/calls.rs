//! The dispatcher's methods for each operation.

use std::ops::RangeInclusive;

use tercet_core::block::{Encoded, Format};
use tercet_core::cluster::Points;
use tercet_core::engine::{
    BlockEngine, ClusterEngine, LinearEngine, MagnitudeBin, Output, QuantizeEngine,
    QuantizeProblem, SearchBase, SearchEngine,
};
use tercet_core::linear::{I8Sym, Layer};
use tercet_core::number::Element;
use tercet_core::quant::{Codes, Groups, Histogram, Method, Report, Rule, ScaleRule, quantize};
use tercet_core::search::{Hit, Metric, Rows};
use tercet_host::cluster::{self, Clustering, KmeansOptions};

use super::dispatcher::Dispatcher;
use super::engine::Device;
use super::notice::DispatchError;
use super::{Engine, Job, Profile};

/// Extra bins for the optimal rule, beyond the required ones: they save passes over the values, for 64 KiB.
const BINS: usize = 4096;

impl<D: Device> Dispatcher<D> {
    /// Quantizes a tensor in groups, as [`tercet_core::quant::quantize`] does: writes codes, scales and zero points to
    /// `out`.
    ///
    /// # Errors
    /// [`DispatchError::Refused`], and the errors of [`Dispatcher::run`].
    pub fn quantize<T: Element>(
        &self,
        values: &[T],
        groups: Groups,
        method: Method,
        out: Output<'_>,
    ) -> Result<Report, DispatchError> {
        // With fixed memory, use the smallest scratch that is enough.
        let edge = self.settings().profile == Profile::Edge;
        let bins = match method.scratch_len(groups.len) {
            0 => 0,
            least if edge => least,
            least => least.max(BINS),
        };
        self.run(Job::quantize(&method, groups, size_of::<T>()), |engine| {
            let out = Output {
                codes: &mut *out.codes,
                scales: &mut *out.scales,
                zero_points: &mut *out.zero_points,
            };
            let mut tensor = engine.tensor(values, groups, out)?;
            let mut bins = vec![MagnitudeBin::EMPTY; bins];
            let report = quantize(&mut tensor, method, &mut bins)?;
            tensor.finish()?;
            Ok(report)
        })
    }

    /// Counts the next values of a stream: [`Histogram::push`].
    ///
    /// # Errors
    /// [`DispatchError::Refused`] at the first value that is not finite: the values before it are counted. Also the
    /// errors of [`Dispatcher::run`]: then none of these values is counted.
    pub fn histogram<T: Element, const B: u32>(
        &self,
        values: &[T],
        histogram: &mut Histogram<'_, B>,
    ) -> Result<(), DispatchError> {
        // An engine that fails by itself has counted nothing, so the next engine starts from the same state.
        self.run(Job::histogram(values.len(), size_of::<T>()), |engine| {
            engine.histogram(values, histogram)
        })
    }

    /// Writes `fl((code − zero_point) · scale)` for codes of one range: [`tercet_core::quant::ternary::RANGE`],
    /// `int8`'s or `int4`'s.
    ///
    /// # Errors
    /// [`DispatchError::Refused`], and the errors of [`Dispatcher::run`].
    pub fn dequantize(
        &self,
        codes: Codes<'_>,
        range: RangeInclusive<i8>,
        out: &mut [f32],
    ) -> Result<(), DispatchError> {
        self.run(
            Job::dequantize(codes.codes.len(), codes.groups.count),
            |engine| engine.dequantize(codes, range.clone(), out),
        )
    }

    /// Encodes values into GGUF blocks: [`tercet_core::block::encode`].
    ///
    /// # Errors
    /// [`DispatchError::Refused`], and the errors of [`Dispatcher::run`].
    pub fn encode<T: Element>(
        &self,
        format: Format,
        rule: Rule,
        scale: ScaleRule,
        values: &[T],
        out: &mut [u8],
    ) -> Result<Encoded, DispatchError> {
        self.run(
            Job::encode(values.len(), size_of::<T>(), out.len()),
            |engine| engine.encode_blocks(format, rule, scale, values, out),
        )
    }

    /// Decodes GGUF blocks: [`tercet_core::block::decode`].
    ///
    /// # Errors
    /// [`DispatchError::Refused`], and the errors of [`Dispatcher::run`].
    pub fn decode(
        &self,
        format: Format,
        bytes: &[u8],
        out: &mut [f32],
    ) -> Result<(), DispatchError> {
        self.run(Job::decode(out.len(), bytes.len()), |engine| {
            engine.decode_blocks(format, bytes, out)
        })
    }

    /// Clusters int8 points, row-major with `dims` coordinates each, with their weights:
    /// [`tercet_host::cluster::kmeans`].
    ///
    /// # Errors
    /// [`DispatchError::Refused`], and the errors of [`Dispatcher::run`].
    pub fn kmeans(
        &self,
        codes: &[i8],
        dims: usize,
        weights: Option<&[u32]>,
        options: &KmeansOptions,
    ) -> Result<Clustering, DispatchError> {
        self.run(kmeans_job(codes.len(), dims, options), |engine| {
            cluster::kmeans(engine, codes, dims, weights, options, &mut |_| ())
        })
    }

    /// Assigns every point to the nearest of `centroids` (k · d codes) and writes its squared distance to it. Ties go
    /// to the lowest index. Both output slices have one element per point.
    ///
    /// # Errors
    /// [`DispatchError::Refused`], and the errors of [`Dispatcher::run`].
    pub fn assign(
        &self,
        points: Points<'_>,
        centroids: &[i8],
        labels: &mut [u32],
        distances: &mut [u32],
    ) -> Result<(), DispatchError> {
        self.run(
            Job::assign(&points, centroids.len() / points.dims()),
            |engine| engine.nearest(points, centroids, labels, distances),
        )
    }

    /// Writes the `k` best rows for each query, and returns the number of hits of each; the queries are stored one
    /// after another. See [`tercet_core::engine::SearchBase::top_k_all`].
    ///
    /// # Errors
    /// [`DispatchError::Refused`], and the errors of [`Dispatcher::run`].
    pub fn search<M: Metric, R: Rows>(
        &self,
        rows: R,
        queries: &[R::Query],
        k: usize,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, DispatchError> {
        let many = queries.len() / rows.dim().max(1);
        self.run(Job::search(&rows, many, k), |engine| {
            engine.base(rows)?.top_k_all::<M>(queries, k, hits)
        })
    }

    /// Multiplies a layer with one row of activations and scales the result: [`tercet_core::linear::matvec`].
    ///
    /// # Errors
    /// [`DispatchError::Refused`], and the errors of [`Dispatcher::run`].
    pub fn matvec(
        &self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scale: f32,
        out: &mut [f32],
    ) -> Result<(), DispatchError> {
        self.run(Job::product(layer, 1), |engine| {
            let mut scratch = vec![0; engine.product_scratch_len(layer.weights())];
            engine.matvec(layer, x, x_scale, out, &mut scratch)
        })
    }

    /// Multiplies a layer with many rows of activations, stored one after another in `x`, each with its own scale:
    /// [`tercet_core::engine::LinearEngine::matmat`].
    ///
    /// # Errors
    /// [`DispatchError::Refused`], and the errors of [`Dispatcher::run`].
    pub fn matmul(
        &self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scales: &[f32],
        out: &mut [f32],
    ) -> Result<(), DispatchError> {
        self.run(Job::product(layer, x_scales.len()), |engine| {
            let mut scratch = vec![0; engine.product_scratch_len(layer.weights())];
            engine.matmat(layer, x, x_scales, out, &mut scratch)
        })
    }

    /// Returns the engine that would do an operation of this job, without running it. A call with the same job runs on
    /// the same engine.
    pub fn choice(&self, job: &Job) -> Option<Engine> {
        self.explain(job).chosen
    }
}

/// Returns the job of clustering so many coordinates. Its scratch comes beside the returned labels, distances and
/// centroids: it holds the best centroids so far, lengths, sums and counts.
pub(super) fn kmeans_job(coordinates: usize, dims: usize, options: &KmeansOptions) -> Job {
    let KmeansOptions {
        clusters,
        run,
        batch,
        ..
    } = *options;
    let table = clusters.saturating_mul(dims);
    let scratch = table
        .saturating_mul(1 + 8)
        .saturating_add(clusters.saturating_mul(4 + 8))
        .saturating_add(batch.unwrap_or(0).saturating_mul(4));
    Job::kmeans(
        coordinates / dims.max(1),
        dims,
        clusters,
        run.lloyd.max_iter,
        run.restarts,
    )
    .with_scratch(scratch)
}
