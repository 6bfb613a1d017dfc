//! The flows that several devices can do too.

use std::path::Path;

use tercet_host::cluster::{self, Assigned, KMeans, KMeansFit};
use tercet_host::engine::FlowEngine;
use tercet_host::points::Points;
use tercet_host::search::{self, SearchOptions, SearchReport};
use tercet_host::{Error, Progress, QuantizeOptions, Report, TensorFile};

use crate::progress::Bar;

/// A flow that one or several devices can do.
pub(super) trait Work {
    /// Its result.
    type Done;

    /// Does it on an engine.
    fn on<E: FlowEngine>(&mut self, engine: &mut E) -> Result<Self::Done, Error>;
}

/// A clustering.
pub(super) struct Fit<'a, 'k> {
    pub(super) kmeans: &'a mut KMeans<'k>,
    pub(super) points: &'a Points,
}

impl Work for Fit<'_, '_> {
    type Done = KMeansFit;

    fn on<E: FlowEngine>(&mut self, engine: &mut E) -> Result<KMeansFit, Error> {
        self.kmeans.fit_on(engine, self.points)
    }
}

/// An assignment.
pub(super) struct Assign<'a> {
    pub(super) points: &'a Points,
    pub(super) centroids: &'a Points,
    pub(super) spherical: bool,
}

impl Work for Assign<'_> {
    type Done = Assigned;

    fn on<E: FlowEngine>(&mut self, engine: &mut E) -> Result<Assigned, Error> {
        cluster::assign_points(engine, self.points, self.centroids, self.spherical)
    }
}

/// A search.
pub(super) struct Search<'a> {
    pub(super) base: &'a Points,
    pub(super) queries: &'a Points,
    pub(super) options: &'a SearchOptions,
}

impl Work for Search<'_> {
    type Done = SearchReport;

    fn on<E: FlowEngine>(&mut self, engine: &mut E) -> Result<SearchReport, Error> {
        search::search(engine, self.base, self.queries, self.options, &Bar::new())
    }
}

/// A conversion.
pub(super) struct Quantize<'a> {
    pub(super) model: &'a TensorFile,
    pub(super) options: &'a QuantizeOptions,
    pub(super) out: &'a Path,
    pub(super) progress: &'a dyn Progress,
}

impl Work for Quantize<'_> {
    type Done = Report;

    fn on<E: FlowEngine>(&mut self, engine: &mut E) -> Result<Report, Error> {
        tercet_host::quantize(engine, self.model, self.options, self.out, self.progress)
    }
}
