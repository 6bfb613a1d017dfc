//! `--backend`, `--explain` and `--devices`: the engine that a command asks for.

use clap::builder::{PossibleValuesParser, StringValueParser, TypedValueParser};
use tercet_gpu::dispatch::{
    self, Builder, Device, DispatchError, Dispatcher, Notice, Preference, Profile, Settings,
    SettingsError, Verbose,
};
use tercet_host::simd::{Backend, Isa};

use super::{Chooser, CommandEngine};
use crate::failure::Failure;
use crate::profile::Profiled;

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
    watched(builder(settings).build())
}

fn watched<D: Device + 'static>(dispatcher: Dispatcher<D>) -> Dispatcher<D> {
    crate::bottlenecks::watch(&dispatcher);
    dispatcher
}

/// Returns the builder of a dispatcher whose notices are warnings on stderr.
fn builder(settings: Settings) -> Builder {
    let told = settings.verbose != Verbose::Silent;
    let warn = move |notice: &Notice| {
        // `info` reports a missing device; it is no failure here.
        let quiet = matches!(notice, Notice::NoDevice { .. } | Notice::Opened { .. });
        if !told && !quiet {
            eprintln!("{}", Failure::new(format_args!("warning: {notice}")));
        }
    };
    Builder::new(settings).listener(warn)
}

/// Several devices for one piece of work.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Several {
    /// Divide the work among the first N CUDA devices, or all of them, as with --backend cuda; results are the same.
    /// Each device gets at least 262,144 values, so small work stays on the first
    #[arg(long, value_name = "N|all", value_parser = count())]
    devices: Option<Count>,
}

/// A number of devices.
#[derive(Clone, Copy, Debug)]
enum Count {
    All,
    First(usize),
}

fn count() -> impl TypedValueParser<Value = Count> {
    StringValueParser::new().try_map(|text| match text.as_str() {
        "all" => Ok(Count::All),
        number => match number.parse() {
            Ok(count) if count > 0 => Ok(Count::First(count)),
            _ => Err("not a number of devices from 1 on, nor all"),
        },
    })
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
        Ok(self.engine(
            Chooser::One(dispatcher),
            matches!(self.backend, Choice::Cuda),
        ))
    }

    /// As [`Named::open`], but with several devices if that was requested.
    pub(crate) fn open_on(&self, several: Several) -> Result<CommandEngine, Failure> {
        match several.devices {
            None => self.open(),
            Some(count) => self.several(count),
        }
    }

    fn several(&self, count: Count) -> Result<CommandEngine, Failure> {
        if let Choice::Set(isa) = self.backend {
            return Err(Failure::usage(format_args!(
                "--devices and --backend {isa} exclude each other; leave out one of them"
            )));
        }
        let cuda = Self {
            backend: Choice::Cuda,
            ..*self
        };
        let fail = |reason| Failure::new(format_args!("--devices: {reason}"));
        let builder = builder(cuda.settings()?);
        let count = match count {
            Count::All => None,
            Count::First(count) => Some(count),
        };
        #[cfg(feature = "cuda")]
        {
            let dispatcher = watched(builder.devices(count).map_err(fail)?.build());
            dispatcher.open().map_err(|error| match error {
                DispatchError::Unavailable { reason, .. } => fail(reason),
                error => Failure::new(error),
            })?;
            let chooser = Chooser::Several(dispatcher.on(dispatch::Engine::Cuda));
            Ok(self.engine(chooser, true))
        }
        #[cfg(not(feature = "cuda"))]
        {
            let _ = (count, builder);
            Err(fail("this build has no CUDA"))
        }
    }

    fn engine(&self, chooser: Chooser, device: bool) -> CommandEngine {
        CommandEngine {
            chooser,
            explain: self.explain,
            device,
            name: Backend::default().to_string(),
        }
    }
}
