//! Runs the motion application on recordings, as if worn: it learns standing and walking, then flags other motion.
//!
//! The sensor is an emulated LSM6DSOX on an emulated bus, which the application's driver cannot distinguish from a
//! real one. The exit status is 1 if the figures are below those stated here, or if the digest differs from the
//! desktop's.

#![no_std]
#![no_main]

use cortex_m_rt::entry;
use tercet_core::gguf::Aligned;
use tercet_firmware::motion::emulated::{Clock, Delay, Pin, Sensor};
use tercet_firmware::motion::{
    Activity, App, DIGEST, Error, Memory, Phase, Played, Recording, Recordings, Trial,
};
use tercet_firmware::{exit, logs, stack};

logs!();

/// Minimum accepted recall: flagged windows of badminton, per thousand windows of badminton.
const RECALL: u32 = 980;

/// Minimum accepted precision: windows of badminton, per thousand flagged windows of badminton, standing and walking.
const PRECISION: u32 = 950;

/// Minimum accepted accuracy: windows that the network classifies correctly, per thousand watched windows.
const ACCURACY: u32 = 980;

// By value, so that the image has symbols for them and `cargo firmware` can separate their bytes from the
// application's (`firmware/programs.toml`).
static NETWORK: Aligned<[u8; include_bytes!("../../data/motion.gguf").len()]> =
    Aligned(*include_bytes!("../../data/motion.gguf"));
static SAMPLES: [u8; include_bytes!("../../data/motion.npy").len()] =
    *include_bytes!("../../data/motion.npy");
static LABELS: [u8; include_bytes!("../../data/motion-labels.npy").len()] =
    *include_bytes!("../../data/motion-labels.npy");
/// Recordings in [`SAMPLES`].
const COUNT: usize = 60;

#[entry]
fn main() -> ! {
    static mut MEMORY: Memory = Memory::new();
    let mut meter = stack::Meter::start();
    let clock = Clock::new();
    let trial = match wear(&clock, MEMORY) {
        Ok(trial) => trial,
        Err(error) => {
            defmt::error!("{}", error);
            exit::failure()
        }
    };
    let deepest = meter.lap();
    defmt::info!(
        "threshold: a squared distance of {=u32} from the nearest cluster",
        trial.limit
    );
    for activity in Activity::ALL {
        let counts = trial.of(activity);
        defmt::info!(
            "{}: {=u32} windows, {=u32} flagged, {=u32} named rightly",
            activity,
            counts.windows,
            counts.flagged,
            counts.right
        );
    }
    for activity in [Activity::Badminton, Activity::Running] {
        let (recall, precision) = (trial.recall(activity), trial.precision(activity));
        defmt::info!(
            "{}: recall {=u32}.{=u32} %, precision {=u32}.{=u32} %",
            activity,
            recall / 10,
            recall % 10,
            precision / 10,
            precision % 10
        );
    }
    let accuracy = trial.accuracy();
    defmt::info!("accuracy {=u32}.{=u32} %", accuracy / 10, accuracy % 10);
    defmt::info!("digest {=u64:016x}", trial.digest);
    defmt::println!("# state {=usize}", size_of::<Memory>());
    defmt::println!("# stack {=u32}", deepest);
    let good = trial.recall(Activity::Badminton) >= RECALL
        && trial.precision(Activity::Badminton) >= PRECISION
        && accuracy >= ACCURACY;
    if !good {
        defmt::error!("the figures are too low");
        exit::failure()
    }
    if trial.digest != DIGEST {
        defmt::error!("the desk has digest {=u64:016x}", DIGEST);
        exit::failure()
    }
    exit::success()
}

/// Does all of it except the summary.
fn wear(clock: &Clock, memory: &mut Memory) -> Result<Trial, Error> {
    let recordings = Recordings::new(&SAMPLES, &LABELS, COUNT);
    let sensor = Sensor::new(clock, Recording::default());
    let mut app = App::new(sensor, Pin::new(), Delay::new(clock), memory, &NETWORK.0)?;
    defmt::info!(
        "{=usize} bytes of memory, {=usize} of application with the emulated parts",
        size_of::<Memory>(),
        size_of_val(&app)
    );
    Trial::run(&mut app, &recordings, &mut print)
}

/// Prints a line for a recording.
fn print(played: &Played) {
    let counts = played.counts;
    let done = match played.phase {
        Phase::Learn => "learned",
        Phase::Measure => "measured",
        Phase::Watch => "watched",
    };
    defmt::info!(
        "recording {=usize}, {}: {=u32} windows {=str} at {=u32} to {=u32}, {=u32} flagged, {=u32} named rightly",
        played.number,
        played.activity,
        counts.windows,
        done,
        played.distances.0,
        played.distances.1,
        counts.flagged,
        counts.right
    );
}
