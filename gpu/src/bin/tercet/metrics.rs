//! `--metrics FILE`: writes the counters.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tercet_gpu::observe::Registry;
use tercet_host::file::output::Output;
use tercet_host::simd::taken;

use crate::failure::Failure;

/// Figures to be written.
pub(crate) struct Metrics {
    registry: Registry,
    path: PathBuf,
}

impl Metrics {
    /// Starts counting. Refuses an existing file before any work.
    pub(crate) fn start(path: &Path) -> Result<Self, Failure> {
        if path.exists() {
            let path = path.display();
            return Err(Failure::new(format_args!(
                "{path}: exists already; metrics need a new file, so name another"
            )));
        }
        Ok(Self {
            registry: Registry::install().map_err(Failure::new)?,
            path: path.to_owned(),
        })
    }

    /// Writes the figures: as JSON if the file's name says so, else as Prometheus text.
    pub(crate) fn write(self) -> Result<(), Failure> {
        // The instruction sets whose kernels worked, if the build counts them.
        for taken in taken() {
            for (thread, count) in [("main", taken.by_main), ("other", taken.by_others)] {
                if count > 0 {
                    let labels = [("set", taken.isa.name()), ("thread", thread)];
                    ::metrics::counter!("tercet_kernels_total", &labels).increment(count);
                }
            }
        }
        let json = self.path.extension().and_then(OsStr::to_str) == Some("json");
        let text = if json {
            self.registry.to_json() + "\n"
        } else {
            self.registry.to_prometheus()
        };
        let mut output = Output::create(&self.path, [], false)?;
        output.write(text.as_bytes())?;
        output.finish()?;
        Ok(())
    }
}
