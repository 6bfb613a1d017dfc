//! The linear layer in every layout, with the engine's kernels and with the plain loops that they are checked against.

#![no_std]
#![no_main]

use tercet_benches_mcu::layers::{Alone, Data, Dense, Plain};
use tercet_benches_mcu::memory::Memory;
use tercet_benches_mcu::program;
use tercet_benches_mcu::run::{Bench, Shape};
use tercet_core::block::Format;
use tercet_core::linear::Layout;

program!(main);

const SHAPES: [Shape; 3] = [Shape(64, 256), Shape(256, 256), LARGEST];
const LARGEST: Shape = Shape(256, 1024);

fn main(bench: &mut Bench, mut memory: Memory<'static>) {
    for layout in Layout::ALL {
        for shape in SHAPES {
            let mut memory = memory.fork();
            let mut data = Data::new(layout, shape, 0, &mut memory);
            bench.case(&mut Dense(&mut data));
            bench.case(&mut Plain(&mut data));
        }
        // With weights at an odd address.
        let mut memory = memory.fork();
        let mut data = Data::new(layout, LARGEST, 1, &mut memory);
        bench.case(&mut Dense(&mut data));
    }

    alone::<{ Layout::Int8.bit() }>(bench, &mut memory);
    alone::<{ Layout::Int8Pairs.bit() }>(bench, &mut memory);
    alone::<{ Layout::Int4.bit() }>(bench, &mut memory);
    alone::<{ Layout::TernaryLanes.bit() }>(bench, &mut memory);
    alone::<{ Layout::FiveTrits.bit() }>(bench, &mut memory);
    alone::<{ Layout::Block(Format::Tq1_0).bit() }>(bench, &mut memory);
    alone::<{ Layout::Block(Format::Tq2_0).bit() }>(bench, &mut memory);
    alone::<{ Layout::Block(Format::Q2_0).bit() }>(bench, &mut memory);
    alone::<{ Layout::Block(Format::Q4_0).bit() }>(bench, &mut memory);
    alone::<{ Layout::Block(Format::Q8_0).bit() }>(bench, &mut memory);
    alone::<{ Layout::Block(Format::Q4_1).bit() }>(bench, &mut memory);
    alone::<{ Layout::Block(Format::Q5_0).bit() }>(bench, &mut memory);
    alone::<{ Layout::Block(Format::Q5_1).bit() }>(bench, &mut memory);
    alone::<{ Layout::Block(Format::Q4K).bit() }>(bench, &mut memory);
    alone::<{ Layout::Block(Format::Q6K).bit() }>(bench, &mut memory);
}

/// Counts one layout without the code of the others, which `linear::dense` contains: firmware with only this layout
/// links only this code.
fn alone<const SET: u32>(bench: &mut Bench, memory: &mut Memory<'static>) {
    for layout in Layout::ALL.into_iter().filter(|layout| layout.is_in(SET)) {
        let mut memory = memory.fork();
        let mut data = Data::new(layout, LARGEST, 0, &mut memory);
        bench.case(&mut Alone::<SET>(&mut data));
    }
}
