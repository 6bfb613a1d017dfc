//! What a program, its environment and a profile may decide beside measurement.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tercet_host::simd::{Backend, BackendError, Isa};

use super::{Engine, Operation};

/// For what the dispatcher is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Every engine of the machine, by cost.
    #[default]
    Auto,
    /// The calling thread alone, whatever the size: the same engine on every run and every machine of a kind, and stack traces that
    /// end in the caller. No file of costs is read.
    Development,
    /// The processor's engines, by cost; no driver is ever looked for.
    Cpu,
    /// As with [`Settings::prefer_gpu`], the device opened at once rather than when it has paid.
    Gpu,
    /// What firmware runs: scalar code on the calling thread, scratch of at most [`Settings::edge_memory`] bytes. A call that needs more is
    /// refused, so that a desktop rehearses the microcontroller.
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

    /// The profile of a name; case does not matter.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|profile| profile.name().eq_ignore_ascii_case(name))
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Development => "development",
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Edge => "edge",
        }
    }

    /// The engine of the processor that takes files tile by tile ([`Job::is_tiled`](super::Job::is_tiled)): all threads, or under
    /// `development` and `edge` the only one they allow, whose work is all on the calling thread.
    pub const fn tiling(self) -> Engine {
        match self {
            Self::Auto | Self::Cpu | Self::Gpu => Engine::Threads,
            Self::Development => Engine::Simd,
            Self::Edge => Engine::Scalar,
        }
    }
}

/// What is to do the work, where it is not for the costs to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    /// Any engine.
    #[default]
    Any,
    /// The processor with this instruction set, on one thread or all.
    Set(Backend),
    /// The device; the processor only for what that cannot do.
    Cuda,
}

/// Where the costs of this machine are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TuningFile {
    /// In the user's cache directory: `tercet/tuning.json` in `XDG_CACHE_HOME`, else in `.cache` of the home directory, on Windows in
    /// `LOCALAPPDATA`.
    #[default]
    Default,
    /// Here.
    At(PathBuf),
    /// Nowhere: the built-in costs.
    Off,
}

/// What is told on stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbose {
    /// Nothing.
    #[default]
    Silent,
    /// Warnings: no device, work that another engine had to finish, a tuning file that is not used.
    Warnings,
    /// And each call's engine.
    Choices,
}

/// How a dispatcher chooses.
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
    /// For what it is used.
    pub profile: Profile,
    /// What is to do the work.
    pub wish: Wish,
    /// Has the device do what it is predicted to take up to twice the best time for: the processor is then free for other work.
    pub prefer_gpu: bool,
    /// Jobs of fewer elements, whose data lies with the host, never go to the device.
    pub min_size_for_gpu: u64,
    /// Engines that do an operation whatever it costs; others only where they fail.
    pub overrides: BTreeMap<Operation, Engine>,
    /// Engines within this part of the best time are as good, and [`Engine::ORDER`] decides.
    pub tolerance: f64,
    /// Where costs are kept.
    pub tuning: TuningFile,
    /// What is told on stderr.
    pub verbose: Verbose,
    /// Bytes of scratch that a call has under [`Profile::Edge`].
    pub edge_memory: usize,
}

impl Default for Settings {
    /// Every engine by cost, ties within a tenth, and nothing told; 16 KiB of scratch under [`Profile::Edge`].
    fn default() -> Self {
        Self {
            profile: Profile::Auto,
            wish: Wish::Any,
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

/// A variable of the environment that says nothing that can be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// `TERCET_BACKEND` names no engine.
    #[error(
        "TERCET_BACKEND: {name} names no engine; it may be auto, cuda or an instruction set: {}",
        sets()
    )]
    Backend {
        /// What it says.
        name: String,
    },
    /// `TERCET_BACKEND` names an instruction set that this machine lacks.
    #[error("TERCET_BACKEND: {0}")]
    Set(#[from] BackendError),
    /// `TERCET_PROFILE` names no profile.
    #[error("TERCET_PROFILE: {0} is no profile; there are auto, development, cpu, gpu and edge")]
    Profile(String),
    /// `TERCET_EDGE_MEMORY` is no number of bytes.
    #[error("TERCET_EDGE_MEMORY: {0} is no number of bytes")]
    EdgeMemory(String),
    /// `TERCET_VERBOSE` is no level.
    #[error("TERCET_VERBOSE: {0} is not 0 (nothing), 1 (warnings) or 2 (choices)")]
    Verbose(String),
}

/// The instruction sets of this machine.
fn sets() -> String {
    let names: Vec<_> = Backend::all().map(|backend| backend.isa().name()).collect();
    names.join(", ")
}

impl Settings {
    /// As [`Settings::default`], and what the environment says. An empty variable says nothing.
    ///
    /// | variable | says |
    /// |---|---|
    /// | `TERCET_BACKEND` | `auto`; `cuda`: the device, the processor for what that cannot do; an instruction set: the processor with that |
    /// | `TERCET_PROFILE` | a profile by its name: `auto`, `development`, `cpu`, `gpu`, `edge` |
    /// | `TERCET_EDGE_MEMORY` | [`Settings::edge_memory`], in bytes |
    /// | `TERCET_TUNING` | the file of costs, or `off`: the built-in ones |
    /// | `TERCET_VERBOSE` | `0`; `1`: warnings on stderr; `2`: each call's engine too |
    ///
    /// # Errors
    /// [`SettingsError`], which names the variable and what it may be.
    pub fn from_environment() -> Result<Self, SettingsError> {
        Self::from_variables(|name| env::var_os(name))
    }

    /// As [`Settings::from_environment`], but with this wish, whatever `TERCET_BACKEND` says.
    ///
    /// # Errors
    /// [`SettingsError`] for another variable.
    pub fn with_wish(wish: Wish) -> Result<Self, SettingsError> {
        let other = |name: &str| name != "TERCET_BACKEND";
        let settings = Self::from_variables(|name| env::var_os(name).filter(|_| other(name)))?;
        Ok(Self { wish, ..settings })
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, SettingsError> {
        let said = |name| variable(name).filter(|value| !value.is_empty());
        let mut settings = Self::default();
        if let Some(name) = said("TERCET_BACKEND") {
            settings.wish = Wish::named(&name.to_string_lossy())?;
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

    /// With an engine that does an operation whatever it costs.
    pub fn with_engine(mut self, operation: Operation, engine: Engine) -> Self {
        self.overrides.insert(operation, engine);
        self
    }

    /// The instruction set that the processor's engines use.
    pub(super) fn backend(&self) -> Backend {
        match self.wish {
            Wish::Set(backend) => backend,
            Wish::Any | Wish::Cuda => Backend::default(),
        }
    }
}

impl Wish {
    /// What a name asks for; case does not matter.
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
            ("auto", Wish::Any),
            ("CUDA", Wish::Cuda),
            ("scalar", Wish::Set(Backend::SCALAR)),
        ] {
            assert_eq!(read("TERCET_BACKEND", name).unwrap().wish, wish);
        }
        let error = read("TERCET_BACKEND", "sse9").unwrap_err().to_string();
        assert!(
            error.starts_with("TERCET_BACKEND: sse9 names no engine"),
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
            error.starts_with("TERCET_PROFILE: fast is no profile"),
            "{error}"
        );
        for profile in Profile::ALL {
            assert!(error.contains(profile.name()), "{error}");
        }
        let edge = read("TERCET_EDGE_MEMORY", "4096").unwrap();
        assert_eq!(edge.edge_memory, 4096);
        let error = read("TERCET_EDGE_MEMORY", "4k").unwrap_err().to_string();
        assert_eq!(error, "TERCET_EDGE_MEMORY: 4k is no number of bytes");
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
