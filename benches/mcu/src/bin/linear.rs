//! The linear layer: every layout, by the engine's kernels and by the plain loops they are checked against.

#![no_std]
#![no_main]

use tercet_benches_mcu::layers::{Data, Dense, Plain};
use tercet_benches_mcu::memory::Memory;
use tercet_benches_mcu::program;
use tercet_benches_mcu::run::{Bench, Shape};
use tercet_core::linear::Layout;

program!(main);

const SHAPES: [Shape; 3] = [Shape(64, 256), Shape(256, 256), Shape(256, 1024)];

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
        let mut data = Data::new(layout, SHAPES[2], 1, &mut memory);
        bench.case(&mut Dense(&mut data));
    }
}
