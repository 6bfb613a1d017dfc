//! Every public function of the core, linked and not called: that it links says that none can panic.
//!
//! The panic handler calls a function that nobody defines. Each function's address escapes, so the compiler must assume that it is called
//! with any arguments, and links what they could lead to. That rests on the optimiser: checks that can never fail must be
//! proved away, in release builds with link-time optimization; another compiler may need help with one of them. Overflows are not
//! checked in such builds, here or in a user's; the tests of the core run with the checks.
//!
//! Generic functions are listed with the types that firmware uses: f32 and halves, sums of both widths, the scalar engine. Callbacks are
//! function pointers, of which nothing is known. What this prints, `.ci/no_panic.py` compares with what is public.

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

/// Whether to print what the image holds: the names do not fit into 256 KiB of flash beside the functions.
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
