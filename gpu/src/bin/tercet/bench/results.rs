//! The results of `tercet bench`, and their files.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tercet_host::file::output::Output;
use tercet_host::measure::{BackendPeak, Bandwidth, Machine, Measured};
use tercet_host::points::Destination;
use tercet_host::report::Bench;

use super::device::Described;
use super::tables;
use crate::failure::Failure;
use crate::format;

/// The report in JSON.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    pub(super) version: &'static str,
    pub(super) date: String,
    pub(super) machine: Machine,
    pub(super) quick: bool,
    pub(super) bandwidth: Vec<Bandwidth>,
    pub(super) peaks: Vec<BackendPeak>,
    pub(super) device: Option<Described>,
    pub(super) results: Vec<Measured>,
    /// Operations that the device had no room for, a line each.
    pub(super) left_out: Vec<String>,
    pub(super) files: Vec<PathBuf>,
    pub(super) seconds: f64,
}

/// The folder of the report.
#[derive(Debug)]
pub(super) struct Files {
    page: PathBuf,
    json: PathBuf,
    force: bool,
}

impl Files {
    /// Makes the folder. Before anything is measured, refuses files that could not be written.
    pub(super) fn prepare(folder: &Path, force: bool) -> Result<Self, Failure> {
        fs::create_dir_all(folder)
            .map_err(|error| Failure::io(folder, "make the folder", &error))?;
        let files = Self {
            page: folder.join("bench.html"),
            json: folder.join("bench.json"),
            force,
        };
        files.to(&files.page).check(&["html"])?;
        files.to(&files.json).check(&["json"])?;
        Ok(files)
    }

    fn to<'a>(&self, path: &'a Path) -> Destination<'a> {
        Destination {
            path,
            inputs: &[],
            overwrite: self.force,
        }
    }

    /// Writes both files and adds them to the results.
    pub(super) fn write(&self, results: &mut Results) -> Result<(), Failure> {
        results.files = vec![self.page.clone(), self.json.clone()];
        let page = results.page();
        page.page().write(self.to(&self.page))?;
        let json = serde_json::to_string_pretty(results)
            .map_err(|error| Failure::new(format_args!("cannot write JSON: {error}")))?;
        let mut output = Output::create(&self.json, [], self.force)?;
        output.write((json + "\n").as_bytes())?;
        output.finish()?;
        Ok(())
    }
}

impl Results {
    /// Returns the page with the pictures.
    fn page(&self) -> Bench<'_> {
        let fact = |name: &str, value: String| (name.to_owned(), value);
        let device = self.device.as_ref().map(tables::describe);
        let device = device.map(|words| fact("device", words));
        Bench {
            title: format!("tercet bench on {}", self.machine.processor),
            line: format!(
                "{}, {} threads, {} on {}, tercet {}",
                self.date,
                self.machine.threads,
                self.machine.system,
                self.machine.architecture,
                self.version
            ),
            facts: vec![
                fact("date", self.date.clone()),
                fact("machine", self.machine.describe()),
                fact("instruction sets", self.machine.backends.join(", ")),
                fact("measured", tables::counted(self)),
                fact("took", format!("{} s", format::significant(self.seconds))),
                fact(
                    "speed-up",
                    "over the scalar engine on one thread, best times".to_owned(),
                ),
                fact(
                    "roofline",
                    "the shortest time that this machine's bandwidth at the working set, or its multiply-adds, allow, \
                     divided by the best time; on a device, that of a copy there"
                        .to_owned(),
                ),
            ]
            .into_iter()
            .chain(device)
            .collect(),
            results: &self.results,
            bandwidths: &self.bandwidth,
            peaks: &self.peaks,
        }
    }
}
