//! `--bottlenecks`: what the time goes to, while a command works and when it has.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tercet_gpu::dispatch::{Bottlenecks, Dispatcher, Monitor};

use crate::failure::Failure;

/// How often a terminal is told.
const EACH: Duration = Duration::from_secs(1);

/// How reports are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// Lines for people.
    Text,
    /// An object of JSON, on one line.
    Json,
}

/// What is watched; nothing is unless somebody asked for it before any dispatcher was made.
static WATCHED: OnceLock<Mutex<Vec<Watched>>> = OnceLock::new();

struct Watched {
    /// What is told live: since the last time.
    live: Monitor,
    /// What is told at the end: since the beginning.
    whole: Monitor,
}

fn lock(watched: &Mutex<Vec<Watched>>) -> MutexGuard<'_, Vec<Watched>> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has a dispatcher's time told, where that was asked for.
pub(crate) fn watch(dispatcher: &Dispatcher) {
    if let Some(watched) = WATCHED.get() {
        lock(watched).push(Watched {
            live: dispatcher.monitor(),
            whole: dispatcher.monitor(),
        });
    }
}

/// Reports that are being told.
pub(crate) struct Reports {
    form: Form,
    /// Ends the thread when it is dropped, and the thread; none where nobody looks on.
    live: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Reports {
    /// From now on: each second where stderr is a terminal.
    pub(crate) fn start(form: Form) -> Result<Self, Failure> {
        let watched = WATCHED.get_or_init(Mutex::default);
        if !io::stderr().is_terminal() {
            return Ok(Self { form, live: None });
        }
        let (stop, stopped) = mpsc::channel();
        let live = move || {
            while stopped.recv_timeout(EACH) == Err(RecvTimeoutError::Timeout) {
                for it in lock(watched).iter_mut() {
                    // A progress bar stands on the line, and draws itself anew.
                    let _ = write!(io::stderr(), "\r\x1b[2K");
                    tell(form, &it.live.report());
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

    /// Tells of the whole.
    pub(crate) fn finish(self) {
        if let Some((stop, thread)) = self.live {
            drop(stop);
            // It does nothing that could panic; its lines are no result.
            let _ = thread.join();
        }
        let Some(watched) = WATCHED.get() else { return };
        let mut watched = lock(watched);
        if watched.is_empty() {
            let _ = writeln!(
                io::stderr(),
                "bottlenecks: nothing that this command did chooses its engine"
            );
        }
        for it in watched.iter_mut() {
            tell(self.form, &it.whole.report());
        }
    }
}

/// Standard output is the command's report's; where nobody reads stderr, there is nobody to tell.
fn tell(form: Form, report: &Bottlenecks) {
    let text = match form {
        Form::Text => format!("bottlenecks {report}"),
        Form::Json => report.to_json(),
    };
    let _ = writeln!(io::stderr(), "{text}");
}
