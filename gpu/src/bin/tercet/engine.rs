//! The engine that a command runs on: `--backend`, `--explain`, and all flows that engines can do.
//!
//! This is the only place where commands use engines, through the dispatcher of the library.

use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tercet_gpu::AnyEngine;
use tercet_gpu::dispatch::{
    self, Builder, DispatchError, Dispatcher, First, Job, Location, Notice, Operation, Preference,
    Profile, Settings, SettingsError, Verbose,
};
use tercet_host::cluster::{self, Assigned, KMeans, KMeansFit};
use tercet_host::convert::{Target, coded_values};
use tercet_host::engine::FlowEngine;
use tercet_host::points::Points;
use tercet_host::search::{self, Find, SearchOptions, SearchReport, Storage};
use tercet_host::simd::{Backend, Isa};
use tercet_host::{Error, Progress, QuantizeOptions, Report, TensorFile};

use crate::failure::Failure;
use crate::profile::Profiled;
use crate::progress::Bar;
use crate::{edge, format};

/// A name that [`Named`] accepts beside instruction sets.
const AUTO: &str = "auto";
pub(crate) const CUDA: &str = "cuda";

/// The engine that does the work.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Named {
    /// The engine to use; results are the same: an instruction set of the processor, on one thread or all, or the first
    /// CUDA device; auto chooses the cheapest here, by size, among those that TERCET_BACKEND allows
    #[arg(long, value_name = "NAME", value_parser = name(), default_value = AUTO)]
    backend: Choice,
    /// Report on stderr the available engines, their predicted times, the reason for the choice, the time taken, and
    /// what would be faster
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    profile: Profiled,
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

/// An environment variable has an invalid value.
impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::usage(error)
    }
}

/// Returns a dispatcher whose notices are warnings on stderr.
pub(crate) fn dispatcher(settings: Settings) -> Dispatcher {
    let told = settings.verbose != Verbose::Silent;
    let warn = move |notice: &Notice| {
        // `info` reports a missing device; it is no failure here.
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
    /// Makes the requested instruction set that of the whole process; under edge this is scalar code. Must be called
    /// before any work. Returns the profile if the calling thread alone does all of the work.
    pub(crate) fn settle(&self) -> Result<Option<Profile>, Failure> {
        let profile = self.settings()?.profile;
        match self.backend {
            Choice::Set(isa) => Backend::new(isa)?.choose()?,
            Choice::Auto if profile == Profile::Edge => Backend::SCALAR.choose()?,
            Choice::Auto | Choice::Cuda => {}
        }
        Ok(Some(profile).filter(|it| matches!(it, Profile::Edge | Profile::Development)))
    }

    /// Returns the settings of the dispatcher.
    fn settings(&self) -> Result<Settings, Failure> {
        let settings = match self.backend {
            Choice::Auto => Settings::from_environment()?,
            Choice::Set(isa) => Settings::with_wish(Preference::Set(Backend::new(isa)?))?,
            Choice::Cuda => Settings::with_wish(Preference::Cuda)?,
        };
        let settings = self.profile.settings(settings)?;
        let can = match (settings.profile, self.backend) {
            (_, Choice::Auto) | (Profile::Auto | Profile::Gpu, _) => true,
            (Profile::Cpu | Profile::Development, backend) => !matches!(backend, Choice::Cuda),
            (Profile::Edge, backend) => matches!(backend, Choice::Set(Isa::Scalar)),
        };
        if can {
            return Ok(settings);
        }
        let name = match self.backend {
            Choice::Auto => AUTO,
            Choice::Set(isa) => isa.name(),
            Choice::Cuda => CUDA,
        };
        Err(Failure::usage(format_args!(
            "--backend {name} cannot be used with the profile {}",
            settings.profile.name()
        )))
    }

    /// Returns the engine, ready to work.
    pub(crate) fn open(&self) -> Result<CommandEngine, Failure> {
        let dispatcher = dispatcher(self.settings()?);
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
        Ok(CommandEngine {
            dispatcher,
            explain: self.explain,
            device: matches!(self.backend, Choice::Cuda),
            name: Backend::default().to_string(),
        })
    }
}

/// The engine of a command's work.
#[derive(Debug)]
pub(crate) struct CommandEngine {
    dispatcher: Dispatcher,
    explain: bool,
    /// True if only the device may do the work.
    device: bool,
    /// Name of the engine that worked last.
    name: String,
}

/// An explanation ends with the actual times, and with what would be faster.
impl Drop for CommandEngine {
    fn drop(&mut self) {
        if !self.explain {
            return;
        }
        let metrics = self.dispatcher.metrics();
        // An error, such as a missing file, needs no explanation.
        if metrics.engines.is_empty() {
            return;
        }
        for did in &metrics.engines {
            let seconds = |seconds| format::significant(seconds);
            eprintln!(
                "{}: {} by {}, {} s in all with files and floats; {} s predicted for the engine's part",
                did.operation,
                format::counted(did.calls, "call"),
                did.engine,
                seconds(did.seconds),
                seconds(did.predicted_seconds)
            );
        }
        let advice = self.dispatcher.recommend();
        for advice in &advice {
            eprintln!("recommended: {advice}");
        }
        if advice.is_empty() {
            eprintln!("recommended: nothing faster is known");
        }
    }
}

impl CommandEngine {
    /// Returns its name in reports: that of the engine of the last flow, or that of the processor.
    pub(crate) fn name(&self) -> String {
        self.name.clone()
    }

    /// Runs a flow on the engine with the lowest cost for its `job`, or on the next one if that fails.
    pub(crate) fn run<T>(
        &mut self,
        job: Job,
        mut flow: impl FnMut(&mut AnyEngine<'_, First>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let job = job.in_flow();
        if self.explain {
            eprintln!("{}", self.dispatcher.explain(&job).to_string().trim_end());
        }
        let name = &mut self.name;
        self.dispatcher.flow(job, |engine| {
            *name = engine.name();
            flow(engine)
        })
    }

    /// Runs [`KMeans::fit_on`].
    pub(crate) fn fit(
        &mut self,
        kmeans: &mut KMeans<'_>,
        points: &Points,
    ) -> Result<KMeansFit, Error> {
        let options = kmeans.options();
        let job = Job::kmeans(
            points.rows(),
            points.dims(),
            options.clusters,
            options.run.lloyd.max_iter,
            options.run.restarts,
        );
        let sphere = kmeans.is_spherical();
        let scratch = edge::kmeans(points.rows(), points.dims(), options, sphere);
        self.run(job.with_scratch(scratch), |engine| {
            kmeans.fit_on(engine, points)
        })
    }

    /// Runs [`cluster::assign_points`].
    pub(crate) fn assign(
        &mut self,
        points: &Points,
        centroids: &Points,
        spherical: bool,
    ) -> Result<Assigned, Error> {
        let (rows, dims) = (points.rows(), points.dims());
        let job = Job::points(Operation::Assign, rows, dims, centroids.rows());
        let scratch = edge::assign(dims, centroids.rows());
        self.run(job.with_scratch(scratch), |engine| {
            cluster::assign_points(engine, points, centroids, spherical)
        })
    }

    /// Runs [`tercet_host::search::search`].
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
        let scratch = edge::search(base.dims(), options);
        self.run(job.with_scratch(scratch), |engine| {
            search::search(engine, base, queries, options, &Bar::new())
        })
    }

    /// True if the device was requested, so that no other engine may work.
    pub(crate) const fn is_device(&self) -> bool {
        self.device
    }

    /// True if work is done as on a microcontroller.
    pub(crate) fn is_edge(&self) -> bool {
        self.dispatcher.settings().profile == Profile::Edge
    }

    /// True if [`CommandEngine::quantize`] can make this target. A request for the device is refused for targets that
    /// only the processor makes.
    pub(crate) fn makes(&self, target: Target) -> bool {
        target != Target::BitnetHf || !self.device
    }

    /// Runs [`tercet_host::quantize`].
    pub(crate) fn quantize(
        &mut self,
        model: &TensorFile,
        options: &QuantizeOptions,
        out: &Path,
        progress: &dyn Progress,
    ) -> Result<Report, Error> {
        // The flow itself refuses a conversion that cannot be planned.
        let values = coded_values(model, options).unwrap_or(0);
        let operation = match options.target {
            Target::Int8 => Operation::QuantizeInteger,
            Target::Ternary | Target::BitnetHf => Operation::QuantizeTernary,
            _ => Operation::Encode,
        };
        let job = Job::each(operation, values, values.saturating_mul(4), values);
        // No engine has a step for it, or there is nothing to quantize.
        let job = match options.target {
            Target::BitnetHf => job.at(Location::Processor),
            _ if values == 0 => job.at(Location::Processor),
            _ => job,
        };
        let scratch = edge::quantize(model, options);
        self.run(job.with_scratch(scratch), |engine| {
            tercet_host::quantize(engine, model, options, out, progress)
        })
    }
}

/// Describes the engine that did the work, and why not another.
pub(crate) fn words(engine: &str, note: Option<&str>) -> String {
    match note {
        Some(note) => format!("{engine}; {note}"),
        None => engine.to_owned(),
    }
}
