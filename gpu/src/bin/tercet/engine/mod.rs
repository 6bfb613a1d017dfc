//! The engine that a command runs on, and all flows that engines can do.
//!
//! This is the only place where commands use engines, through the dispatcher of the library.

mod named;
mod work;

use std::path::Path;

use tercet_gpu::AnyEngine;
use tercet_gpu::dispatch::{Device, Dispatcher, First, Job, Location, Operation, Profile};
#[cfg(feature = "cuda")]
use tercet_gpu::engine::Cudas;
use tercet_host::cluster::{Assigned, KMeans, KMeansFit};
use tercet_host::convert::{Target, coded_values};
use tercet_host::engine::FlowEngine;
use tercet_host::points::Points;
use tercet_host::search::{Find, SearchOptions, SearchReport, Storage};
use tercet_host::{Error, Progress, QuantizeOptions, Report, TensorFile};

use self::work::{Assign, Fit, Quantize, Search, Work};
use crate::{edge, format};

pub(crate) use named::{CUDA, Named, Several, dispatcher};

/// The dispatcher, by the devices that it has.
#[derive(Debug)]
enum Chooser {
    /// The first device.
    One(Dispatcher),
    /// Several devices, which work as one.
    #[cfg(feature = "cuda")]
    Several(Dispatcher<Cudas>),
}

/// Does the same with either dispatcher.
macro_rules! chosen {
    ($chooser:expr, $dispatcher:ident => $done:expr) => {
        match $chooser {
            Chooser::One($dispatcher) => $done,
            #[cfg(feature = "cuda")]
            Chooser::Several($dispatcher) => $done,
        }
    };
}

/// The engine of a command's work.
#[derive(Debug)]
pub(crate) struct CommandEngine {
    chooser: Chooser,
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
        let metrics = chosen!(&self.chooser, it => it.metrics());
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
        let advice = chosen!(&self.chooser, it => it.recommend());
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
        match &self.chooser {
            Chooser::One(dispatcher) => {
                let name = &mut self.name;
                told(dispatcher, job, self.explain, |engine| {
                    *name = engine.name();
                    flow(engine)
                })
            }
            #[cfg(feature = "cuda")]
            Chooser::Several(_) => Err(Error::Options {
                reason: "several devices do not run language models; leave out --devices"
                    .to_owned(),
            }),
        }
    }

    /// As [`CommandEngine::run`], on several devices too.
    fn work<W: Work>(&mut self, job: Job, work: &mut W) -> Result<W::Done, Error> {
        let name = &mut self.name;
        chosen!(&self.chooser, dispatcher => told(dispatcher, job, self.explain, |engine| {
            *name = engine.name();
            work.on(engine)
        }))
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
        self.work(job.with_scratch(scratch), &mut Fit { kmeans, points })
    }

    /// Runs [`tercet_host::cluster::assign_points`].
    pub(crate) fn assign(
        &mut self,
        points: &Points,
        centroids: &Points,
        spherical: bool,
    ) -> Result<Assigned, Error> {
        let (rows, dims) = (points.rows(), points.dims());
        let job = Job::points(Operation::Assign, rows, dims, centroids.rows());
        let scratch = edge::assign(dims, centroids.rows());
        let mut work = Assign {
            points,
            centroids,
            spherical,
        };
        self.work(job.with_scratch(scratch), &mut work)
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
        let scratch = edge::search(base.rows(), base.dims(), options);
        let mut work = Search {
            base,
            queries,
            options,
        };
        self.work(job.with_scratch(scratch), &mut work)
    }

    /// True if the device was requested, so that no other engine may work.
    pub(crate) const fn is_device(&self) -> bool {
        self.device
    }

    /// True if work is done as on a microcontroller.
    pub(crate) fn is_edge(&self) -> bool {
        chosen!(&self.chooser, it => it.settings().profile) == Profile::Edge
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
        let mut work = Quantize {
            model,
            options,
            out,
            progress,
        };
        self.work(job.with_scratch(scratch), &mut work)
    }
}

/// Explains a job if that was requested, and runs its flow.
fn told<D: Device, T>(
    dispatcher: &Dispatcher<D>,
    job: Job,
    explain: bool,
    flow: impl FnMut(&mut AnyEngine<'_, D>) -> Result<T, Error>,
) -> Result<T, Error> {
    let job = job.in_flow();
    if explain {
        eprintln!("{}", dispatcher.explain(&job).to_string().trim_end());
    }
    dispatcher.flow(job, flow)
}

/// Describes the engine that did the work, and why not another.
pub(crate) fn words(engine: &str, note: Option<&str>) -> String {
    match note {
        Some(note) => format!("{engine}; {note}"),
        None => engine.to_owned(),
    }
}
