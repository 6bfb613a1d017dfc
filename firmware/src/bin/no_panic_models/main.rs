//! Every public function of core's GGUF files, language models, tokenizers, training and pools, linked but not called.
//! Together with those of `no_panic` they would not fit the micro:bit.

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

mod gguf;
mod model;
mod pool;
mod pool_blocks;
#[allow(
    dead_code,
    reason = "functions of types that cannot be written out are listed in `no_panic` alone"
)]
#[path = "../no_panic/reach.rs"]
mod reach;
mod tokenizer;
mod train;

use cortex_m_rt::entry;
use tercet_firmware::text::Text;
use tercet_firmware::{exit, no_panic, report};

no_panic!();

#[entry]
fn main() -> ! {
    gguf::link();
    model::link();
    pool::link();
    pool_blocks::link();
    tokenizer::link();
    train::link();
    let mut name = |name: &str| Text::new().str("reached ").str(name).end();
    gguf::names(&mut name);
    model::names(&mut name);
    pool::names(&mut name);
    pool_blocks::names(&mut name);
    tokenizer::names(&mut name);
    train::names(&mut name);
    report::footprint(0, 0);
    exit::success()
}
