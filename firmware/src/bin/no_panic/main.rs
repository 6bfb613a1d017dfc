//! Every public function of the core, linked and not called: that it links says that none can panic.

#![no_std]
#![no_main]
#![allow(
    elided_lifetimes_in_paths,
    reason = "a list of functions of any lifetime"
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
