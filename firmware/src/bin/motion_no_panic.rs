//! The motion application without a logger, in an image that links only if no panic can be reached: it, its driver, the
//! emulated sensor and the network have none.
//!
//! Prints the digest of everything reported, and exits with status 1 where it is not the desk's.

#![no_std]
#![no_main]

use cortex_m_rt::entry;
use tercet_firmware::motion::emulated::{Clock, Delay, Pin, Sensor};
use tercet_firmware::motion::{App, DIGEST, Error, Memory, Recording, Recordings, Trial};
use tercet_firmware::{exit, no_panic, report, stack};

no_panic!();

/// GGUF aligns tensors within a file to 32 bytes; so lies the file, and kernels find every word aligned.
#[repr(align(32))]
struct Aligned<T: ?Sized>(T);

static NETWORK: &Aligned<[u8]> = &Aligned(*include_bytes!("../../data/motion.gguf"));
static SAMPLES: &[u8] = include_bytes!("../../data/motion.npy");
static LABELS: &[u8] = include_bytes!("../../data/motion-labels.npy");
/// Recordings in [`SAMPLES`].
const COUNT: usize = 60;

#[entry]
fn main() -> ! {
    static mut MEMORY: Memory = Memory::new();
    let mut meter = stack::Meter::start();
    let digest = wear(MEMORY).map_or(0, |trial| trial.digest);
    report::report("motion", digest, size_of::<Memory>(), meter.lap());
    if digest == DIGEST {
        exit::success()
    }
    exit::failure()
}

fn wear(memory: &mut Memory) -> Result<Trial, Error> {
    let clock = Clock::new();
    let sensor = Sensor::new(&clock, Recording::default());
    let mut app = App::new(sensor, Pin::new(), Delay::new(&clock), memory, &NETWORK.0)?;
    let recordings = Recordings::new(SAMPLES, LABELS, COUNT);
    Trial::run(&mut app, &recordings, &mut |_| {})
}
