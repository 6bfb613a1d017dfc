//! Pools: the cost of taking and returning a block, compared with a pool and two heaps of other libraries.
//!
//! Lines have the mean and, as `…_max`, the worst cost. `nothing` is the part of a line that is not the pool's: a
//! call, and storing a handle.

#![no_std]
#![no_main]

use tercet_benches_mcu::memory::Memory;
use tercet_benches_mcu::pools::{
    BLOCK, BLOCKS, HEAP, Heapless, Nothing, Talc, Tlsf, count, count_others,
};
use tercet_benches_mcu::program;
use tercet_benches_mcu::run::Bench;
use tercet_core::pool::{BlockPool, CriticalBlockPool, SharedBlockPool};

program!(main);

fn main(bench: &mut Bench, mut memory: Memory<'static>) {
    count(bench, &Nothing, 0);
    count(
        bench,
        &&BlockPool::new(),
        size_of::<BlockPool<BLOCK, BLOCKS>>(),
    );
    count(
        bench,
        &&SharedBlockPool::new(),
        size_of::<SharedBlockPool<BLOCK, BLOCKS>>(),
    );
    count(
        bench,
        &&CriticalBlockPool::new(),
        size_of::<CriticalBlockPool<BLOCK, BLOCKS>>(),
    );
    count(bench, &Heapless::take(), Heapless::BYTES);
    count(
        bench,
        &Tlsf::new(memory.slice(HEAP)),
        HEAP + size_of::<Tlsf>(),
    );
    count(
        bench,
        &Talc::new(memory.slice(HEAP)),
        HEAP + size_of::<Talc>(),
    );
    count_others(bench);
}
