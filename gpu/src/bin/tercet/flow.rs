//! The flows that engines can do, each written once for all of them.

use std::path::Path;

use tercet_gpu::dispatch::{Able, Job, Work};
use tercet_host::cluster::Step;
use tercet_host::cluster::data::{self, Assigned, Fit, Found};
use tercet_host::engine::Fault;
use tercet_host::points::Points;
use tercet_host::search::{SearchOptions, SearchReport, search_with};
use tercet_host::{Error, Model, Progress, QuantizeOptions, Report, quantize, quantize_with};

use crate::progress::Bar;

/// A flow on whatever engine: how much it is, what memory it takes, and what it does there.
pub(crate) struct Flow<'a, F> {
    pub(crate) job: Job,
    pub(crate) scratch: usize,
    /// Who does it.
    pub(crate) name: &'a mut String,
    pub(crate) flow: F,
}

/// What a flow does, for every engine alike.
pub(crate) trait On {
    type Done;
    fn on<E: Able>(&mut self, engine: &mut E) -> Result<Self::Done, Error>;
}

impl<F: On> Work for Flow<'_, F> {
    type Done = Result<F::Done, Error>;

    fn job(&self) -> Job {
        self.job
    }

    fn scratch(&self) -> usize {
        self.scratch
    }

    fn run<E: Able>(&mut self, engine: &mut E) -> Result<Self::Done, Fault> {
        *self.name = engine.name();
        match self.flow.on(engine) {
            // Files and options have no part in it: another engine may do the work.
            Err(Error::Engine { source, .. }) => Err(Fault::Engine(source)),
            done => Ok(done),
        }
    }
}

/// [`data::fit`].
pub(crate) struct Fits<'a> {
    pub(crate) points: &'a Points,
    pub(crate) fit: &'a Fit<'a>,
    pub(crate) observe: &'a mut dyn FnMut(Step, f64),
}

impl On for Fits<'_> {
    type Done = Found;

    fn on<E: Able>(&mut self, engine: &mut E) -> Result<Found, Error> {
        data::fit_with(engine, self.points, self.fit, self.observe)
    }
}

/// [`data::assign`].
pub(crate) struct Assigns<'a> {
    pub(crate) points: &'a Points,
    pub(crate) centroids: &'a Points,
    pub(crate) spherical: bool,
}

impl On for Assigns<'_> {
    type Done = Assigned;

    fn on<E: Able>(&mut self, engine: &mut E) -> Result<Assigned, Error> {
        data::assign_with(engine, self.points, self.centroids, self.spherical)
    }
}

/// [`tercet_host::search::search`].
pub(crate) struct Searches<'a> {
    pub(crate) base: &'a Points,
    pub(crate) queries: &'a Points,
    pub(crate) options: &'a SearchOptions,
}

impl On for Searches<'_> {
    type Done = SearchReport;

    fn on<E: Able>(&mut self, engine: &mut E) -> Result<SearchReport, Error> {
        search_with(engine, self.base, self.queries, self.options, &Bar::new())
    }
}

/// [`quantize`].
pub(crate) struct Quantizes<'a> {
    pub(crate) model: &'a Model,
    pub(crate) options: &'a QuantizeOptions,
    pub(crate) out: &'a Path,
    pub(crate) progress: &'a dyn Progress,
}

impl On for Quantizes<'_> {
    type Done = Report;

    fn on<E: Able>(&mut self, engine: &mut E) -> Result<Report, Error> {
        let progress = self.progress;
        if E::OWN_MEMORY {
            return quantize_with(engine, self.model, self.options, self.out, progress);
        }
        // The processor's threads take a tile from reading to measuring, which chunk by chunk they would not.
        quantize(self.model, self.options, self.out, progress)
    }
}
