//! Takes and returns blocks at random, many times, and checks every value: `pool_soak [OPERATIONS]`, 10⁸ by default.
//!
//! As many operations go to a pool with one owner, to one that four threads share and, with that feature, to one in
//! critical sections. Each thread has places for twice the blocks that there are, so every pool runs full over and
//! over, even where one thread ends before the next begins (valgrind may run them so). At the end nothing is in use
//! and each block can be had again, or this panics.

use std::time::Instant;

use tercet_core::number::Random;
#[cfg(feature = "critical-section")]
use tercet_core::pool::CriticalBlockPool;
use tercet_core::pool::{Block, BlockPool, Blocks, FreeList, SharedBlockPool};

const BLOCK: usize = 40;
const N: usize = 61;
const PLACES: usize = 2 * N;
const THREADS: u64 = 4;

/// A value that shows whether any of its bytes were written by another holder.
#[derive(Debug, PartialEq)]
struct Marked([u64; 5]);

impl Marked {
    fn new(mark: u64) -> Self {
        Self(std::array::from_fn(|i| mark.rotate_left(i as u32 * 13)))
    }

    fn check(&self) {
        let Self([mark, ..]) = *self;
        assert_eq!(
            *self,
            Self::new(mark),
            "a block was written to by another holder"
        );
    }
}

type Place<'a, L> = Option<(Block<'a, Marked, Blocks<BLOCK, N, L>>, u64)>;

/// `operations` allocations and releases through `P` places.
fn churn<const P: usize, L: FreeList<N>>(pool: &Blocks<BLOCK, N, L>, seed: u64, operations: u64) {
    let mut random = Random::new(seed);
    let mut places: [Place<'_, L>; P] = [const { None }; P];
    for _ in 0..operations {
        let drawn = random.next_u64();
        let place = &mut places[(drawn % P as u64) as usize];
        *place = match place.take() {
            Some((block, mark)) => {
                assert_eq!(block.0[0], mark, "another holder wrote here");
                block.check();
                // Both ways out of a block.
                if drawn >> 63 == 0 {
                    Block::into_inner(block).check();
                }
                None
            }
            None => pool
                .alloc(Marked::new(drawn))
                .ok()
                .map(|block| (block, drawn)),
        };
    }
}

/// Runs `work`, then sees that nothing is in use, that the pool was full, and that all of it can be had.
fn soak<L: FreeList<N>>(
    name: &str,
    operations: u64,
    pool: &Blocks<BLOCK, N, L>,
    work: impl FnOnce(&Blocks<BLOCK, N, L>),
) {
    let started = Instant::now();
    work(pool);
    let seconds = started.elapsed().as_secs_f64();
    let stats = pool.stats();
    println!("{name}: {operations} operations, {seconds:.1} s; {stats}");
    assert_eq!((stats.in_use, stats.high_water), (0, N));
    assert!(stats.failures > 0);
    let all: Vec<_> = std::iter::from_fn(|| pool.alloc(Marked::new(1)).ok()).collect();
    assert_eq!(all.len(), N);
    all.iter().for_each(|block| block.check());
}

fn share<L: FreeList<N> + Sync>(pool: &Blocks<BLOCK, N, L>, operations: u64) {
    std::thread::scope(|scope| {
        for seed in 0..THREADS {
            scope.spawn(move || churn::<PLACES, L>(pool, seed, operations / THREADS));
        }
    });
}

fn main() {
    let operations = match std::env::args().nth(1) {
        Some(count) => count.parse().expect("a count of operations"),
        None => 100_000_000,
    };
    soak("one owner", operations, &BlockPool::new(), |pool| {
        churn::<PLACES, _>(pool, 4, operations);
    });
    soak("shared", operations, &SharedBlockPool::new(), |pool| {
        share(pool, operations)
    });
    #[cfg(feature = "critical-section")]
    soak("critical", operations, &CriticalBlockPool::new(), |pool| {
        share(pool, operations)
    });
}
