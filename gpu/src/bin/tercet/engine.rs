//! The engine that a command runs on: `--backend`, `--explain`, and every flow that engines can do.
//!
//! The one place where commands meet engines, through the dispatcher of the library.

use std::error::Error as StdError;
use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tercet_gpu::dispatch::{
    self, Able, Builder, DispatchError, Dispatcher, Job, Notice, Operation, Settings,
    SettingsError, Verbose, Wish, Work,
};
use tercet_host::cluster::Step;
use tercet_host::cluster::data::{self, Assigned, Fit, Found};
use tercet_host::convert::Target;
use tercet_host::engine::Fault;
use tercet_host::points::Points;
use tercet_host::search::{Find, SearchOptions, SearchReport, Storage, search_with};
use tercet_host::simd::{Backend, BackendError, Isa};
use tercet_host::{Error, Model, QuantizeOptions, Report, quantize, quantize_with};

use crate::failure::Failure;
use crate::progress::Bar;

/// What [`Named`] may name beside instruction sets.
const AUTO: &str = "auto";
pub(crate) const CUDA: &str = "cuda";

/// Which engine does the work.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Named {
    /// What does the work, with the same results: an instruction set of the processor, on one thread or all, or the first CUDA device;
    /// auto is what costs least here, by size, among what TERCET_BACKEND allows
    #[arg(long, value_name = "NAME", value_parser = name(), default_value = AUTO)]
    backend: Choice,
    /// Say on stderr which engines there were, what each was predicted to take, and why one was chosen
    #[arg(long)]
    explain: bool,
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

/// A variable says something that cannot be done.
impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::usage(error)
    }
}

/// A dispatcher whose notices are warnings on stderr.
pub(crate) fn dispatcher(settings: Settings) -> Dispatcher {
    let told = settings.verbose != Verbose::Silent;
    let warn = move |notice: &Notice| {
        // That there is no device is told by `info`, and is no failure here.
        let quiet = matches!(notice, Notice::NoDevice { .. } | Notice::Opened { .. });
        if !told && !quiet {
            eprintln!("{}", Failure::new(format_args!("warning: {notice}")));
        }
    };
    let dispatcher = Builder::new(settings).listener(warn).build();
    crate::bottlenecks::watch(&dispatcher);
    dispatcher
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
        let settings = match self.backend {
            Choice::Auto => Settings::from_environment()?,
            Choice::Set(isa) => Settings::with_wish(Wish::Set(Backend::new(isa)?))?,
            Choice::Cuda => Settings::with_wish(Wish::Cuda)?,
        };
        let dispatcher = dispatcher(settings);
        let dispatcher = match self.backend {
            Choice::Cuda => {
                dispatcher.open().map_err(|error| match error {
                    DispatchError::Unavailable { reason, .. } => {
                        Failure::new(format_args!("--backend {CUDA}: {reason}"))
                    }
                    error => Failure::new(error),
                })?;
                dispatcher.on(dispatch::Engine::Cuda)
            }
            Choice::Auto | Choice::Set(_) => dispatcher,
        };
        Ok(Engine {
            dispatcher,
            explain: self.explain,
            name: Backend::default().to_string(),
        })
    }
}

/// Who does a command's work.
#[derive(Debug)]
pub(crate) struct Engine {
    dispatcher: Dispatcher,
    explain: bool,
    /// Who did it last.
    name: String,
}

/// A flow on whatever engine: how much it is, and what it does there.
struct Flow<'a, F> {
    job: Job,
    name: &'a mut String,
    flow: F,
}

/// What a flow does, for every engine alike.
trait On {
    type Done;
    fn on<E: Able>(&mut self, engine: &mut E) -> Result<Self::Done, Error>;
}

impl<F: On> Work for Flow<'_, F> {
    type Done = Result<F::Done, Error>;

    fn job(&self) -> Job {
        self.job
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

struct Fits<'a> {
    points: &'a Points,
    fit: &'a Fit<'a>,
    observe: &'a mut dyn FnMut(Step, f64),
}

impl On for Fits<'_> {
    type Done = Found;

    fn on<E: Able>(&mut self, engine: &mut E) -> Result<Found, Error> {
        data::fit_with(engine, self.points, self.fit, self.observe)
    }
}

struct Assigns<'a> {
    points: &'a Points,
    centroids: &'a Points,
    spherical: bool,
}

impl On for Assigns<'_> {
    type Done = Assigned;

    fn on<E: Able>(&mut self, engine: &mut E) -> Result<Assigned, Error> {
        data::assign_with(engine, self.points, self.centroids, self.spherical)
    }
}

struct Searches<'a> {
    base: &'a Points,
    queries: &'a Points,
    options: &'a SearchOptions,
}

impl On for Searches<'_> {
    type Done = SearchReport;

    fn on<E: Able>(&mut self, engine: &mut E) -> Result<SearchReport, Error> {
        search_with(engine, self.base, self.queries, self.options, &Bar::new())
    }
}

struct Quantizes<'a> {
    model: &'a Model,
    options: &'a QuantizeOptions,
    out: &'a Path,
}

impl On for Quantizes<'_> {
    type Done = Report;

    fn on<E: Able>(&mut self, engine: &mut E) -> Result<Report, Error> {
        let progress = &Bar::new();
        if E::OWN_MEMORY {
            return quantize_with(engine, self.model, self.options, self.out, progress);
        }
        // The processor's threads take a tile from reading to measuring, which chunk by chunk they would not.
        quantize(self.model, self.options, self.out, progress)
    }
}

impl Engine {
    /// What reports call it: who did the last flow, or would be the processor's.
    pub(crate) fn name(&self) -> String {
        self.name.clone()
    }

    fn run<F: On>(&mut self, job: Job, flow: F) -> Result<F::Done, Error> {
        if self.explain {
            eprintln!("{}", self.dispatcher.explain(&job).to_string().trim_end());
        }
        let name = &mut self.name;
        match self.dispatcher.run(Flow { job, name, flow }) {
            Ok(done) => done,
            Err(error) => {
                let (engine, source): (_, Box<dyn StdError + Send + Sync>) = match error {
                    DispatchError::Engine { engine, source } => (engine, source),
                    DispatchError::Unavailable { engine, reason } => (engine, reason.into()),
                    // Flows tell of their input by themselves.
                    other => (dispatch::Engine::Scalar, other.to_string().into()),
                };
                let engine = engine.to_string();
                Err(Error::Engine { engine, source })
            }
        }
    }

    /// [`data::fit`].
    pub(crate) fn fit(
        &mut self,
        points: &Points,
        fit: &Fit<'_>,
        observe: &mut dyn FnMut(Step, f64),
    ) -> Result<Found, Error> {
        let options = &fit.options;
        let job = Job::kmeans(
            points.rows(),
            points.dims(),
            options.clusters,
            options.max_iter,
            options.restarts,
        );
        self.run(
            job,
            Fits {
                points,
                fit,
                observe,
            },
        )
    }

    /// [`data::assign`].
    pub(crate) fn assign(
        &mut self,
        points: &Points,
        centroids: &Points,
        spherical: bool,
    ) -> Result<Assigned, Error> {
        let (rows, dims) = (points.rows(), points.dims());
        let job = Job::points(Operation::Assign, rows, dims, centroids.rows());
        self.run(
            job,
            Assigns {
                points,
                centroids,
                spherical,
            },
        )
    }

    /// [`tercet_host::search::search`].
    pub(crate) fn search(
        &mut self,
        base: &Points,
        queries: &Points,
        options: &SearchOptions,
    ) -> Result<SearchReport, Error> {
        let size = match options.storage {
            Storage::F32 => 4,
            Storage::F16 => 2,
            _ => 1,
        };
        let k = match options.find {
            Find::Nearest(k) => k,
            Find::Within(_) => 1,
        };
        let job = Job::among(base.rows(), base.dims(), size, queries.rows(), k);
        self.run(
            job,
            Searches {
                base,
                queries,
                options,
            },
        )
    }

    /// [`quantize`].
    pub(crate) fn quantize(
        &mut self,
        model: &Model,
        options: &QuantizeOptions,
        out: &Path,
    ) -> Result<Report, Error> {
        let values = model.tensors().map(|tensor| {
            let sizes = tensor.shape.iter().map(|&size| size as u64);
            sizes.fold(1, u64::saturating_mul)
        });
        let values = values.fold(0, u64::saturating_add);
        let operation = match options.target {
            Target::Int8 => Operation::QuantizeInteger,
            Target::Ternary | Target::BitnetHf => Operation::QuantizeTernary,
            _ => Operation::Encode,
        };
        let job = Job::each(operation, values, values.saturating_mul(4), values);
        self.run(
            job,
            Quantizes {
                model,
                options,
                out,
            },
        )
    }
}

/// Who did the work, and why not another.
pub(crate) fn words(engine: &str, note: Option<&str>) -> String {
    match note {
        Some(note) => format!("{engine}; {note}"),
        None => engine.to_owned(),
    }
}
