//! The choice: the cheapest engine of those allowed; on a near tie, the first in order.

use serde::Serialize;

use super::cost::Logs;
use super::settings::{Preference, Profile, Settings};
use super::{Costs, Engine, Job, Location, Operation, Prediction};

/// Approximate seconds for opening a device: starting the driver, making a context, translating the first kernel.
pub(super) const OPENING: f64 = 0.3;
/// [`Settings::prefer_gpu`] lets the device take up to this many times the best time.
const PREFERRED: f64 = 2.0;

/// Why an engine is no candidate for a job.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Exclusion {
    /// The profile does not include the engine.
    Profile,
    /// The call asks for another engine.
    Forced(Engine),
    /// An override gives the operation to another engine.
    Override(Engine),
    /// `TERCET_BACKEND` or the program asks for another engine.
    Preference,
    /// No cost is known.
    NoCost,
    /// The job has fewer elements than [`Settings::min_size_for_gpu`], which is the value here.
    TooSmall(u64),
    /// The data is on the device, which the engine cannot reach.
    OutOfReach,
    /// A device has no step for the job.
    NoStep,
    /// The engine does not take files in tiles, which is done over all threads ([`Job::is_tiled`]).
    Tiled,
    /// There is no device.
    Missing,
    /// The device was lost, or failed repeatedly.
    GivenUp,
    /// The engine has failed at this call.
    Failed,
    /// The device is not open, and calls would have saved less time on it than opening takes. The value is the seconds
    /// saved, this call included.
    Unopened(f64),
}

/// An engine under consideration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) engine: Engine,
    /// Of the whole call.
    pub(super) prediction: Option<Prediction>,
    /// Of its first phase and of the second, if it has two.
    pub(super) phases: Option<[Prediction; 2]>,
    pub(super) out: Option<Exclusion>,
}

impl Candidate {
    fn total(&self) -> f64 {
        self.prediction
            .map_or(f64::INFINITY, |prediction| prediction.total())
    }
}

/// State of the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    /// Not opened yet; calls could have saved so many seconds on it so far.
    Closed(f64),
    /// The device works.
    Open,
    /// There is no device.
    Missing,
    /// The device stopped working.
    GivenUp,
}

/// The inputs of a choice, beside the job.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChoiceContext<'a> {
    pub(super) settings: &'a Settings,
    pub(super) costs: &'a Costs,
    pub(super) device: State,
    /// The engine that the call asks for.
    pub(super) forced: Option<Engine>,
    /// Engines that failed at this call, one bit each.
    pub(super) failed: u8,
}

/// The engines in [`Engine::ORDER`], and the chosen one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranking {
    pub(super) candidates: [Candidate; Engine::ALL.len()],
    /// `None` if no engine is left.
    pub(super) chosen: Option<Engine>,
    /// Seconds that the call would have saved on a device that is not open.
    pub(super) missed: f64,
}

impl Ranking {
    pub(super) fn predicted(&self, engine: Engine) -> Option<Prediction> {
        let mut all = self.candidates.iter();
        all.find(|candidate| candidate.engine == engine)?.prediction
    }
}

impl ChoiceContext<'_> {
    /// Ranks the engines for a job. O(engines · log points).
    pub(super) fn rank(&self, job: &Job) -> Ranking {
        let logs = Logs::of(job);
        let mut candidates = Engine::ORDER.map(|engine| {
            let cost = self.costs.get(job.operation, engine);
            let mut prediction = cost.map(|cost| cost.predict_with(job, &logs));
            let mut phases = None;
            if let Some(before) = &job.before {
                let cost = self.costs.get(before.operation, engine);
                let first = cost.map(|cost| cost.predict(&before.job(job.place)));
                phases = first.zip(prediction).map(|(first, own)| [first, own]);
                prediction = phases.map(|[first, own]| first.then(&own));
            }
            let out = self.out(job, engine, prediction.is_some());
            Candidate {
                engine,
                prediction,
                phases,
                out,
            }
        });
        if let Some((only, why)) = self.only(job.operation)
            && let Some(able) = candidates.iter().position(|it| it.engine == only)
            && candidates[able]
                .out
                .is_none_or(|out| out == Exclusion::NoCost)
        {
            candidates[able].out = None;
            for other in candidates.iter_mut().filter(|it| it.engine != only) {
                other.out = other.out.or(Some(why));
            }
        }
        let mut ranking = Ranking {
            candidates,
            chosen: None,
            missed: 0.0,
        };
        self.choose(job, &mut ranking);
        ranking
    }

    /// Returns the reason why an engine is out, independent of the others.
    fn out(&self, job: &Job, engine: Engine, known: bool) -> Option<Exclusion> {
        let settings = self.settings;
        if self.failed >> engine as u8 & 1 == 1 {
            return Some(Exclusion::Failed);
        }
        if let Some(forced) = self.forced
            && forced != engine
        {
            return Some(Exclusion::Forced(forced));
        }
        if engine == Engine::Cuda {
            match self.device {
                State::Missing => return Some(Exclusion::Missing),
                State::GivenUp => return Some(Exclusion::GivenUp),
                State::Open | State::Closed(_) => {}
            }
        } else if job.place == Location::Device {
            return Some(Exclusion::OutOfReach);
        }
        let other = job.is_tiled() && ![settings.profile.tiling(), Engine::Cuda].contains(&engine);
        let tiled = other.then_some(Exclusion::Tiled);
        if self.forced.is_some() {
            return tiled;
        }
        if engine == Engine::Cuda && job.place == Location::Processor {
            return Some(Exclusion::NoStep);
        }
        let here = match settings.profile {
            Profile::Auto | Profile::Gpu => true,
            Profile::Cpu => engine != Engine::Cuda,
            Profile::Development => engine == Engine::Simd,
            Profile::Edge => engine == Engine::Scalar,
        };
        if !here {
            return Some(Exclusion::Profile);
        }
        if let Preference::Set(backend) = settings.wish
            && matches!(
                settings.profile,
                Profile::Auto | Profile::Cpu | Profile::Gpu
            )
        {
            // The plain kernels belong to the scalar engine.
            let other = match backend.isa() {
                tercet_host::simd::Isa::Scalar => Engine::Simd,
                _ => Engine::Scalar,
            };
            if engine == Engine::Cuda || engine == other {
                return Some(Exclusion::Preference);
            }
        }
        if tiled.is_some() {
            return tiled;
        }
        if !known {
            return Some(Exclusion::NoCost);
        }
        let least = settings.min_size_for_gpu;
        if engine == Engine::Cuda && job.place == Location::Host && job.elements < least {
            return Some(Exclusion::TooSmall(least));
        }
        None
    }

    /// Returns the engine that excludes all others as long as it can do the work, and the reason.
    fn only(&self, operation: Operation) -> Option<(Engine, Exclusion)> {
        if let Some(forced) = self.forced {
            return Some((forced, Exclusion::Forced(forced)));
        }
        if let Some(&engine) = self.settings.overrides.get(&operation) {
            return Some((engine, Exclusion::Override(engine)));
        }
        (self.settings.wish == Preference::Cuda).then_some((Engine::Cuda, Exclusion::Preference))
    }

    /// True if the device is opened for any operation that it is chosen for.
    fn at_once(&self, operation: Operation) -> bool {
        let only = self.only(operation);
        only.is_some_and(|(engine, _)| engine == Engine::Cuda)
            || self.settings.prefer_gpu
            || self.settings.profile == Profile::Gpu
    }

    fn choose(&self, job: &Job, ranking: &mut Ranking) {
        let chosen = self.best(&ranking.candidates);
        if chosen == Some(Engine::Cuda)
            && let State::Closed(saved) = self.device
            && job.place == Location::Host
            && !self.at_once(job.operation)
        {
            let device = ranking.candidates.iter_mut();
            let Some(device) = device.into_iter().find(|it| it.engine == Engine::Cuda) else {
                return;
            };
            let there = device.total();
            device.out = Some(Exclusion::Unopened(saved));
            let here = self.best(&ranking.candidates);
            let total = here.and_then(|here| Some(ranking.predicted(here)?.total()));
            let missed = (total.unwrap_or(f64::INFINITY) - there).max(0.0);
            for candidate in &mut ranking.candidates {
                if let Some(Exclusion::Unopened(sum)) = &mut candidate.out {
                    *sum = saved + missed;
                    if *sum >= OPENING {
                        candidate.out = None;
                    }
                }
            }
            if saved + missed < OPENING {
                (ranking.chosen, ranking.missed) = (here, missed);
                return;
            }
        }
        // Without any cost, fall back to the reference engine, or for tiled files to the engine that takes them.
        let always = match job.is_tiled() {
            true => self.settings.profile.tiling(),
            false => Engine::Scalar,
        };
        let able = self.forced.is_none()
            && job.place != Location::Device
            && self.failed >> always as u8 & 1 == 0;
        ranking.chosen = chosen.or_else(|| able.then_some(always));
    }

    /// Returns the first engine in order whose time is within the tolerance of the best.
    fn best(&self, candidates: &[Candidate]) -> Option<Engine> {
        let able = || {
            candidates
                .iter()
                .filter(|candidate| candidate.out.is_none())
        };
        let best = able().map(Candidate::total).fold(f64::INFINITY, f64::min);
        let device = able().find(|candidate| candidate.engine == Engine::Cuda);
        let preferred = self.settings.prefer_gpu || self.settings.profile == Profile::Gpu;
        if preferred && device.is_some_and(|device| device.total() <= PREFERRED * best) {
            return Some(Engine::Cuda);
        }
        let most = best * (1.0 + self.settings.tolerance.max(0.0));
        let mut within = able().filter(|candidate| candidate.total() <= most);
        Some(within.next()?.engine)
    }
}
