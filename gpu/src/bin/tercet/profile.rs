//! `--profile` and `--edge-memory`: the purpose that commands are run for.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tercet_gpu::dispatch::{Profile, Settings};

use crate::failure::Failure;

/// The purpose that a command is run for.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Profiled {
    /// Engines that may do the work: any engine; development: only the calling thread; cpu: no device; gpu: the device
    /// first; edge: as on a microcontroller, scalar code on one thread with little memory, or not at all [default:
    /// TERCET_PROFILE, else auto]
    #[arg(long, value_name = "NAME", value_parser = name())]
    profile: Option<Profile>,
    /// Bytes of memory that work may use under edge [default: TERCET_EDGE_MEMORY, else 16384]
    #[arg(long, value_name = "BYTES")]
    edge_memory: Option<usize>,
}

fn name() -> impl TypedValueParser<Value = Profile> {
    PossibleValuesParser::new(Profile::ALL.map(Profile::name))
        .map(|name| Profile::from_name(&name).unwrap_or_default())
}

impl Profiled {
    /// Returns the settings, with requested options in place of those of the environment.
    pub(crate) fn settings(self, mut settings: Settings) -> Result<Settings, Failure> {
        settings.profile = self.profile.unwrap_or(settings.profile);
        if let Some(bytes) = self.edge_memory {
            if settings.profile != Profile::Edge {
                return Err(Failure::usage(format_args!(
                    "--edge-memory needs --profile edge, but the profile is {}",
                    settings.profile.name()
                )));
            }
            settings.edge_memory = bytes;
        }
        Ok(settings)
    }
}
