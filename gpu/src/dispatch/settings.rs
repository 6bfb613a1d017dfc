//! Settings of a program, its environment and a profile, beside the measured costs.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tercet_host::simd::{Backend, BackendError, Isa};

use super::{Engine, Operation};

/// The purpose that the dispatcher is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// All engines of the machine, by cost.
    #[default]
    Auto,
    /// Only the calling thread, at any size: the same engine on every run and every machine of a kind, and stack traces
    /// that end in the caller. No file of costs is read.
    Development,
    /// The engines of the processor, by cost; the driver is never loaded.
    Cpu,
    /// As with [`Settings::prefer_gpu`], but the device is opened at once instead of when it has paid off.
    Gpu,
    /// The code that firmware runs: scalar code on the calling thread, with at most [`Settings::edge_memory`] bytes of
    /// scratch. A call that needs more is refused, so a desktop can simulate the microcontroller.
    Edge,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 5] = [
        Self::Auto,
        Self::Development,
        Self::Cpu,
        Self::Gpu,
        Self::Edge,
    ];

    /// Returns the profile of a name; case does not matter.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|profile| profile.name().eq_ignore_ascii_case(name))
    }

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Development => "development",
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Edge => "edge",
        }
    }

    /// Returns the engine of the processor that takes files tile by tile ([`Job::is_tiled`](super::Job::is_tiled)): all
    /// threads, or under `development` and `edge` the only engine they allow, which does all work on the calling
    /// thread.
    pub const fn tiling(self) -> Engine {
        match self {
            Self::Auto | Self::Cpu | Self::Gpu => Engine::Threads,
            Self::Development => Engine::Simd,
            Self::Edge => Engine::Scalar,
        }
    }
}

/// A requested engine, if the costs are not to decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preference {
    /// Any engine.
    #[default]
    Any,
    /// The processor with this instruction set, on one thread or all.
    Set(Backend),
    /// The device; the processor only for work that the device cannot do.
    Cuda,
}

/// Where the costs of this machine are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TuningFile {
    /// In the user's cache directory: `tercet/tuning.json` in `XDG_CACHE_HOME`, else in `.cache` of the home directory,
    /// or on Windows in `LOCALAPPDATA`.
    #[default]
    Default,
    /// In this file.
    At(PathBuf),
    /// No file: the built-in costs apply.
    Off,
}

/// Messages on stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbose {
    /// Nothing.
    #[default]
    Silent,
    /// Warnings: no device, work that another engine had to finish, an unused tuning file.
    Warnings,
    /// Warnings, and the engine of each call.
    Choices,
}

/// Settings by which a dispatcher chooses.
///
/// ```
/// use tercet_gpu::dispatch::{Dispatcher, Engine, Operation, Profile, Settings};
///
/// let settings = Settings {
///     profile: Profile::Cpu,
///     min_size_for_gpu: 1 << 20,
///     ..Settings::default()
/// };
/// let dispatcher = Dispatcher::new(settings.with_engine(Operation::Search, Engine::Threads));
/// # assert_eq!(dispatcher.settings().profile, Profile::Cpu);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The purpose.
    pub profile: Profile,
    /// The requested engine.
    pub wish: Preference,
    /// Uses the device if its predicted time is up to twice the best: this leaves the processor free for other work.
    pub prefer_gpu: bool,
    /// Jobs with fewer elements and their data on the host never go to the device.
    pub min_size_for_gpu: u64,
    /// Engines that do an operation whatever it costs; others do it only if these fail.
    pub overrides: BTreeMap<Operation, Engine>,
    /// Engines within this part of the best time count as equal, and [`Engine::ORDER`] decides.
    pub tolerance: f64,
    /// Where costs are stored.
    pub tuning: TuningFile,
    /// Messages on stderr.
    pub verbose: Verbose,
    /// Bytes of scratch available to a call under [`Profile::Edge`].
    pub edge_memory: usize,
}

impl Default for Settings {
    /// Every engine by cost, ties within a tenth, no messages, and 16 KiB of scratch under [`Profile::Edge`].
    fn default() -> Self {
        Self {
            profile: Profile::Auto,
            wish: Preference::Any,
            prefer_gpu: false,
            min_size_for_gpu: 0,
            overrides: BTreeMap::new(),
            tolerance: 0.1,
            tuning: TuningFile::Default,
            verbose: Verbose::Silent,
            edge_memory: 16 << 10,
        }
    }
}

/// An environment variable has an invalid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// `TERCET_BACKEND` is not the name of an engine.
    #[error(
        "TERCET_BACKEND: {name} is not an engine; choose auto, cuda or an instruction set: {}",
        sets()
    )]
    Backend {
        /// Its value.
        name: String,
    },
    /// `TERCET_BACKEND` names an instruction set that this machine lacks.
    #[error("TERCET_BACKEND: {0}")]
    Set(#[from] BackendError),
    /// `TERCET_PROFILE` is not the name of a profile.
    #[error("TERCET_PROFILE: {0} is not a profile; choose auto, development, cpu, gpu or edge")]
    Profile(String),
    /// `TERCET_EDGE_MEMORY` is not a number of bytes.
    #[error("TERCET_EDGE_MEMORY: {0} is not a number of bytes")]
    EdgeMemory(String),
    /// `TERCET_VERBOSE` is not a level.
    #[error("TERCET_VERBOSE: {0} is not 0 (nothing), 1 (warnings) or 2 (choices)")]
    Verbose(String),
}

/// Lists the instruction sets of this machine.
fn sets() -> String {
    let names: Vec<_> = Backend::all().map(|backend| backend.isa().name()).collect();
    names.join(", ")
}

impl Settings {
    /// Returns [`Settings::default`] with the changes that the environment makes. An empty variable counts as unset.
    ///
    /// | variable | value |
    /// |---|---|
    /// | `TERCET_BACKEND` | `auto`; `cuda`: the device, and the processor for work that the device cannot do; an instruction set: the processor with that |
    /// | `TERCET_PROFILE` | the name of a profile: `auto`, `development`, `cpu`, `gpu`, `edge` |
    /// | `TERCET_EDGE_MEMORY` | [`Settings::edge_memory`], in bytes |
    /// | `TERCET_TUNING` | the file of costs, or `off` for the built-in ones |
    /// | `TERCET_VERBOSE` | `0`; `1`: warnings on stderr; `2`: also the engine of each call |
    ///
    /// # Errors
    /// [`SettingsError`], which names the variable and its valid values.
    pub fn from_environment() -> Result<Self, SettingsError> {
        Self::from_variables(|name| env::var_os(name))
    }

    /// As [`Settings::from_environment`], but with this wish, whatever `TERCET_BACKEND` says.
    ///
    /// # Errors
    /// [`SettingsError`] for another variable.
    pub fn with_wish(wish: Preference) -> Result<Self, SettingsError> {
        let other = |name: &str| name != "TERCET_BACKEND";
        let settings = Self::from_variables(|name| env::var_os(name).filter(|_| other(name)))?;
        Ok(Self { wish, ..settings })
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, SettingsError> {
        let said = |name| variable(name).filter(|value| !value.is_empty());
        let mut settings = Self::default();
        if let Some(name) = said("TERCET_BACKEND") {
            settings.wish = Preference::named(&name.to_string_lossy())?;
        }
        if let Some(name) = said("TERCET_PROFILE") {
            let name = name.to_string_lossy();
            let profile = Profile::from_name(&name);
            settings.profile = profile.ok_or_else(|| SettingsError::Profile(name.into_owned()))?;
        }
        if let Some(bytes) = said("TERCET_EDGE_MEMORY") {
            let bytes = bytes.to_string_lossy();
            let number = bytes.parse().ok();
            settings.edge_memory =
                number.ok_or_else(|| SettingsError::EdgeMemory(bytes.into_owned()))?;
        }
        if let Some(path) = said("TERCET_TUNING") {
            settings.tuning = match path.to_str() {
                Some("off") => TuningFile::Off,
                _ => TuningFile::At(path.into()),
            };
        }
        if let Some(level) = said("TERCET_VERBOSE") {
            settings.verbose = match level.to_str() {
                Some("0") => Verbose::Silent,
                Some("1") => Verbose::Warnings,
                Some("2") => Verbose::Choices,
                _ => return Err(SettingsError::Verbose(level.to_string_lossy().into_owned())),
            };
        }
        Ok(settings)
    }

    /// Returns these settings with an engine that does an operation whatever it costs.
    pub fn with_engine(mut self, operation: Operation, engine: Engine) -> Self {
        self.overrides.insert(operation, engine);
        self
    }

    /// Returns the instruction set that the engines of the processor use.
    pub(super) fn backend(&self) -> Backend {
        match self.wish {
            Preference::Set(backend) => backend,
            Preference::Any | Preference::Cuda => Backend::default(),
        }
    }
}

impl Preference {
    /// Returns the wish of a name; case does not matter.
    ///
    /// # Errors
    /// [`SettingsError::Backend`], [`SettingsError::Set`].
    pub fn named(name: &str) -> Result<Self, SettingsError> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("auto") {
            Ok(Self::Any)
        } else if is("cuda") {
            Ok(Self::Cuda)
        } else if let Some(isa) = Isa::from_name(name) {
            Ok(Self::Set(Backend::new(isa)?))
        } else {
            let name = name.to_owned();
            Err(SettingsError::Backend { name })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Result<Settings, SettingsError> {
        Settings::from_variables(|asked| (asked == name).then(|| value.into()))
    }

    #[test]
    fn variables_say_what_they_may_or_are_errors() {
        assert_eq!(Settings::from_variables(|_| None), Ok(Settings::default()));
        assert_eq!(
            Settings::from_variables(|_| Some("".into())),
            Ok(Settings::default())
        );
        for (name, wish) in [
            ("auto", Preference::Any),
            ("CUDA", Preference::Cuda),
            ("scalar", Preference::Set(Backend::SCALAR)),
        ] {
            assert_eq!(read("TERCET_BACKEND", name).unwrap().wish, wish);
        }
        let error = read("TERCET_BACKEND", "sse9").unwrap_err().to_string();
        assert!(
            error.starts_with("TERCET_BACKEND: sse9 is not an engine"),
            "{error}"
        );
        assert!(error.ends_with(Backend::best().isa().name()), "{error}");
        for isa in Isa::ALL.into_iter().filter(|isa| !isa.is_available()) {
            let error = read("TERCET_BACKEND", isa.name()).unwrap_err().to_string();
            assert!(error.contains("does not run on this machine"), "{error}");
        }
        for profile in Profile::ALL {
            let found = read("TERCET_PROFILE", profile.name()).unwrap();
            assert_eq!(found.profile, profile);
        }
        assert_eq!(
            read("TERCET_PROFILE", "Edge").unwrap().profile,
            Profile::Edge
        );
        let error = read("TERCET_PROFILE", "fast").unwrap_err().to_string();
        assert!(
            error.starts_with("TERCET_PROFILE: fast is not a profile"),
            "{error}"
        );
        for profile in Profile::ALL {
            assert!(error.contains(profile.name()), "{error}");
        }
        let edge = read("TERCET_EDGE_MEMORY", "4096").unwrap();
        assert_eq!(edge.edge_memory, 4096);
        let error = read("TERCET_EDGE_MEMORY", "4k").unwrap_err().to_string();
        assert_eq!(error, "TERCET_EDGE_MEMORY: 4k is not a number of bytes");
        assert_eq!(
            read("TERCET_TUNING", "off").unwrap().tuning,
            TuningFile::Off
        );
        let at = read("TERCET_TUNING", "/a/b.json").unwrap().tuning;
        assert_eq!(at, TuningFile::At("/a/b.json".into()));
        assert_eq!(
            read("TERCET_VERBOSE", "2").unwrap().verbose,
            Verbose::Choices
        );
        let error = read("TERCET_VERBOSE", "yes").unwrap_err().to_string();
        assert!(error.starts_with("TERCET_VERBOSE: yes is not 0"), "{error}");
    }
}
