//! The progress bar on stderr, shown only if that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tercet_host::Progress;

use crate::format::printable;

/// A bar for the bytes read, with the name of the current tensor. It disappears when dropped.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Returns a bar on stderr, invisible if stderr is no terminal.
    pub(crate) fn new() -> Self {
        // indicatif's own stderr target draws nothing unless it is a terminal.
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(
            "{bar:30} {bytes:>10} / {total_bytes}  {bytes_per_sec:>12}  {eta:>4}  {wide_msg}",
        );
        Self(match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        })
    }
}

impl Progress for Bar {
    fn start(&self, bytes: u64) {
        self.0.set_length(bytes);
    }

    fn tensor(&self, name: &str) {
        self.0.set_message(printable(name));
    }

    fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}

/// A bar for steps, with the name of the current one. It disappears when dropped.
///
/// It is drawn only between steps, so that it does not disturb their timing.
#[derive(Debug)]
pub(crate) struct Steps(ProgressBar);

impl Steps {
    /// Returns a bar of so many steps on stderr, invisible if stderr is no terminal.
    pub(crate) fn new(steps: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:30} {pos:>4} / {len}  {wide_msg}");
        Self(match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        })
    }

    /// Sets the number of finished steps.
    pub(crate) fn reach(&self, done: u64, name: &'static str) {
        self.0.set_position(done);
        self.0.set_message(name);
    }

    /// Begins the next step.
    pub(crate) fn next(&self, name: &str) {
        self.0.inc(1);
        self.0.set_message(printable(name));
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
