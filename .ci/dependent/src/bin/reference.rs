//! One call of the linear layer and nothing else: 64 rows of 256 ternary weights, packed in lanes, times int8, in f32.
//!
//! It has no vectors, no start-up and no panic handler's text, so the bytes that it loads are the call's.

#![no_std]
#![no_main]

use core::hint::black_box;
use core::panic::PanicInfo;

use tercet_core::engine::LinearEngine;
use tercet_core::linear::{I8Sym, Layer, Layout, LinearError, Matrix};
use tercet_core::scalar::Only;

const ROWS: usize = 64;
const COLS: usize = 256;
const LANES: u32 = Layout::set(&[Layout::TernaryLanes]);

fn layer(
    weights: &[u8],
    x: &[i8],
    out: &mut [f32],
    scratch: &mut [u32],
) -> Result<(), LinearError> {
    let layer = Layer::new(Matrix::new(Layout::TernaryLanes, ROWS, COLS, weights)?);
    Only::<LANES>.matvec(&layer, I8Sym::new(x)?, 1.0, out, scratch)
}

/// Where the linker begins.
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    let called: fn(&[u8], &[i8], &mut [f32], &mut [u32]) -> Result<(), LinearError> =
        black_box(layer);
    let (mut out, mut scratch) = ([0.0; ROWS], [0; 2 * COLS]);
    black_box(called(
        black_box(&[]),
        black_box(&[]),
        &mut out,
        &mut scratch,
    ))
    .ok();
    loop {
        core::hint::spin_loop();
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
