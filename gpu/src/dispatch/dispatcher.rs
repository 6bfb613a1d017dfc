//! The dispatcher: it chooses, calls, counts, and continues on another engine if one fails.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tercet_host::parallel::Threads;

use super::builder::{Builder, First, Source};
use super::choose::{ChoiceContext, Ranking, State};
use super::device::Slot;
use super::engine::Device;
use super::explain::Told;
use super::metrics::{Counters, Flights};
use super::notice::{DispatchError, Notice};
use super::settings::{Profile, Settings, SettingsError, Verbose};
use super::{Costs, Engine, Explanation, Job};

/// Receives the dispatcher's notices.
pub(super) type Listener = Box<dyn Fn(&Notice) + Send + Sync>;

/// Runs each call on the engine with the lowest cost for it.
///
/// All engines give the same bits, so a choice affects only the time. Many threads may use a dispatcher at once, and
/// clones are handles of the same dispatcher. Choosing takes well under a microsecond per call. The device does one
/// call at a time.
///
/// ```
/// use tercet_core::engine::Output;
/// use tercet_core::quant::{Groups, Method};
/// use tercet_gpu::dispatch::{Dispatcher, Engine, Settings};
///
/// let dispatcher = Dispatcher::new(Settings::default());
/// let values = [0.5f32, -1.0, 2.0, 0.0];
/// let (mut codes, mut scales) = ([0; 4], [0.0; 1]);
/// let out = Output { codes: &mut codes, scales: &mut scales, zero_points: &mut [] };
/// dispatcher.quantize(&values, Groups::tensor(4)?, Method::Symmetric { limit: 127 }, out)?;
/// assert_eq!(codes, [32, -64, 127, 0]);
///
/// // The same, by the engine that one likes.
/// let mut again = [0; 4];
/// let out = Output { codes: &mut again, scales: &mut scales, zero_points: &mut [] };
/// let scalar = dispatcher.on(Engine::Scalar);
/// scalar.quantize(&values, Groups::tensor(4)?, Method::Symmetric { limit: 127 }, out)?;
/// assert_eq!(again, codes);
/// assert_eq!(dispatcher.metrics().calls, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Dispatcher<D: Device = First> {
    pub(super) shared: Arc<DispatcherState<D>>,
    pub(super) forced: Option<Engine>,
}

/// State shared by all handles of a dispatcher.
pub(super) struct DispatcherState<D> {
    pub(super) settings: Settings,
    pub(super) costs: Costs,
    /// Source of the costs, in words.
    pub(super) origin: String,
    /// The device whose costs were measured; `None` if the costs are for any device.
    pub(super) costs_of: Option<String>,
    /// The costs without those of the device, if it turned out to be another one.
    pub(super) corrected: OnceLock<Costs>,
    pub(super) source: Source,
    /// The costs of this machine's best instruction set, if another one was asked for.
    pub(super) best: Option<Costs>,
    pub(super) device: Slot<D>,
    pub(super) simd: Threads,
    pub(super) threads: Threads,
    pub(super) counters: Counters,
    pub(super) flights: Flights,
    pub(super) listener: Listener,
    /// True once the missing device was reported.
    pub(super) told: AtomicBool,
}

impl<D: Device> Clone for Dispatcher<D> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            forced: self.forced,
        }
    }
}

impl<D: Device> fmt::Debug for Dispatcher<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher")
            .field("settings", &self.shared.settings)
            .field("costs", &self.shared.origin)
            .field("device", &self.shared.device)
            .field("forced", &self.forced)
            .finish_non_exhaustive()
    }
}

impl Dispatcher {
    /// Returns a dispatcher for this machine, set up from the environment: [`Settings::from_environment`].
    ///
    /// # Errors
    /// [`SettingsError`] for a variable with an invalid value.
    pub fn auto() -> Result<Self, SettingsError> {
        Ok(Self::new(Settings::from_environment()?))
    }

    /// Returns a dispatcher for this machine with these `settings`. The first CUDA device is opened when that pays off,
    /// see [`Builder`].
    pub fn new(settings: Settings) -> Self {
        Builder::new(settings).build()
    }
}

impl<D: Device> Dispatcher<D> {
    pub(super) fn of(shared: DispatcherState<D>) -> Self {
        let dispatcher = Self {
            shared: Arc::new(shared),
            forced: None,
        };
        if dispatcher.settings().profile == Profile::Gpu {
            // The outcome is reported; without a device the CPU does the work.
            let _ = dispatcher.open();
        }
        dispatcher
    }

    /// Returns a handle whose calls all run on one engine, whatever they cost.
    ///
    /// A call returns [`DispatchError::Unavailable`] if the engine is not available and [`DispatchError::Engine`] if it
    /// fails: no other engine takes over. The handle ignores profiles, except for the scratch limit of
    /// [`Profile::Edge`].
    pub fn on(&self, engine: Engine) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            forced: Some(engine),
        }
    }

    /// Returns the settings that it chooses by.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Returns the costs that it uses.
    pub fn costs(&self) -> &Costs {
        let shared = &*self.shared;
        shared.corrected.get().unwrap_or(&shared.costs)
    }

    /// Returns the source of its costs, in words.
    pub fn origin(&self) -> &str {
        &self.shared.origin
    }

    /// Lists every candidate for a job, its predicted time and why it would not be chosen. Runs and opens nothing.
    pub fn explain(&self, job: &Job) -> Explanation {
        let ranking = self.rank(job, 0);
        let tolerance = self.settings().tolerance;
        let shared = &*self.shared;
        let told = Told {
            costs: &shared.origin,
            backend: shared.threads.backend().isa().name(),
            missing: shared.device.missing(),
        };
        Explanation::new(job, &ranking, tolerance, &told)
    }

    /// Opens the device, unless it is open, and returns its name.
    ///
    /// # Errors
    /// [`DispatchError::Unavailable`], with the reason why there is none.
    pub fn open(&self) -> Result<String, DispatchError> {
        let shared = &*self.shared;
        let opened = shared.device.open(|opened| match opened {
            Ok(device) => {
                let device = device.identity();
                if let Some(of) = shared.costs_of.as_ref().filter(|of| **of != device) {
                    shared.forget_device(of, &device);
                }
                shared.tell(&Notice::Opened { device });
            }
            Err(reason) => {
                if !shared.told.swap(true, Ordering::Relaxed) {
                    let reason = reason.to_owned();
                    shared.tell(&Notice::NoDevice { reason });
                }
            }
        });
        let unavailable = |reason: &str| DispatchError::Unavailable {
            engine: Engine::Cuda,
            reason: reason.to_owned(),
        };
        opened.map_err(unavailable)?;
        let device = shared.device.lock();
        device.map_or_else(
            || Err(unavailable("closed")),
            |device| Ok(device.identity()),
        )
    }

    /// Calls `work` with the device itself, for example for data that stays there. Returns `None` unless the device is
    /// open ([`Dispatcher::open`]). Calls to the device wait meanwhile.
    pub fn with_device<T>(&self, work: impl FnOnce(&mut D) -> T) -> Option<T> {
        Some(work(&mut *self.shared.device.lock()?))
    }

    pub(super) fn rank(&self, job: &Job, failed: u8) -> Ranking {
        let given = ChoiceContext {
            settings: &self.shared.settings,
            costs: self.costs(),
            device: self.shared.device.state(),
            forced: self.forced,
            failed,
        };
        given.rank(job)
    }

    /// True if this is a handle of the given engine.
    pub(super) fn is_on(&self, engine: Engine) -> bool {
        self.forced == Some(engine)
    }

    pub(super) fn device_state(&self) -> State {
        self.shared.device.state()
    }

    pub(super) fn tell(&self, notice: &Notice) {
        self.shared.tell(notice);
    }
}

impl<D> DispatcherState<D> {
    pub(super) fn tell(&self, notice: &Notice) {
        if self.settings.verbose >= Verbose::Warnings {
            eprintln!("tercet: {notice}");
        }
        (self.listener)(notice);
    }

    /// Costs measured on another device do not apply to this one.
    fn forget_device(&self, of: &str, device: &str) {
        let mut costs = self.costs.clone();
        costs.remove(Engine::Cuda);
        costs.fill(Engine::Cuda, &Costs::builtin(1));
        if self.corrected.set(costs).is_ok() {
            let reason = format!(
                "measured with {of}, this is {device}: built-in costs apply to it until `tercet tune`"
            );
            self.tell(&Notice::Tuning { reason });
        }
    }
}
