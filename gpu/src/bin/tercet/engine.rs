//! The engine that a command runs on: `--backend`, and every flow that another engine than the processor's can do.
//!
//! The one place where commands meet engines: who is to choose between them by size has only to stand here.

use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tercet_host::cluster::Step;
use tercet_host::cluster::data::{self, Assigned, Fit, Found};
use tercet_host::engine::Worker;
use tercet_host::parallel::Threads;
use tercet_host::points::Points;
use tercet_host::search::{SearchOptions, SearchReport, search_with};
use tercet_host::simd::{Backend, BackendError, Isa};
use tercet_host::{Error, Model, QuantizeOptions, Report, quantize};

use crate::failure::Failure;
use crate::progress::Bar;

#[cfg(feature = "cuda")]
use tercet_gpu::engine::Cuda;
#[cfg(feature = "cuda")]
use tercet_host::quantize_with;

/// What [`Named`] may name beside instruction sets.
const AUTO: &str = "auto";
pub(crate) const CUDA: &str = "cuda";

/// Which engine does the work.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Named {
    /// What does the work, with the same results: an instruction set of the processor or the first CUDA device; auto is the set
    /// that TERCET_BACKEND names, else the best here
    #[arg(long, value_name = "NAME", value_parser = name(), default_value = AUTO)]
    backend: Choice,
}

#[derive(Clone, Copy, Debug)]
enum Choice {
    Auto,
    Set(Isa),
    Cuda,
}

fn name() -> impl TypedValueParser<Value = Choice> {
    let sets = Isa::ALL.map(Isa::name);
    let names = [AUTO].into_iter().chain(sets).chain([CUDA]);
    PossibleValuesParser::new(names).map(|name| match name.as_str() {
        AUTO => Choice::Auto,
        CUDA => Choice::Cuda,
        name => Isa::from_name(name).map_or(Choice::Auto, Choice::Set),
    })
}

impl Named {
    /// Makes the instruction set that was named that of the whole process. Before any work.
    pub(crate) fn settle(&self) -> Result<(), BackendError> {
        match self.backend {
            Choice::Set(isa) => Backend::new(isa)?.choose(),
            Choice::Auto | Choice::Cuda => Ok(()),
        }
    }

    /// The engine, ready to work.
    pub(crate) fn open(&self) -> Result<Engine, Failure> {
        match self.backend {
            Choice::Auto | Choice::Set(_) => Ok(Engine::Processor(Threads::default())),
            Choice::Cuda => cuda(),
        }
    }
}

#[cfg(feature = "cuda")]
fn cuda() -> Result<Engine, Failure> {
    let cuda =
        Cuda::first().map_err(|error| Failure::new(format_args!("--backend {CUDA}: {error}")))?;
    Ok(Engine::Cuda(Box::new(cuda)))
}

#[cfg(not(feature = "cuda"))]
fn cuda() -> Result<Engine, Failure> {
    let reason = crate::gpus::WITHOUT;
    Err(Failure::new(format_args!("--backend {CUDA}: {reason}")))
}

/// An engine that was chosen.
#[derive(Debug)]
pub(crate) enum Engine {
    Processor(Threads),
    #[cfg(feature = "cuda")]
    Cuda(Box<Cuda>),
}

/// Does `$work` with `$engine` as whatever it is.
macro_rules! with {
    ($self:expr, $engine:ident => $work:expr) => {
        match $self {
            Engine::Processor($engine) => $work,
            #[cfg(feature = "cuda")]
            Engine::Cuda(cuda) => {
                let $engine = &mut **cuda;
                $work
            }
        }
    };
}

impl Engine {
    /// What reports call it.
    pub(crate) fn name(&mut self) -> String {
        with!(self, engine => engine.name())
    }

    /// [`data::fit`].
    pub(crate) fn fit(
        &mut self,
        points: &Points,
        fit: &Fit<'_>,
        observe: &mut dyn FnMut(Step, f64),
    ) -> Result<Found, Error> {
        with!(self, engine => data::fit_with(engine, points, fit, observe))
    }

    /// [`data::assign`].
    pub(crate) fn assign(
        &mut self,
        points: &Points,
        centroids: &Points,
        spherical: bool,
    ) -> Result<Assigned, Error> {
        with!(self, engine => data::assign_with(engine, points, centroids, spherical))
    }

    /// [`tercet_host::search::search`].
    pub(crate) fn search(
        &mut self,
        base: &Points,
        queries: &Points,
        options: &SearchOptions,
    ) -> Result<SearchReport, Error> {
        with!(self, engine => search_with(engine, base, queries, options, &Bar::new()))
    }

    /// [`quantize`].
    pub(crate) fn quantize(
        &mut self,
        model: &Model,
        options: &QuantizeOptions,
        out: &Path,
    ) -> Result<Report, Error> {
        let progress = &Bar::new();
        match self {
            // Its threads take a tile from reading to measuring, which chunk by chunk they would not.
            Self::Processor(_) => quantize(model, options, out, progress),
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => quantize_with(&mut **cuda, model, options, out, progress),
        }
    }
}

/// Who did the work, and why not another.
pub(crate) fn words(engine: &str, note: Option<&str>) -> String {
    match note {
        Some(note) => format!("{engine}; {note}"),
        None => engine.to_owned(),
    }
}
