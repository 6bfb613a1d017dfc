//! Reads digits: an integer network in flash, 32 held-out images beside it, every logit digested.
//!
//! What it prints of the images is what `tercet network run firmware/data/digits.gguf firmware/data/digits.npy --digest` prints.

#![no_std]
#![no_main]

use static_cell::ConstStaticCell;
use tercet_core::conformance::Digest;
use tercet_core::linear::network::{Buffers, LayerSize, Network};
use tercet_core::linear::{I8Sym, Layout};
use tercet_core::scalar::Only;
use tercet_firmware::text::Text;
use tercet_firmware::{entry, exit, no_panic, report, stack};

no_panic!();

/// GGUF aligns tensors within a file to 32 bytes; so lies the file, and kernels find every word aligned.
#[repr(align(32))]
struct Aligned<T: ?Sized>(T);

static FILE: &Aligned<[u8]> = &Aligned(*include_bytes!("../../data/digits.gguf"));
static IMAGES: &[u8] = include_bytes!("../../data/digits.npy");

/// The layers that [`FILE`] holds: what memory is set aside for.
const SIZES: [LayerSize; 2] = [
    LayerSize::new(Layout::TernaryLanes, HIDDEN, FEATURES),
    LayerSize::new(Layout::Int8, CLASSES, HIDDEN),
];
/// Their layouts: the code of others is not linked.
const LAYOUTS: u32 = Layout::set(&[Layout::TernaryLanes, Layout::Int8]);
const HIDDEN: usize = 64;
const FEATURES: usize = 256;
const CLASSES: usize = 10;
const COUNT: usize = 32;

/// All RAM of the work but the stack.
struct Memory {
    image: [i8; FEATURES],
    sums: [i64; CLASSES],
    activations: [i8; LayerSize::activations_len(&SIZES)],
    scratch: [u32; LayerSize::scratch_len(&SIZES)],
}

static MEMORY: ConstStaticCell<Memory> = ConstStaticCell::new(Memory {
    image: [0; FEATURES],
    sums: [0; CLASSES],
    activations: [0; LayerSize::activations_len(&SIZES)],
    scratch: [0; LayerSize::scratch_len(&SIZES)],
});

#[entry]
fn main() -> ! {
    let mut meter = stack::Meter::start();
    let Some(memory) = MEMORY.try_take() else {
        exit::failure()
    };
    let Ok(network) = Network::<2>::new(&FILE.0) else {
        Text::new().str("# the file is refused").end();
        exit::failure()
    };
    // An npy file of bytes ends in its data.
    let first = IMAGES.len().saturating_sub(COUNT * FEATURES);
    let images = IMAGES.get(first..).unwrap_or_default();
    let mut all = Digest::new();
    let mut deepest = 0;
    for (number, image) in (0..).zip(images.chunks_exact(FEATURES)) {
        for (code, &byte) in memory.image.iter_mut().zip(image) {
            *code = byte as i8;
        }
        let mut buffers = Buffers {
            activations: &mut memory.activations,
            scratch: &mut memory.scratch,
        };
        let ran = I8Sym::new(&memory.image)
            .and_then(|x| network.run(&mut Only::<LAYOUTS>, x, &mut buffers, &mut memory.sums));
        if ran.is_err() {
            Text::new().str("# the network does not run").end();
            exit::failure()
        }
        let mut one = Digest::new();
        for &sum in &memory.sums {
            one.u64(sum as u64);
            all.u64(sum as u64);
        }
        let class = network.class(&memory.sums) as u32;
        deepest = meter.lap().max(deepest);
        let line = Text::new().number(number).str(" ").hex(one.value());
        line.str(" ").number(class).end();
        meter.lap();
    }
    Text::new().str("logits ").hex(all.value()).end();
    report::footprint(size_of::<Memory>(), deepest);
    exit::success()
}
