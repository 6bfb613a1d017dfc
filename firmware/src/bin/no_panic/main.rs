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
mod gguf;
mod given;
mod linear;
mod number;
mod palette;
mod pool;
mod pool_blocks;
mod quant;
mod reach;
mod scalar;
mod scalar_cluster;
mod search;
mod tokenizer;

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
topics!(arch block cluster conformance engine gguf linear number palette pool pool_blocks quant scalar scalar_cluster search);

/// Whether there is room for tokenizers, and for the names of what the image holds, which is printed: they do not fit into 256 KiB
/// of flash beside the other functions.
const ROOM: bool = !matches!(env!("TERCET_BOARD").as_bytes(), b"microbit");

#[entry]
fn main() -> ! {
    link();
    if ROOM {
        tokenizer::link();
        let each: &mut dyn FnMut(&str) = &mut |name| Text::new().str("reached ").str(name).end();
        names(each);
        tokenizer::names(each);
    }
    report::footprint(0, 0);
    exit::success()
}
