//! Every public function of the core, linked but not called. If this links, none of them can panic.
//!
//! The panic handler calls an undefined function. Each function's address escapes, so the compiler must assume that it
//! is called with any arguments, and links all code that could follow. This relies on the optimiser: it must prove
//! that checks which can never fail are unnecessary, in release builds with link-time optimization. Another compiler
//! may need help with one of them. Such builds do not check for overflows, here or in a user's program; the tests of
//! the core run with the checks.
//!
//! Generic functions are listed with the types that firmware uses: f32 and halves, sums of both widths, the scalar
//! engine. Callbacks are function pointers, of which the compiler knows nothing. `.ci/no_panic.py` compares the output
//! with the public functions.

#![no_std]
#![no_main]
#![allow(
    elided_lifetimes_in_paths,
    reason = "a list of functions of any lifetime"
)]
#![allow(
    clippy::type_complexity,
    reason = "types as they are, so that inference finds the function"
)]

mod arch;
mod block;
mod cluster;
mod conformance;
mod engine;
mod given;
mod linear;
mod number;
mod palette;
mod quant;
mod reach;
mod scalar;
mod scalar_cluster;
mod search;

use cortex_m_rt::entry;
use tercet_firmware::text::Text;
use tercet_firmware::{exit, no_panic, report};

no_panic!();

macro_rules! topics {
    ($($topic:ident)*) => {
        fn link() {
            $($topic::link();)*
        }

        fn names(each: &mut dyn FnMut(&str)) {
            $($topic::names(each);)*
        }
    };
}
topics!(arch block cluster conformance engine linear number palette quant scalar scalar_cluster search);

/// True if the program prints the names of the functions. On the micro:bit the names and the functions together do not
/// fit into 256 KiB of flash.
const NAMES: bool = !matches!(env!("TERCET_BOARD").as_bytes(), b"microbit");

#[entry]
fn main() -> ! {
    link();
    if NAMES {
        names(&mut |name| Text::new().str("reached ").str(name).end());
    }
    report::footprint(0, 0);
    exit::success()
}
