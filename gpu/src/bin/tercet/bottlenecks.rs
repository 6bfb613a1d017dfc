//! `--bottlenecks`: reports where the time goes, while a command works and at its end.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tercet_gpu::dispatch::{Bottlenecks, Device, Dispatcher};

use crate::failure::Failure;

/// Interval of reports on a terminal.
const EACH: Duration = Duration::from_secs(1);

/// The form of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// Lines for people.
    Text,
    /// A JSON object, on one line.
    Json,
}

/// The monitored dispatchers; empty unless reports were requested before any dispatcher was made.
static WATCHED: OnceLock<Mutex<Vec<Watched>>> = OnceLock::new();

/// Final reports on work that no dispatcher chooses engines for, in both forms.
static OTHERS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

struct Watched {
    /// For live reports: since the last one.
    live: Report,
    /// For the final report: since the beginning.
    whole: Report,
}

/// Reports on a dispatcher of any device.
type Report = Box<dyn FnMut() -> Bottlenecks + Send>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if reports were requested.
pub(crate) fn are_requested() -> bool {
    WATCHED.get().is_some()
}

/// Adds a final report on other work: its lines for people, without the first word, and its JSON object on one line.
pub(crate) fn add(text: String, json: String) {
    lock(&OTHERS).push((text, json));
}

/// Monitors a dispatcher, if reports were requested.
pub(crate) fn watch<D: Device + 'static>(dispatcher: &Dispatcher<D>) {
    if let Some(watched) = WATCHED.get() {
        let monitor = || -> Report {
            let mut monitor = dispatcher.monitor();
            Box::new(move || monitor.report())
        };
        lock(watched).push(Watched {
            live: monitor(),
            whole: monitor(),
        });
    }
}

/// Running reports.
pub(crate) struct Reports {
    form: Form,
    /// Ends the thread when it is dropped, and the thread; `None` without live reports.
    live: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Reports {
    /// Starts the reports: each second if stderr is a terminal.
    pub(crate) fn start(form: Form) -> Result<Self, Failure> {
        let watched = WATCHED.get_or_init(Mutex::default);
        if !io::stderr().is_terminal() {
            return Ok(Self { form, live: None });
        }
        let (stop, stopped) = mpsc::channel();
        let live = move || {
            while stopped.recv_timeout(EACH) == Err(RecvTimeoutError::Timeout) {
                for it in lock(watched).iter_mut() {
                    // A progress bar may be on the line; it redraws itself.
                    let _ = write!(io::stderr(), "\r\x1b[2K");
                    tell(form, &both(&(it.live)()));
                }
            }
        };
        let thread = thread::Builder::new()
            .name("bottlenecks".to_owned())
            .spawn(live)
            .map_err(|error| Failure::new(format_args!("cannot start a thread: {error}")))?;
        Ok(Self {
            form,
            live: Some((stop, thread)),
        })
    }

    /// Writes the final report.
    pub(crate) fn finish(self) {
        if let Some((stop, thread)) = self.live {
            drop(stop);
            // The thread does nothing that could panic, and its lines are no result.
            let _ = thread.join();
        }
        let Some(watched) = WATCHED.get() else { return };
        let (mut watched, others) = (lock(watched), lock(&OTHERS));
        if watched.is_empty() && others.is_empty() {
            let _ = writeln!(
                io::stderr(),
                "bottlenecks: this command did no work for which an engine is chosen"
            );
        }
        for it in watched.iter_mut() {
            tell(self.form, &both(&(it.whole)()));
        }
        others.iter().for_each(|report| tell(self.form, report));
    }
}

/// Returns the lines and the JSON of a report.
fn both(report: &Bottlenecks) -> (String, String) {
    (report.to_string(), report.to_json())
}

/// Standard output belongs to the command's own report. If nobody reads stderr, errors are ignored.
fn tell(form: Form, (text, json): &(String, String)) {
    let _ = match form {
        Form::Text => writeln!(io::stderr(), "bottlenecks {text}"),
        Form::Json => writeln!(io::stderr(), "{json}"),
    };
}
