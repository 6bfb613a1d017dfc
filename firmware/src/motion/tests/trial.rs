//! What comes out of the recordings.

use std::println;

use crate::motion::emulated::{Clock, Delay, Pin, Sensor};
use crate::motion::{Activity, App, Memory, Recording, Recordings, Trial};

pub(super) static SAMPLES: &[u8] = include_bytes!("../../../data/motion.npy");
pub(super) static LABELS: &[u8] = include_bytes!("../../../data/motion-labels.npy");
pub(super) static NETWORK: &[u8] = include_bytes!("../../../data/motion.gguf");

#[test]
fn figures() {
    let recordings = Recordings::new(SAMPLES, LABELS, 60);
    let (clock, mut memory) = (Clock::new(), Memory::new());
    let sensor = Sensor::new(&clock, Recording::default());
    let mut app = App::new(sensor, Pin::new(), Delay::new(&clock), &mut memory, NETWORK).unwrap();
    let trial = Trial::run(&mut app, &recordings, &mut |played| println!("{played:?}")).unwrap();
    println!("{trial:?} {} {}", size_of::<Memory>(), size_of_val(&app));
    for a in Activity::ALL {
        println!(
            "{a:?} recall {} precision {}",
            trial.recall(a),
            trial.precision(a)
        );
    }
    println!("{}", trial.accuracy());
}
