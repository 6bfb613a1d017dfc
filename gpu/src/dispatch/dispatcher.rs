//! The dispatcher: chooses, calls, counts, and goes on where an engine fails.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tercet_host::parallel::Threads;

use super::builder::{Builder, First};
use super::choose::{Given, Ranking, State};
use super::device::Slot;
use super::engine::Device;
use super::metrics::{Counters, Flights};
use super::notice::{DispatchError, Notice};
use super::settings::{Profile, Settings, SettingsError, Verbose};
use super::{Costs, Engine, Explanation, Job};

/// Hears what the dispatcher has to tell.
pub(super) type Listener = Box<dyn Fn(&Notice) + Send + Sync>;

/// Does each call on the engine that costs least for it.
///
/// All engines give the same bits, so a choice shows in time only. It may be used by many threads at once, and clones are handles of the
/// same one. A call decides in well under a microsecond; the device does one call at a time.
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
    pub(super) shared: Arc<Shared<D>>,
    pub(super) forced: Option<Engine>,
}

/// What all handles of a dispatcher have in common.
pub(super) struct Shared<D> {
    pub(super) settings: Settings,
    pub(super) costs: Costs,
    /// Where those are from, in words.
    pub(super) origin: String,
    /// The device that measured costs are of; none where they are of any.
    pub(super) costs_of: Option<String>,
    /// The costs without those of a device that turned out to be another.
    pub(super) corrected: OnceLock<Costs>,
    pub(super) measured: bool,
    pub(super) device: Slot<D>,
    pub(super) simd: Threads,
    pub(super) threads: Threads,
    pub(super) counters: Counters,
    pub(super) flights: Flights,
    pub(super) listener: Listener,
    /// Whether somebody was told that there is no device.
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
    /// What the machine has, as the environment asks: [`Settings::from_environment`].
    ///
    /// # Errors
    /// [`SettingsError`] for a variable that says nothing that can be done.
    pub fn auto() -> Result<Self, SettingsError> {
        Ok(Self::new(Settings::from_environment()?))
    }

    /// What the machine has, as `settings` ask. The first CUDA device is opened when that pays, see [`Builder`].
    pub fn new(settings: Settings) -> Self {
        Builder::new(settings).build()
    }
}

impl<D: Device> Dispatcher<D> {
    pub(super) fn of(shared: Shared<D>) -> Self {
        let dispatcher = Self {
            shared: Arc::new(shared),
            forced: None,
        };
        if dispatcher.settings().profile == Profile::Gpu {
            // What comes of it is told; the CPU does the work where there is none.
            let _ = dispatcher.open();
        }
        dispatcher
    }

    /// A handle whose calls are all done by one engine, whatever they cost.
    ///
    /// They end in [`DispatchError::Unavailable`] where it is not there and in [`DispatchError::Engine`] where it fails: no other engine
    /// takes over. Profiles do not matter to it, but for the scratch of [`Profile::Edge`].
    pub fn on(&self, engine: Engine) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            forced: Some(engine),
        }
    }

    /// How it chooses.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The costs that it goes by.
    pub fn costs(&self) -> &Costs {
        let shared = &*self.shared;
        shared.corrected.get().unwrap_or(&shared.costs)
    }

    /// Where its costs are from, in words.
    pub fn origin(&self) -> &str {
        &self.shared.origin
    }

    /// Every candidate for a job, what it would take and why it would not be chosen. Nothing is done or opened.
    pub fn explain(&self, job: &Job) -> Explanation {
        let ranking = self.rank(job, 0);
        let tolerance = self.settings().tolerance;
        Explanation::new(job, &ranking, tolerance, self.shared.origin.clone())
    }

    /// Opens the device, unless it is open, and says which it is.
    ///
    /// # Errors
    /// [`DispatchError::Unavailable`], with why there is none.
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

    /// Uses the device by itself, with data that stays there; none unless it is open ([`Dispatcher::open`]). Calls wait meanwhile.
    pub fn with_device<T>(&self, work: impl FnOnce(&mut D) -> T) -> Option<T> {
        Some(work(&mut *self.shared.device.lock()?))
    }

    pub(super) fn rank(&self, job: &Job, failed: u8) -> Ranking {
        let given = Given {
            settings: &self.shared.settings,
            costs: self.costs(),
            device: self.shared.device.state(),
            forced: self.forced,
            failed,
        };
        given.rank(job)
    }

    /// Whether it is a handle of this engine.
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

impl<D> Shared<D> {
    pub(super) fn tell(&self, notice: &Notice) {
        if self.settings.verbose >= Verbose::Warnings {
            eprintln!("tercet: {notice}");
        }
        (self.listener)(notice);
    }

    /// Costs that were measured on another device say nothing of this one.
    fn forget_device(&self, of: &str, device: &str) {
        let mut costs = self.costs.clone();
        costs.remove(Engine::Cuda);
        costs.fill(Engine::Cuda, &Costs::builtin(1));
        if self.corrected.set(costs).is_ok() {
            let reason = format!(
                "measured with {of}, this is {device}: built-in costs hold for it until `tercet tune`"
            );
            self.tell(&Notice::Tuning { reason });
        }
    }
}
