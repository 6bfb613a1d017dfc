//! `--trace FILE`: writes a timeline.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tercet_gpu::trace::Recorder;
use tercet_host::file::output::Output;

use crate::failure::Failure;

/// A trace to be written.
pub(crate) struct Trace {
    recorder: Recorder,
    path: PathBuf,
}

impl Trace {
    /// Starts recording. Refuses an existing file before any work.
    pub(crate) fn start(path: &Path) -> Result<Self, Failure> {
        if path.exists() {
            let path = path.display();
            return Err(Failure::new(format_args!(
                "{path}: exists already; a trace needs a new file, so name another"
            )));
        }
        let recorder = Recorder::start().map_err(Failure::new)?;
        Ok(Self {
            recorder,
            path: path.to_owned(),
        })
    }

    /// Writes the trace.
    pub(crate) fn write(self) -> Result<(), Failure> {
        let mut json = Vec::new();
        self.recorder.write(&mut json).map_err(Failure::new)?;
        let mut output = Output::create(&self.path, [], false)?;
        output.write(&json)?;
        output.finish()?;
        let (events, left_out) = self.recorder.events();
        let more = match left_out {
            0 => String::new(),
            more => format!(", {more} more did not fit"),
        };
        // Standard output belongs to the report.
        let path = self.path.display();
        let _ = writeln!(io::stderr(), "{path}: {events} events{more}");
        Ok(())
    }
}
