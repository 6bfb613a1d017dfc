//! Handles Ctrl-C and similar signals: no half-written file remains.

use std::io::{self, IsTerminal, Write};
use std::process;
use std::sync::atomic::{AtomicU8, Ordering};

use tercet_host::file::abandon;

use crate::failure::Failure;
use crate::verify;

/// The shell's status of a program that Ctrl-C ended: 128 and the signal's number.
const STATUS: i32 = 130;

/// The effect of an interrupt: it ends the process, it ends only an answer, or it has already been asked to do that.
static PATIENCE: AtomicU8 = AtomicU8::new(ENDS);
const ENDS: u8 = 0;
const ANSWERS: u8 = 1;
const ASKED: u8 = 2;

/// While it lives, the first interrupt only makes [`Answering::is_over`] true; the next one ends the process.
#[derive(Debug)]
pub(crate) struct Answering(());

impl Answering {
    pub(crate) fn begin() -> Self {
        PATIENCE.store(ANSWERS, Ordering::Relaxed);
        Self(())
    }

    /// True if there was an interrupt.
    pub(crate) fn is_over(&self) -> bool {
        PATIENCE.load(Ordering::Relaxed) == ASKED
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        PATIENCE.store(ENDS, Ordering::Relaxed);
    }
}

/// From here on, an interrupt (Ctrl-C, SIGINT), SIGTERM and SIGHUP end the process at once, remove its temporary files
/// and end its emulators.
///
/// If the process was started with one of them ignored, as `nohup` does, all three stay as they were.
pub(crate) fn handle() -> Result<(), Failure> {
    let stop = || {
        let asked = PATIENCE.compare_exchange(ANSWERS, ASKED, Ordering::Relaxed, Ordering::Relaxed);
        if asked.is_ok() {
            return;
        }
        abandon();
        verify::abandon();
        let mut stderr = io::stderr();
        // A terminal shows a progress bar and the key's echo.
        let line = if stderr.is_terminal() { "\n" } else { "" };
        // If nobody reads it, ignore the error.
        let _ = writeln!(
            stderr,
            "{line}error: interrupted; nothing half-written is left"
        );
        process::exit(STATUS)
    };
    match ctrlc::try_set_handler(stop) {
        Ok(()) | Err(ctrlc::Error::MultipleHandlers) => Ok(()),
        Err(error) => Err(Failure::new(format_args!(
            "cannot handle interrupts: {error}"
        ))),
    }
}
