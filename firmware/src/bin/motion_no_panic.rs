//! The motion application without a logger, in an image that links only if no panic is reachable. So the application,
//! its driver, the emulated sensor and the network have none.
//!
//! Prints the digest of everything reported, and exits with status 1 if it differs from the desktop's.

#![no_std]
#![no_main]

use static_cell::ConstStaticCell;
use tercet_firmware::motion::emulated::{Clock, Delay, Pin, Sensor};
use tercet_firmware::motion::{App, DIGEST, Error, Memory, Recording, Recordings, Trial};
use tercet_firmware::node::NETWORK;
use tercet_firmware::{entry, exit, no_panic, report, stack};

no_panic!();

// By value, so that the image has symbols for them and `cargo firmware` can separate their bytes from the
// application's (`firmware/programs.toml`).
static SAMPLES: [u8; include_bytes!("../../data/motion.npy").len()] =
    *include_bytes!("../../data/motion.npy");
static LABELS: [u8; include_bytes!("../../data/motion-labels.npy").len()] =
    *include_bytes!("../../data/motion-labels.npy");
/// Recordings in [`SAMPLES`].
const COUNT: usize = 60;

static MEMORY: ConstStaticCell<Memory> = ConstStaticCell::new(Memory::new());

#[entry]
fn main() -> ! {
    let mut meter = stack::Meter::start();
    let Some(memory) = MEMORY.try_take() else {
        exit::failure()
    };
    let digest = wear(memory).map_or(0, |trial| trial.digest);
    report::report("motion", digest, size_of::<Memory>(), meter.lap());
    if digest == DIGEST {
        exit::success()
    }
    exit::failure()
}

fn wear(memory: &mut Memory) -> Result<Trial, Error> {
    let clock = Clock::new();
    let sensor = Sensor::new(&clock, Recording::default());
    let mut app = App::new(sensor, Pin::new(), Delay::new(&clock), memory, NETWORK)?;
    let recordings = Recordings::new(&SAMPLES, &LABELS, COUNT);
    Trial::run(&mut app, &recordings, &mut |_| {})
}
