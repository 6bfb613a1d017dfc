//! The linear layer: every layout, by the engine's kernels and by the plain loops they are checked against.

#![no_std]
#![no_main]

use tercet_benches_mcu::layers::{Data, Dense, Plain, Sums, store};
use tercet_benches_mcu::memory::Memory;
use tercet_benches_mcu::program;
use tercet_benches_mcu::run::{Bench, Shape};
use tercet_core::block::Format;
use tercet_core::linear::{I8Sym, Layout, Matrix};
use tercet_core::scalar::linear as plain;

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
        // Where weights lie at no multiple of anything.
        let mut memory = memory.fork();
        let mut data = Data::new(layout, LARGEST, 1, &mut memory);
        bench.case(&mut Dense(&mut data));
    }

    // One function a line, for its size.
    let mut sums = Functions { bench, memory };
    sums.count(Layout::Int8, "plain", |m, x, _, out| {
        plain::int8(m, x, store(out))
    });
    sums.count(Layout::TernaryLanes, "plain", |m, x, _, out| {
        plain::ternary_lanes(m, x, store(out))
    });
    sums.count(Layout::Block(Format::Tq1_0), "plain", |m, x, _, out| {
        plain::blocks(Format::Tq1_0, m, x, store(out))
    });
    sums.count(Layout::Block(Format::Tq2_0), "plain", |m, x, _, out| {
        plain::blocks(Format::Tq2_0, m, x, store(out))
    });
    sums.count(Layout::Block(Format::Q2_0), "plain", |m, x, _, out| {
        plain::blocks(Format::Q2_0, m, x, store(out))
    });
    sums.count(Layout::Block(Format::Q4_0), "plain", |m, x, _, out| {
        plain::blocks(Format::Q4_0, m, x, store(out))
    });
    sums.count(Layout::Block(Format::Q8_0), "plain", |m, x, _, out| {
        plain::blocks(Format::Q8_0, m, x, store(out))
    });
}

struct Functions<'a> {
    bench: &'a mut Bench,
    memory: Memory<'static>,
}

impl Functions<'_> {
    fn count<F>(&mut self, layout: Layout, code: &'static str, function: F)
    where
        F: FnMut(&Matrix<'_>, I8Sym<'_>, &mut [u32], &mut [i64]),
    {
        let mut memory = self.memory.fork();
        let data = &mut Data::new(layout, LARGEST, 0, &mut memory);
        self.bench.case(&mut Sums {
            data,
            code,
            function,
        });
    }
}
