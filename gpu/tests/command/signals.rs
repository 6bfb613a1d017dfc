//! The signals of commands that tests interrupt.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::{SigHandler, SigSet, Signal, signal};

/// Has a command start with interrupts as a terminal's user gives them: a caller of the tests that ignores or blocks
/// them, as `nohup` and a shell's background jobs do, hands that down, and then nothing would be interrupted.
pub(crate) fn interruptible(command: &mut Command) -> &mut Command {
    let reset = || -> io::Result<()> {
        let signals = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
        for number in signals {
            // SAFETY: the default is no handler, so none runs amid other code.
            unsafe { signal(number, SigHandler::SigDfl) }?;
        }
        Ok(SigSet::from_iter(signals).thread_unblock()?)
    };
    // SAFETY: between fork and exec it calls `signal`, `sigemptyset`, `sigaddset` and `pthread_sigmask` alone, which
    // POSIX allows there.
    unsafe { command.pre_exec(reset) }
}
