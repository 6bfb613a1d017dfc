//! `--metrics FILE`: writes the counters.

use std::path::{Path, PathBuf};

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tercet_gpu::observe::{LATENCIES, SIZES};
use tercet_host::file::output::Output;
use tercet_host::simd::taken;

use crate::failure::Failure;

/// Figures to be written.
pub(crate) struct Metrics {
    recorded: PrometheusHandle,
    path: PathBuf,
}

impl Metrics {
    /// Starts counting. Refuses an existing file before any work.
    pub(crate) fn start(path: &Path) -> Result<Self, Failure> {
        if path.extension().is_some_and(|it| it == "json") {
            let path = path.display();
            return Err(Failure::usage(format_args!(
                "{path}: metrics are Prometheus text, not JSON; name a file such as metrics.prom"
            )));
        }
        if path.exists() {
            let path = path.display();
            return Err(Failure::new(format_args!(
                "{path}: exists already; metrics need a new file, so name another"
            )));
        }
        Ok(Self {
            recorded: install().map_err(Failure::new)?,
            path: path.to_owned(),
        })
    }

    /// Writes the figures as Prometheus text.
    pub(crate) fn write(self) -> Result<(), Failure> {
        // The instruction sets whose kernels worked, if the build counts them.
        ::metrics::describe_counter!(
            "tercet_kernels_total",
            "Kernels that threads ran, by instruction set"
        );
        for taken in taken() {
            for (thread, count) in [("main", taken.by_main), ("other", taken.by_others)] {
                if count > 0 {
                    let labels = [("set", taken.isa.name()), ("thread", thread)];
                    ::metrics::counter!("tercet_kernels_total", &labels).increment(count);
                }
            }
        }
        let mut output = Output::create(&self.path, [], false)?;
        output.write(in_order(&self.recorded.render()).as_bytes())?;
        output.finish()?;
        Ok(())
    }
}

/// Puts families in the order of their names: the recorder has them in another order in each process, and two files
/// could not be compared.
fn in_order(text: &str) -> String {
    let mut families: Vec<&str> = text.split_inclusive("\n\n").collect();
    families.sort_unstable();
    families.concat()
}

/// Records all figures of this process from now on, in the buckets of the dashboard.
fn install() -> Result<PrometheusHandle, BuildError> {
    PrometheusBuilder::new()
        .set_buckets(&SIZES)?
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &LATENCIES)?
        .install_recorder()
}
