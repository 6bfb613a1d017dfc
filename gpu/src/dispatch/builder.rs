//! Builds a dispatcher.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use tercet_host::parallel::Threads;
use tercet_host::simd::Backend;

use super::device::{Absent, Opener, Slot};
use super::dispatcher::{Dispatcher, DispatcherState, Listener};
use super::engine::Device;
use super::metrics::{Counters, Flights};
use super::notice::Notice;
use super::settings::{Preference, Profile, Settings};
use super::tune::{self, Tuning};
use super::{Costs, Engine, Operation};
#[cfg(feature = "cuda")]
use crate::engine::{CudaOptions, Cudas, device_count};

/// The default device type of a dispatcher: the first CUDA device.
#[cfg(feature = "cuda")]
pub type First = crate::engine::Cuda;

/// Placeholder for a device if the build has no CUDA; it is never opened.
#[cfg(not(feature = "cuda"))]
pub type First = tercet_core::scalar::Scalar;

/// Makes a [`Dispatcher`].
///
/// The device is opened by [`Dispatcher::open`], at once under [`Profile::Gpu`], by the first call that must run on it
/// whatever it costs, or once the calls so far would have saved on it the time that opening takes, a third of a second.
///
/// ```
/// use tercet_core::scalar::Scalar;
/// use tercet_gpu::dispatch::{Builder, Notice, Profile, Settings};
///
/// let settings = Settings { profile: Profile::Gpu, ..Settings::default() };
/// let dispatcher = Builder::new(settings)
///     .device(|| Err::<tercet_gpu::dispatch::First, _>("none in this example".into()))
///     .listener(|notice| assert!(matches!(notice, Notice::NoDevice { .. } | Notice::Tuning { .. })))
///     .build();
/// assert!(dispatcher.open().is_err());
/// ```
pub struct Builder<D: Device = First> {
    settings: Settings,
    opener: Opener<D>,
    absent: Absent,
    costs: Option<Costs>,
    /// Number of devices that work as one.
    devices: usize,
    listener: Listener,
}

impl Builder {
    /// Begins with the first CUDA device, the costs of the tuning file or the built-in ones, and no listener.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            opener: Box::new(first),
            absent,
            costs: None,
            devices: 1,
            listener: Box::new(|_| ()),
        }
    }
}

/// Least number of values per device: flows over files give an engine 2²⁰ at once, which four devices share.
#[cfg(feature = "cuda")]
const LEAST: usize = 1 << 18;

#[cfg(feature = "cuda")]
fn first() -> Result<First, String> {
    First::first().map_err(|error| error.to_string())
}

/// A driver that is not installed is no device that could be opened.
#[cfg(feature = "cuda")]
fn absent() -> Option<String> {
    crate::engine::missing_driver().map(|error| error.to_string())
}

#[cfg(not(feature = "cuda"))]
fn absent() -> Option<String> {
    first().err()
}

#[cfg(not(feature = "cuda"))]
fn first() -> Result<First, String> {
    Err("this build has no CUDA".to_owned())
}

#[cfg(feature = "cuda")]
impl Builder {
    /// Uses several CUDA devices as one: the first `count` of them, or all.
    ///
    /// # Errors
    /// The reason in one line if there is no device, or fewer than `count`.
    pub fn devices(self, count: Option<usize>) -> Result<Builder<Cudas>, String> {
        let found = device_count().map_err(|error| error.to_string())?;
        let count = count.unwrap_or(found);
        if count == 0 || count > found {
            let devices = if found == 1 { "device" } else { "devices" };
            return Err(format!(
                "this machine has {found} CUDA {devices}, not {count}"
            ));
        }
        let options = (0..count).map(|device| CudaOptions {
            device,
            ..CudaOptions::default()
        });
        let options: Vec<_> = options.collect();
        let open = move || match Cudas::new(&options) {
            Ok(cudas) => Ok(cudas.with_least(LEAST)),
            Err(error) => Err(error.to_string()),
        };
        let mut builder = self.device(open);
        builder.devices = count;
        Ok(builder)
    }
}

impl<D: Device> Builder<D> {
    /// Uses another device, which `open` opens. If it cannot, its error is the reason in one line.
    pub fn device<N: Device>(
        self,
        opener: impl Fn() -> Result<N, String> + Send + Sync + 'static,
    ) -> Builder<N> {
        Builder {
            settings: self.settings,
            opener: Box::new(opener),
            absent: || None,
            costs: self.costs,
            devices: self.devices,
            listener: self.listener,
        }
    }

    /// Uses these costs, and no tuning file.
    pub fn costs(mut self, costs: Costs) -> Self {
        self.costs = Some(costs);
        self
    }

    /// Calls `listener` with each notice, from any thread.
    pub fn listener(mut self, listener: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        self.listener = Box::new(listener);
        self
    }

    /// Returns the dispatcher. Reads the tuning file, unless costs were given or the profile leaves no choice.
    pub fn build(self) -> Dispatcher<D> {
        let Self {
            settings,
            opener,
            absent,
            costs,
            devices,
            listener,
        } = self;
        let fixed = matches!(settings.profile, Profile::Development | Profile::Edge);
        let mut notice = None;
        let tuning = match costs {
            Some(costs) => KnownCosts {
                costs,
                source: Source::Program,
                origin: "costs given by the program".to_owned(),
                of: None,
            },
            // One thread, also so that these profiles do not start the thread pool.
            None if fixed => KnownCosts::builtin(1),
            None => KnownCosts::here(&settings, &mut notice),
        };
        let backend = settings.backend();
        let (best, tuning) = tuning.for_backend(&settings);
        let tuning = tuning.for_devices(devices);
        let dispatcher = Dispatcher::of(DispatcherState {
            simd: Threads::alone().with_backend(backend),
            threads: Threads::default().with_backend(backend),
            settings,
            costs: tuning.costs,
            origin: tuning.origin,
            costs_of: tuning.of,
            corrected: OnceLock::new(),
            best,
            source: tuning.source,
            device: Slot::new(opener, absent),
            counters: Counters::new(),
            flights: Flights::default(),
            listener,
            told: AtomicBool::new(false),
        });
        if let Some(notice) = notice {
            dispatcher.tell(&notice);
        }
        dispatcher
    }
}

/// Where costs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Rough figures of other machines.
    Builtin,
    /// The program.
    Program,
    /// A tuning file of this machine.
    Measured,
}

/// Costs, and their source.
struct KnownCosts {
    costs: Costs,
    source: Source,
    /// The source in words.
    origin: String,
    /// The device that they were measured with.
    of: Option<String>,
}

impl KnownCosts {
    fn builtin(threads: usize) -> Self {
        Self {
            costs: Costs::builtin(threads),
            source: Source::Builtin,
            origin: "built-in costs".to_owned(),
            of: None,
        }
    }

    /// Returns the costs of the requested instruction set. If it is not this machine's best, whose costs these are, the
    /// first element has the costs of the best.
    fn for_backend(self, settings: &Settings) -> (Option<Costs>, Self) {
        let (backend, best) = (settings.backend(), Backend::best());
        let asked = matches!(settings.wish, Preference::Set(_));
        if !asked || backend == best || self.source == Source::Program {
            return (None, self);
        }
        let set = backend.isa().name();
        let origin = match self.source {
            Source::Measured if backend == Backend::SCALAR => {
                format!("{}, those of threads from scalar's", self.origin)
            }
            Source::Measured => format!("{}, but none of {set}: built-in ones", self.origin),
            _ => self.origin,
        };
        let costs = self
            .costs
            .with_backend(backend, rayon::current_num_threads());
        let known = Self {
            costs,
            origin,
            ..self
        };
        (Some(self.costs), known)
    }

    /// Returns the costs of so many devices that share the work, from those of one.
    fn for_devices(mut self, devices: usize) -> Self {
        if devices > 1 {
            for operation in Operation::ALL {
                if let Some(one) = self.costs.get(operation, Engine::Cuda) {
                    let shared = one.shared(one.launch, devices);
                    self.costs.set(operation, Engine::Cuda, shared);
                }
            }
            self.origin = format!("{}, those of one device shared by {devices}", self.origin);
        }
        self
    }

    /// Returns the costs measured on this machine, or the built-in ones.
    fn here(settings: &Settings, notice: &mut Option<Notice>) -> Self {
        let threads = rayon::current_num_threads();
        let Some(path) = tune::path(&settings.tuning) else {
            return Self::builtin(threads);
        };
        match Tuning::read(&path) {
            Ok(Some(Tuning {
                mut costs,
                made,
                device,
                ..
            })) => {
                let builtin = Costs::builtin(threads);
                for engine in Engine::ALL {
                    costs.fill(engine, &builtin);
                }
                Self {
                    costs,
                    source: Source::Measured,
                    origin: format!("costs measured here on {made}"),
                    of: device,
                }
            }
            Ok(None) => Self::builtin(threads),
            Err(error) => {
                let reason = format!("{error}; built-in costs apply");
                *notice = Some(Notice::Tuning { reason });
                Self::builtin(threads)
            }
        }
    }
}
