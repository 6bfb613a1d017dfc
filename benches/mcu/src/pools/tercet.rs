//! Tercet's pools.

use core::mem::MaybeUninit;

use tercet_core::number::Random;
use tercet_core::pool::{
    Arena, Block, BlockPool, CriticalBlockPool, Lru, Ring, ShapePool, SharedBlockPool,
};

use super::{Allocator, BLOCK, BLOCKS, Cost, report};
use crate::run::Bench;

macro_rules! blocks {
    ($pool:ident, $name:literal) => {
        impl<'a> Allocator for &'a $pool<BLOCK, BLOCKS> {
            const NAME: &'static str = $name;
            type Handle = Block<'a, MaybeUninit<[u8; BLOCK]>, $pool<BLOCK, BLOCKS>>;

            fn alloc(&self, _: usize) -> Option<Self::Handle> {
                self.alloc_uninit().ok()
            }

            fn free(&self, handle: Self::Handle, _: usize) {
                drop(handle);
            }
        }
    };
}

blocks!(BlockPool, "local");
blocks!(CriticalBlockPool, "critical");
blocks!(SharedBlockPool, "shared");

/// Number of counts of each other operation.
const TIMES: usize = 200;

/// Counts `operation` with each argument.
fn each(
    bench: &Bench,
    arguments: impl Iterator<Item = usize>,
    mut operation: impl FnMut(usize),
) -> Cost {
    let mut cost = Cost::default();
    for argument in arguments {
        cost.add(bench.counter().count(&mut || operation(argument)));
    }
    cost
}

/// Returns sizes of 16 to 64 bytes.
fn sizes() -> impl Iterator<Item = usize> {
    let mut random = Random::new(4);
    (0..TIMES).map(move |_| 16 + random.below(49) as usize)
}

/// Takes memory of an arena without writing it.
#[inline(never)]
fn arena_alloc(scope: &mut tercet_core::pool::Scope<'_>, bytes: usize, failed: &mut bool) {
    *failed |= scope.alloc_bytes(bytes, 8).is_err();
}

/// Starts a batch, which resets an arena.
#[inline(never)]
fn arena_scope(arena: &mut Arena<{ TIMES * BLOCK }>) {
    core::hint::black_box(arena.scope());
}

/// A sample of six axes.
type Sample = [i16; 6];

#[inline(never)]
fn ring_push(ring: &mut Ring<Sample, 64>, sample: Sample) {
    core::hint::black_box(ring.push(sample));
}

/// Takes a buffer of one of eight shapes and returns it.
#[inline(never)]
fn shape_take(pool: &ShapePool<4096, 16>, columns: usize, failed: &mut bool) {
    match pool.take::<i8>([8, columns]) {
        Ok(buffer) => {
            core::hint::black_box(&*buffer);
        }
        Err(_) => *failed = true,
    }
}

type Rows = Lru<u32, u8, BLOCK, BLOCKS>;

#[inline(never)]
fn lru_get(rows: &mut Rows, key: u32) {
    core::hint::black_box(rows.get(&key).is_some());
}

#[inline(never)]
fn lru_insert(rows: &mut Rows, key: u32, row: &[u8; BLOCK]) {
    core::hint::black_box(rows.insert(key, row).is_ok());
}

/// Counts the pools that are not pools of blocks.
pub fn count_others(bench: &mut Bench) {
    let mut failed = false;
    {
        let mut arena = Arena::<{ TIMES * BLOCK }>::new();
        let bytes = size_of_val(&arena);
        let mut scope = arena.scope();
        let cost = each(bench, sizes(), |bytes| {
            arena_alloc(&mut scope, bytes, &mut failed)
        });
        report(
            bench,
            ["alloc", "alloc_max", "mixed", "arena"],
            cost,
            bytes,
            arena_alloc as *const (),
        );
        let cost = each(bench, 0..TIMES, |_| arena_scope(&mut arena));
        report(
            bench,
            ["reset", "reset_max", "mixed", "arena"],
            cost,
            bytes,
            arena_scope as *const (),
        );
    }
    {
        let mut ring = Ring::<Sample, 64>::new([0; 6]);
        let cost = each(bench, 0..TIMES, |n| ring_push(&mut ring, [n as i16; 6]));
        report(
            bench,
            ["push", "push_max", "12_bytes", "ring"],
            cost,
            size_of_val(&ring),
            ring_push as *const (),
        );
    }
    {
        let pool = ShapePool::<4096, 16>::new();
        let mut random = Random::new(4);
        let columns = |columns| 8 * columns as usize + 8;
        (0..8).for_each(|n| shape_take(&pool, columns(n), &mut failed));
        let widths = (0..TIMES).map(|_| columns(random.below(8)));
        let cost = each(bench, widths, |width| shape_take(&pool, width, &mut failed));
        report(
            bench,
            ["take_drop", "take_max", "8_shapes", "shape"],
            cost,
            size_of_val(&pool),
            shape_take as *const (),
        );
    }
    {
        let mut rows = Rows::new(0);
        let bytes = size_of_val(&rows);
        let row = [1; BLOCK];
        (0..BLOCKS as u32).for_each(|key| lru_insert(&mut rows, key, &row));
        let mut random = Random::new(4);
        let keys = (0..TIMES).map(|_| random.below(BLOCKS as u64) as usize);
        let cost = each(bench, keys, |key| lru_get(&mut rows, key as u32));
        report(
            bench,
            ["get", "get_max", "one_size", "lru"],
            cost,
            bytes,
            lru_get as *const (),
        );
        // Each one replaces the least recently used one.
        let cost = each(bench, 0..TIMES, |n| {
            lru_insert(&mut rows, 1000 + n as u32, &row)
        });
        report(
            bench,
            ["insert", "insert_max", "one_size", "lru"],
            cost,
            bytes,
            lru_insert as *const (),
        );
        failed |= rows.stats().evictions != TIMES as u32;
    }
    if failed {
        bench.fail("a pool that should have had room had none");
    }
}
