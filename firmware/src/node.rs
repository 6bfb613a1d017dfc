//! A board that runs the application on its own.
//!
//! It learns and measures for a time, then watches. A button ends a phase early; while watching, it starts measuring
//! again. An error is an event, and the step is tried again, so an error loses nothing.

use embedded_hal::delay::DelayNs;
use embedded_hal::digital::OutputPin;
use embedded_hal::i2c::I2c;
use tercet_core::gguf::Aligned;

use crate::motion::{App, Error, Phase, Report};

static FILE: Aligned<[u8; include_bytes!("../data/motion.gguf").len()]> =
    Aligned(*include_bytes!("../data/motion.gguf"));

/// The network that classifies the activities, a GGUF file.
pub static NETWORK: &[u8] = &FILE.0;

/// Windows of [`Phase::Learn`]: a minute and a half.
pub const LEARN: u32 = 90;

/// Windows of [`Phase::Measure`]: half a minute.
pub const MEASURE: u32 = 30;

/// Milliseconds between an error and the next try.
#[cfg(feature = "defmt")]
const RETRY_MS: u32 = 500;

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Event {
    /// A window is over.
    Window(Report),
    /// This phase begins.
    Begin(Phase),
    /// The step failed; the next step tries it again.
    Failed(Error),
}

/// Progress of a phase.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Windows since the phase began.
    windows: u32,
    /// True if the button was down in the last step.
    down: bool,
}

impl Node {
    /// Does one step of the application, or changes to its next phase.
    ///
    /// `down`: true if the button is down. Only the moment it goes down counts, and only after the phase has seen a
    /// window.
    pub fn step<I: I2c, P: OutputPin, D: DelayNs>(
        &mut self,
        app: &mut App<'_, I, P, D>,
        down: bool,
    ) -> Option<Event> {
        let pushed = down && !self.down && self.windows > 0;
        self.down = down;
        let over = match app.phase() {
            Phase::Learn => self.windows >= LEARN,
            Phase::Measure => self.windows >= MEASURE,
            Phase::Watch => false,
        };
        if pushed || over {
            return Some(self.turn(app));
        }
        match app.step() {
            Ok(None) => None,
            Ok(Some(report)) => {
                self.windows = self.windows.saturating_add(1);
                Some(Event::Window(report))
            }
            Err(error) => Some(Event::Failed(error)),
        }
    }

    fn turn<I: I2c, P: OutputPin, D: DelayNs>(&mut self, app: &mut App<'_, I, P, D>) -> Event {
        let turned = match app.phase() {
            Phase::Learn | Phase::Watch => {
                app.measure();
                Ok(())
            }
            Phase::Measure => app.watch(),
        };
        match turned {
            Ok(()) => {
                self.windows = 0;
                Event::Begin(app.phase())
            }
            Err(error) => Event::Failed(error),
        }
    }
}

/// Runs the application for ever, and logs its events.
///
/// `board` is called before every step, at least twice a second if no transfer hangs. It feeds the watchdog and
/// returns true if the button is down. `delay` is for the time after an error.
#[cfg(feature = "defmt")]
pub fn run<I: I2c, P: OutputPin, D: DelayNs>(
    mut app: App<'_, I, P, D>,
    mut delay: impl DelayNs,
    mut board: impl FnMut() -> bool,
) -> ! {
    let mut node = Node::default();
    defmt::info!("{}", Event::Begin(app.phase()));
    loop {
        match node.step(&mut app, board()) {
            None => {}
            Some(Event::Window(report)) if report.flagged => defmt::warn!("{}", report),
            Some(Event::Window(report)) => defmt::info!("{}", report),
            Some(event @ Event::Begin(_)) => defmt::info!("{}", event),
            Some(event @ Event::Failed(_)) => {
                defmt::error!("{}", event);
                delay.delay_ms(RETRY_MS);
            }
        }
    }
}

#[cfg(test)]
mod tests;
