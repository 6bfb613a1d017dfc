//! The application on a desktop: with the code, the recordings and the digest of the boards.

mod app;
mod faults;
mod features;
mod sensor;
mod surprisal;
mod trial;

use std::vec::Vec;

use super::emulated::{Clock, Delay, Pin, Sensor};
use super::{App, Memory, Recording, Recordings, Report};

static SAMPLES: &[u8] = include_bytes!("../../../data/motion.npy");
static LABELS: &[u8] = include_bytes!("../../../data/motion-labels.npy");
static NETWORK: &[u8] = include_bytes!("../../../data/motion.gguf");

fn recordings() -> Recordings<'static> {
    Recordings::new(SAMPLES, LABELS, 60)
}

fn recording(number: usize) -> Recording<'static> {
    recordings().get(number).unwrap().0
}

/// Runs an application whose sensor senses one recording.
fn wear<T>(number: usize, then: impl FnOnce(&mut Worn<'_>, &Clock) -> T) -> T {
    let (clock, mut memory) = (Clock::new(), Memory::new());
    let sensor = Sensor::new(&clock, recording(number));
    let delay = Delay::new(&clock);
    let mut app = App::new(sensor, Pin::new(), delay, &mut memory, NETWORK).unwrap();
    then(&mut app, &clock)
}

type Worn<'a> = App<'a, Sensor<'a>, Pin, Delay<'a>>;

/// Returns the reports of this many samples, none of which fails.
fn reports(app: &mut Worn<'_>, samples: usize) -> Vec<Report> {
    let steps = (0..samples).map(|_| app.step().unwrap());
    steps.flatten().collect()
}
