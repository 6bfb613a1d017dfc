//! Reads digits: an integer network and 32 held-out images, both in flash. Digests every logit.
//!
//! Prints the same about the images as `tercet network run firmware/data/digits.gguf firmware/data/digits.npy
//! --digest`.

#![no_std]
#![no_main]

use static_cell::ConstStaticCell;
use tercet_firmware::digits::{self, Memory};
use tercet_firmware::text::Text;
use tercet_firmware::{entry, exit, no_panic, report, stack};

no_panic!();

static MEMORY: ConstStaticCell<Memory> = ConstStaticCell::new(Memory::new());

#[entry]
fn main() -> ! {
    let mut meter = stack::Meter::start();
    let Some(memory) = MEMORY.try_take() else {
        exit::failure()
    };
    let mut deepest = 0;
    let read = digits::read(memory, |digit| {
        deepest = meter.lap().max(deepest);
        let line = Text::new().number(digit.number).str(" ").hex(digit.digest);
        line.str(" ").number(digit.class).end();
        meter.lap();
    });
    let Ok(all) = read else {
        Text::new().str("# the network is refused").end();
        exit::failure()
    };
    Text::new().str("logits ").hex(all).end();
    report::footprint(size_of::<Memory>(), deepest);
    exit::success()
}
