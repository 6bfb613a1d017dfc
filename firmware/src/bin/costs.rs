//! Counts the instructions of the motion application's operations, each on the window of a fixed walk.
//!
//! `cargo firmware` compares the lines `# instructions NAME N` with `firmware/snapshots`. Each operation runs once,
//! and is then counted twice; two different counts fail the program.

#![no_std]
#![no_main]

use core::hint::black_box;

use static_cell::ConstStaticCell;
use tercet_core::cluster::Online;
use tercet_core::linear::I8Sym;
use tercet_core::linear::network::{Buffers, LayerSize, Network};
use tercet_core::pool::Ring;
use tercet_core::scalar::Only;
use tercet_firmware::clock::Counter;
use tercet_firmware::motion::sizes::{LAYERS, LAYOUTS, SIZES};
use tercet_firmware::motion::{AXES, CLASSES, CLUSTERS, FEATURES, Sample, WINDOW, codes, values};
use tercet_firmware::node::NETWORK;
use tercet_firmware::{entry, exit, logs};

logs!();

struct Memory {
    window: Ring<Sample, WINDOW>,
    clusters: Online<CLUSTERS, FEATURES>,
    activations: [i8; LayerSize::activations_len(&SIZES)],
    scratch: [u32; LayerSize::scratch_len(&SIZES)],
}

static MEMORY: ConstStaticCell<Memory> = ConstStaticCell::new(Memory {
    window: Ring::new([0; AXES]),
    clusters: Online::new(),
    activations: [0; LayerSize::activations_len(&SIZES)],
    scratch: [0; LayerSize::scratch_len(&SIZES)],
});

#[entry]
fn main() -> ! {
    let Some(counter) = Counter::start() else {
        defmt::error!("the board's timer does not follow instructions: run with -icount shift=7");
        exit::failure()
    };
    let (Some(memory), Ok(network)) = (MEMORY.try_take(), Network::<LAYERS>::new(NETWORK)) else {
        defmt::error!("the network is refused");
        exit::failure()
    };
    let mut walk = Walk(1);
    for _ in 0..WINDOW {
        memory.window.push(walk.sample());
    }
    let sample = walk.sample();
    count(&counter, "push", &mut || {
        memory.window.push(black_box(sample));
    });
    let mut features = [0.0; FEATURES];
    count(&counter, "features", &mut || {
        features = values(black_box(&memory.window).iter());
    });
    let mut x = [0; FEATURES];
    count(&counter, "quantize", &mut || {
        x = codes(black_box(&features))
    });
    // Full clusters first, so that every centroid is measured.
    for step in 0..2 * CLUSTERS as i8 {
        memory
            .clusters
            .observe(&x.map(|code| code.wrapping_add(16 * step)));
    }
    count(&counter, "assign", &mut || {
        black_box(memory.clusters.predict(black_box(&x)));
    });
    // The same state for each run, because a run changes it.
    let mut states = [(); 3].map(|()| memory.clusters.clone());
    let mut states = states.iter_mut();
    count(&counter, "observe", &mut || {
        if let Some(clusters) = states.next() {
            black_box(clusters.observe(black_box(&x)));
        }
    });
    let mut logits = [0; CLASSES];
    let mut ran = true;
    count(&counter, "classify", &mut || {
        let mut buffers = Buffers {
            activations: &mut memory.activations,
            scratch: &mut memory.scratch,
        };
        let run = I8Sym::new(black_box(&x))
            .and_then(|x| network.run(&mut Only::<LAYOUTS>, x, &mut buffers, &mut logits));
        ran &= run.is_ok();
    });
    if !ran {
        defmt::error!("the network does not run");
        exit::failure()
    }
    exit::success()
}

fn count(counter: &Counter, name: &str, work: &mut dyn FnMut()) {
    // Compiled code may compare the old content of a stack slot, and check only afterwards if it was set. So a count
    // can depend on the code that used the stack before; here that is the same code each time.
    counter.count(work);
    let (first, second) = (counter.count(work), counter.count(work));
    if first != second {
        defmt::error!(
            "{=str}: {=u32} instructions, then {=u32}",
            name,
            first,
            second
        );
        exit::failure()
    }
    defmt::println!("# instructions {=str} {=u32}", name, first);
}

/// Samples of a walk: the steps of an xorshift, kept within the sensor's range.
struct Walk(u32);

impl Walk {
    fn sample(&mut self) -> Sample {
        [(); AXES].map(|()| {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 17;
            self.0 ^= self.0 << 5;
            (self.0 >> 19) as i16 - 4096
        })
    }
}
