//! Ctrl-C and its kin: nothing half-written stays behind.

use std::io::{self, IsTerminal, Write};
use std::process;

use tercet_host::file::abandon;

use crate::failure::Failure;
use crate::verify;

/// What a shell reports of a program that Ctrl-C ended: 128 and the signal's number.
const STATUS: i32 = 130;

/// From here on, an interrupt (Ctrl-C, SIGINT), SIGTERM and SIGHUP end the process at once, its temporary files removed and the emulators ended
/// that it runs.
///
/// A process that was started with one of them ignored, as `nohup` does, keeps all three as it found them.
pub(crate) fn handle() -> Result<(), Failure> {
    let stop = || {
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
