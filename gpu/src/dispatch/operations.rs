//! The operations as pieces of work, each written once for every engine.

use std::ops::RangeInclusive;

use tercet_core::block::{Encoded, Format};
use tercet_core::cluster::{ClusterError, Points};
use tercet_core::engine::{
    BlockEngine, LinearEngine, MagnitudeBin, Output, QuantizeEngine, QuantizeProblem, SearchBase,
    SearchEngine,
};
use tercet_core::linear::{I8Sym, Layer, LinearError};
use tercet_core::number::Element;
use tercet_core::quant::{Codes, Groups, Histogram, Method, Report, Rule, ScaleRule, quantize};
use tercet_core::search::{Hit, Metric, Rows};
use tercet_host::cluster::{Clustering, KmeansOptions, kmeans_with};
use tercet_host::engine::Fault;

use super::Job;
use super::engine::Able;
use super::work::Work;

pub(super) struct Quantize<'a, T> {
    pub(super) values: &'a [T],
    pub(super) groups: Groups,
    pub(super) method: Method,
    pub(super) out: Output<'a>,
    pub(super) bins: usize,
}

impl<T: Element> Work for Quantize<'_, T> {
    type Done = Report;

    fn job(&self) -> Job {
        Job::quantize(&self.method, self.groups, size_of::<T>())
    }

    fn scratch(&self) -> usize {
        self.method.scratch_len(self.groups.len) * size_of::<MagnitudeBin>()
    }

    fn run<E: Able>(&mut self, engine: &mut E) -> Result<Report, Fault> {
        let out = Output {
            codes: &mut *self.out.codes,
            scales: &mut *self.out.scales,
            zero_points: &mut *self.out.zero_points,
        };
        let run = || {
            let mut tensor = engine.tensor(self.values, self.groups, out)?;
            let bins = match self.method.scratch_len(self.groups.len) {
                0 => 0,
                least => least.max(self.bins),
            };
            let mut bins = vec![MagnitudeBin::EMPTY; bins];
            let report = quantize(&mut tensor, self.method, &mut bins)?;
            tensor.finish()?;
            Ok::<_, <E as QuantizeEngine>::Error>(report)
        };
        run().map_err(Into::into)
    }
}

pub(super) struct Counts<'a, 'b, T, const B: u32> {
    pub(super) values: &'a [T],
    pub(super) histogram: &'a mut Histogram<'b, B>,
}

impl<T: Element, const B: u32> Work for Counts<'_, '_, T, B> {
    type Done = ();

    fn job(&self) -> Job {
        Job::histogram(self.values.len(), size_of::<T>())
    }

    /// An engine that fails by itself has counted nothing, so that the next begins where it began.
    fn run<E: Able>(&mut self, engine: &mut E) -> Result<(), Fault> {
        let done = QuantizeEngine::histogram(engine, self.values, self.histogram);
        done.map_err(Into::into)
    }
}

pub(super) struct Dequantize<'a> {
    pub(super) codes: Codes<'a>,
    pub(super) range: RangeInclusive<i8>,
    pub(super) out: &'a mut [f32],
}

impl Work for Dequantize<'_> {
    type Done = ();

    fn job(&self) -> Job {
        Job::dequantize(self.codes.codes.len(), self.codes.groups.count)
    }

    fn run<E: Able>(&mut self, engine: &mut E) -> Result<(), Fault> {
        engine.dequantize(self.codes, self.range.clone(), self.out)
    }
}

pub(super) struct Encode<'a, T> {
    pub(super) format: Format,
    pub(super) rule: Rule,
    pub(super) scale: ScaleRule,
    pub(super) values: &'a [T],
    pub(super) out: &'a mut [u8],
}

impl<T: Element> Work for Encode<'_, T> {
    type Done = Encoded;

    fn job(&self) -> Job {
        Job::encode(self.values.len(), size_of::<T>(), self.out.len())
    }

    fn run<E: Able>(&mut self, engine: &mut E) -> Result<Encoded, Fault> {
        let Self {
            format,
            rule,
            scale,
            ..
        } = *self;
        BlockEngine::encode(engine, format, rule, scale, self.values, self.out).map_err(Into::into)
    }
}

pub(super) struct Decode<'a> {
    pub(super) format: Format,
    pub(super) bytes: &'a [u8],
    pub(super) out: &'a mut [f32],
}

impl Work for Decode<'_> {
    type Done = ();

    fn job(&self) -> Job {
        Job::decode(self.out.len(), self.bytes.len())
    }

    fn run<E: Able>(&mut self, engine: &mut E) -> Result<(), Fault> {
        BlockEngine::decode(engine, self.format, self.bytes, self.out).map_err(Into::into)
    }
}

pub(super) struct Kmeans<'a> {
    pub(super) codes: &'a [i8],
    pub(super) dims: usize,
    pub(super) weights: Option<&'a [u32]>,
    pub(super) options: &'a KmeansOptions,
}

impl Work for Kmeans<'_> {
    type Done = Clustering;

    fn job(&self) -> Job {
        let points = self.codes.len() / self.dims.max(1);
        let KmeansOptions {
            clusters,
            max_iter,
            restarts,
            ..
        } = *self.options;
        Job::kmeans(points, self.dims, clusters, max_iter, restarts)
    }

    fn scratch(&self) -> usize {
        // Beside labels, distances and centroids, which come back: the best centroids so far, lengths, sums and counts.
        let clusters = self.options.clusters;
        let table = clusters.saturating_mul(self.dims);
        let batch = self.options.batch.unwrap_or(0);
        table
            .saturating_mul(1 + 8)
            .saturating_add(clusters.saturating_mul(4 + 8))
            .saturating_add(batch.saturating_mul(4))
    }

    fn run<E: Able>(&mut self, engine: &mut E) -> Result<Clustering, Fault> {
        let Self {
            codes,
            dims,
            weights,
            options,
        } = *self;
        kmeans_with(engine, codes, dims, weights, options, &mut |_| ()).map_err(Into::into)
    }
}

pub(super) struct Assign<'a> {
    pub(super) points: Points<'a>,
    pub(super) centroids: &'a [i8],
    pub(super) labels: &'a mut [u32],
    pub(super) distances: &'a mut [u32],
}

impl Assign<'_> {
    /// What every engine refuses: a label and a distance for each point, whole centroids, one at least.
    pub(super) fn check(&self) -> Result<(), ClusterError> {
        let expected = self.points.len();
        for found in [self.labels.len(), self.distances.len()] {
            if found != expected {
                return Err(ClusterError::Length { expected, found });
            }
        }
        Points::new(self.centroids, self.points.dims()).map(|_| ())
    }
}

impl Work for Assign<'_> {
    type Done = ();

    fn job(&self) -> Job {
        Job::assign(&self.points, self.centroids.len() / self.points.dims())
    }

    fn run<E: Able>(&mut self, engine: &mut E) -> Result<(), Fault> {
        self.check()?;
        engine.assign(self.points, self.centroids, self.labels, self.distances)
    }
}

pub(super) struct Search<'a, M: Metric, R: Rows> {
    pub(super) rows: R,
    pub(super) queries: &'a [R::Query],
    pub(super) k: usize,
    pub(super) hits: &'a mut [Hit<R::Score<M>>],
}

impl<M: Metric, R: Rows> Work for Search<'_, M, R> {
    type Done = usize;

    fn job(&self) -> Job {
        let queries = self.queries.len() / self.rows.dim().max(1);
        Job::search(&self.rows, queries, self.k)
    }

    fn run<E: Able>(&mut self, engine: &mut E) -> Result<usize, Fault> {
        let mut run = || {
            let mut base = engine.base(self.rows)?;
            base.top_k_all::<M>(self.queries, self.k, self.hits)
        };
        run().map_err(|error: <E as SearchEngine>::Error| error.into())
    }
}

pub(super) struct Product<'a> {
    pub(super) layer: &'a Layer<'a>,
    pub(super) x: I8Sym<'a>,
    pub(super) scales: &'a [f32],
    pub(super) out: &'a mut [f32],
    /// Whether it is one row by definition.
    pub(super) one: bool,
}

impl Product<'_> {
    /// What every engine refuses: whole rows of activations, a scale for each, an output for each and each row of weights.
    pub(super) fn check(&self) -> Result<(), LinearError> {
        let (layer, outputs) = (self.layer, self.out.len());
        let scratch = layer.weights().scratch_len();
        if self.one {
            return layer.check(self.x, outputs, scratch);
        }
        let expected = layer.check_many(self.x, outputs, scratch)?;
        let found = self.scales.len();
        if expected != found {
            return Err(LinearError::Length { expected, found });
        }
        Ok(())
    }
}

impl Work for Product<'_> {
    type Done = ();

    fn job(&self) -> Job {
        let rows = if self.one { 1 } else { self.scales.len() };
        Job::product(self.layer, rows)
    }

    fn scratch(&self) -> usize {
        self.layer.weights().scratch_len() * size_of::<u32>()
    }

    fn run<E: Able>(&mut self, engine: &mut E) -> Result<(), Fault> {
        let Self {
            layer,
            x,
            scales,
            one,
            ..
        } = *self;
        let scratch = &mut vec![0; layer.weights().scratch_len()];
        let done = match scales {
            &[scale] if one => LinearEngine::matvec(engine, layer, x, scale, self.out, scratch),
            _ => engine.matmat(layer, x, scales, self.out, scratch),
        };
        done.map_err(Into::into)
    }
}
