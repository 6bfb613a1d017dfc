//! The operations as calls.

use std::ops::RangeInclusive;

use tercet_core::block::{Encoded, Format};
use tercet_core::cluster::Points;
use tercet_core::engine::Output;
use tercet_core::linear::{I8Sym, Layer};
use tercet_core::number::Element;
use tercet_core::quant::{Codes, Groups, Histogram, Method, Report, Rule, ScaleRule};
use tercet_core::search::{Hit, Metric, Rows};
use tercet_host::cluster::{Clustering, KmeansOptions};

use super::dispatcher::Dispatcher;
use super::engine::Device;
use super::notice::DispatchError;
use super::operations::{
    Assign, Counts, Decode, Dequantize, Encode, Kmeans, Product, Quantize, Search,
};
use super::{Engine, Job, Profile};

/// Bins for the optimal rule beyond those it must have: fewer passes over the values, in 64 KiB.
const BINS: usize = 4096;

impl<D: Device> Dispatcher<D> {
    /// Quantizes a tensor in groups: codes, scales and zero points into `out`, as [`tercet_core::quant::quantize`] has them.
    ///
    /// # Errors
    /// [`DispatchError::Quantize`]; those of [`Dispatcher::run`].
    pub fn quantize<T: Element>(
        &self,
        values: &[T],
        groups: Groups,
        method: Method,
        out: Output<'_>,
    ) -> Result<Report, DispatchError> {
        // Fixed memory is the least that will do.
        let edge = self.settings().profile == Profile::Edge;
        self.run(Quantize {
            values,
            groups,
            method,
            out,
            bins: if edge { 0 } else { BINS },
        })
    }

    /// Counts the next values of a stream: [`Histogram::push`].
    ///
    /// # Errors
    /// [`DispatchError::Quantize`] at the first value that is not finite, those before it being counted; those of
    /// [`Dispatcher::run`], after which none of these values is.
    pub fn histogram<T: Element, const B: u32>(
        &self,
        values: &[T],
        histogram: &mut Histogram<'_, B>,
    ) -> Result<(), DispatchError> {
        self.run(Counts { values, histogram })
    }

    /// Writes `fl((code − zero_point) · scale)`, for codes of a range: [`tercet_core::quant::ternary::RANGE`], `int8`'s or `int4`'s.
    ///
    /// # Errors
    /// [`DispatchError::Quantize`]; those of [`Dispatcher::run`].
    pub fn dequantize(
        &self,
        codes: Codes<'_>,
        range: RangeInclusive<i8>,
        out: &mut [f32],
    ) -> Result<(), DispatchError> {
        self.run(Dequantize { codes, range, out })
    }

    /// Encodes values into GGUF blocks: [`tercet_core::block::encode`].
    ///
    /// # Errors
    /// [`DispatchError::Block`]; those of [`Dispatcher::run`].
    pub fn encode<T: Element>(
        &self,
        format: Format,
        rule: Rule,
        scale: ScaleRule,
        values: &[T],
        out: &mut [u8],
    ) -> Result<Encoded, DispatchError> {
        self.run(Encode {
            format,
            rule,
            scale,
            values,
            out,
        })
    }

    /// Decodes GGUF blocks: [`tercet_core::block::decode`].
    ///
    /// # Errors
    /// [`DispatchError::Block`]; those of [`Dispatcher::run`].
    pub fn decode(
        &self,
        format: Format,
        bytes: &[u8],
        out: &mut [f32],
    ) -> Result<(), DispatchError> {
        self.run(Decode { format, bytes, out })
    }

    /// Clusters int8 points, row-major with `dims` coordinates each, with their weights: [`tercet_host::cluster::kmeans`].
    ///
    /// # Errors
    /// [`DispatchError::Cluster`]; those of [`Dispatcher::run`].
    pub fn kmeans(
        &self,
        codes: &[i8],
        dims: usize,
        weights: Option<&[u32]>,
        options: &KmeansOptions,
    ) -> Result<Clustering, DispatchError> {
        self.run(Kmeans {
            codes,
            dims,
            weights,
            options,
        })
    }

    /// Gives every point the nearest of `centroids` (k · d codes), the lowest of equals, and its squared distance to that. Both slices are as
    /// long as there are points.
    ///
    /// # Errors
    /// [`DispatchError::Cluster`]; those of [`Dispatcher::run`].
    pub fn assign(
        &self,
        points: Points<'_>,
        centroids: &[i8],
        labels: &mut [u32],
        distances: &mut [u32],
    ) -> Result<(), DispatchError> {
        self.run(Assign {
            points,
            centroids,
            labels,
            distances,
        })
    }

    /// Writes the `k` best rows for each of many queries that lie one after another, and returns how many there are for each:
    /// [`tercet_core::engine::SearchBase::top_k_all`].
    ///
    /// # Errors
    /// [`DispatchError::Search`]; those of [`Dispatcher::run`].
    pub fn search<M: Metric, R: Rows>(
        &self,
        rows: R,
        queries: &[R::Query],
        k: usize,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, DispatchError> {
        self.run(Search::<M, R> {
            rows,
            queries,
            k,
            hits,
        })
    }

    /// A layer times a row of activations, scaled: [`tercet_core::linear::matvec`].
    ///
    /// # Errors
    /// [`DispatchError::Linear`]; those of [`Dispatcher::run`].
    pub fn matvec(
        &self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scale: f32,
        out: &mut [f32],
    ) -> Result<(), DispatchError> {
        self.run(Product {
            layer,
            x,
            scales: &[x_scale],
            out,
            one: true,
        })
    }

    /// A layer times many rows of activations, one after another in `x` with a scale each: [`tercet_core::engine::LinearEngine::matmat`].
    ///
    /// # Errors
    /// [`DispatchError::Linear`]; those of [`Dispatcher::run`].
    pub fn matmul(
        &self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scales: &[f32],
        out: &mut [f32],
    ) -> Result<(), DispatchError> {
        self.run(Product {
            layer,
            x,
            scales: x_scales,
            out,
            one: false,
        })
    }

    /// What would do an operation of this job, without doing it: a call with such a job is done by the same engine.
    pub fn choice(&self, job: &Job) -> Option<Engine> {
        self.explain(job).chosen
    }
}
