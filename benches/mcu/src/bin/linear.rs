//! The linear layer: every layout, by the engine's kernels and by the plain loops they are checked against.

#![no_std]
#![no_main]

use tercet_benches_mcu::layers::{Data, Dense, Plain, Sums, store};
use tercet_benches_mcu::memory::Memory;
use tercet_benches_mcu::program;
use tercet_benches_mcu::run::{Bench, Shape};
#[cfg(tercet_dsp)]
use tercet_core::arch::cortex_m;
use tercet_core::block::Format;
use tercet_core::linear::Layout;
use tercet_core::scalar::linear as plain;

program!(main);

const SHAPES: [Shape; 3] = [Shape(64, 256), Shape(256, 256), LARGEST];
const LARGEST: Shape = Shape(256, 1024);

/// The sums of one layout, by its kernel where it has one, and by the plain loops. What the comparison rules out the compiler
/// leaves out, since closures of one type have one caller.
macro_rules! sums {
    ($bench:ident, $memory:ident, $layout:expr) => {{
        let mut memory = $memory.fork();
        let data = &mut Data::new($layout, LARGEST, 0, &mut memory);
        #[cfg(tercet_dsp)]
        Sums::new(data, "kernel", |matrix, x, scratch, out| {
            matrix.layout() == $layout
                && cortex_m::for_each_sum(matrix, x, scratch, &mut |row, sum| store(out, row, sum))
        })
        .count($bench);
        Sums::new(data, "plain", |matrix, x, _, out| {
            let mine = matrix.layout() == $layout;
            if mine {
                plain::for_each_sum(matrix, x, |row, sum| store(out, row, sum));
            }
            mine
        })
        .count($bench);
    }};
}

fn main(bench: &mut Bench, mut memory: Memory<'static>) {
    for layout in Layout::ALL {
        for shape in SHAPES {
            let mut memory = memory.fork();
            let mut data = Data::new(layout, shape, 0, &mut memory);
            bench.case(&mut Dense(&mut data));
            bench.case(&mut Plain(&mut data));
        }
        // Where weights lie at no multiple of anything.
        let mut memory = memory.fork();
        let mut data = Data::new(layout, LARGEST, 1, &mut memory);
        bench.case(&mut Dense(&mut data));
    }

    // One layout at a time, for its size: `dense` holds the code of all.
    let mut memory = memory.fork();
    sums!(bench, memory, Layout::Int8);
    sums!(bench, memory, Layout::Int8Pairs);
    sums!(bench, memory, Layout::Int4);
    sums!(bench, memory, Layout::TernaryLanes);
    sums!(bench, memory, Layout::Block(Format::Tq1_0));
    sums!(bench, memory, Layout::Block(Format::Tq2_0));
    sums!(bench, memory, Layout::Block(Format::Q2_0));
    sums!(bench, memory, Layout::Block(Format::Q4_0));
    sums!(bench, memory, Layout::Block(Format::Q8_0));
}
