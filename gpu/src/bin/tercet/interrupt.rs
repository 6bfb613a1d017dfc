//! Ctrl-C and its kin: nothing half-written stays behind.

use std::io::{self, IsTerminal, Write};
use std::process;
use std::sync::atomic::{AtomicU8, Ordering};

use tercet_host::file::abandon;

use crate::failure::Failure;
use crate::verify;

/// What a shell reports of a program that Ctrl-C ended: 128 and the signal's number.
const STATUS: i32 = 130;

/// Whether an interrupt ends the process, is to end an answer alone, or has been asked to.
static PATIENCE: AtomicU8 = AtomicU8::new(ENDS);
const ENDS: u8 = 0;
const ANSWERS: u8 = 1;
const ASKED: u8 = 2;

/// While it lives, the first interrupt does nothing but to be told by [`Answering::is_over`]; the next ends the process.
#[derive(Debug)]
pub(crate) struct Answering(());

impl Answering {
    pub(crate) fn begin() -> Self {
        PATIENCE.store(ANSWERS, Ordering::Relaxed);
        Self(())
    }

    /// Whether an interrupt came.
    pub(crate) fn is_over(&self) -> bool {
        PATIENCE.load(Ordering::Relaxed) == ASKED
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        PATIENCE.store(ENDS, Ordering::Relaxed);
    }
}

/// From here on, an interrupt (Ctrl-C, SIGINT), SIGTERM and SIGHUP end the process at once, its temporary files removed and the emulators ended
/// that it runs.
///
/// A process that was started with one of them ignored, as `nohup` does, keeps all three as it found them.
pub(crate) fn handle() -> Result<(), Failure> {
    let stop = || {
        let asked = PATIENCE.compare_exchange(ANSWERS, ASKED, Ordering::Relaxed, Ordering::Relaxed);
        if asked.is_ok() {
            return;
        }
        abandon();
        verify::abandon();
        let mut stderr = io::stderr();
        // A terminal shows a progress bar and what the key echoes.
        let line = if stderr.is_terminal() { "\n" } else { "" };
        // Where nobody reads it, there is nobody to tell.
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
