//! Block pools shared by threads.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;

const THREADS: u64 = 4;
const ROUNDS: u64 = 20_000;

fn is_send<T: Send>(_: &T) {}
fn is_sync<T: Sync>(_: &T) {}

/// Counts its drops, over all threads.
struct Counted<'a>(&'a AtomicU32);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

macro_rules! laws {
    ($module:ident, $pool:ident) => {
        mod $module {
            use super::*;
            use tercet_core::pool::{Block, $pool as Pool};

            type Words = Pool<64, 6>;

            #[test]
            fn pools_are_shared_and_blocks_sent() {
                static POOL: Words = Words::new();
                let block = POOL.alloc(7_u64).unwrap();
                is_sync(&POOL);
                is_send(&block);
                is_sync(&block);
                assert_eq!(
                    thread::spawn(move || Block::into_inner(block))
                        .join()
                        .unwrap(),
                    7
                );
                assert_eq!(POOL.stats().in_use, 0);
            }

            /// Each thread fills blocks with words of its own; nobody else's ever appear.
            #[test]
            fn no_two_threads_hold_one_block() {
                let pool = Words::new();
                thread::scope(|scope| {
                    for id in 1..=THREADS {
                        let pool = &pool;
                        scope.spawn(move || {
                            let mut held = Vec::new();
                            for round in 0..ROUNDS {
                                let word = id << 32 | round;
                                match pool.alloc([word; 8]) {
                                    Ok(block) => held.push((block, word)),
                                    Err(back) => assert_eq!(back, [word; 8]),
                                }
                                if held.len() > (round % 4) as usize {
                                    let (block, word) = held.swap_remove(0);
                                    assert_eq!(*block, [word; 8]);
                                }
                            }
                        });
                    }
                });
                let stats = pool.stats();
                assert_eq!(stats.in_use, 0);
                assert!(stats.high_water > 0 && stats.high_water <= 6);
                let held: Vec<_> = std::iter::from_fn(|| pool.alloc(0_u8).ok()).collect();
                assert_eq!(held.len(), 6);
            }

            /// Taken by one thread, returned by another.
            #[test]
            fn blocks_return_from_other_threads() {
                let (pool, drops) = (Words::new(), AtomicU32::new(0));
                let mut sent = 0;
                thread::scope(|scope| {
                    let (sender, receiver) =
                        mpsc::channel::<Block<'_, (Counted<'_>, u64), Words>>();
                    scope.spawn(move || {
                        for (expected, block) in receiver.iter().enumerate() {
                            assert_eq!(block.1, expected as u64);
                        }
                    });
                    let mut value = (Counted(&drops), 0);
                    while sent < ROUNDS {
                        match pool.alloc(value) {
                            Ok(block) => {
                                sender.send(block).unwrap();
                                sent += 1;
                                value = (Counted(&drops), sent);
                            }
                            Err(back) => {
                                value = back;
                                thread::yield_now();
                            }
                        }
                    }
                });
                assert_eq!(pool.stats().in_use, 0);
                // The last value, never sent, was dropped too.
                assert_eq!(u64::from(drops.load(Relaxed)), sent + 1);
            }
        }
    };
}

laws!(lock_free, SharedBlockPool);
#[cfg(feature = "critical-section")]
laws!(critical, CriticalBlockPool);

#[test]
fn one_owners_pool_may_move_to_another_thread() {
    let pool = tercet_core::pool::BlockPool::<16, 2>::new();
    drop(pool.alloc(1_u8));
    is_send(&pool);
    let stats = thread::spawn(move || pool.stats()).join().unwrap();
    assert_eq!((stats.in_use, stats.high_water), (0, 1));
}

#[test]
fn references_to_a_block_may_be_shared_though_its_pool_may_not() {
    let pool = tercet_core::pool::BlockPool::<16, 2>::new();
    let block = pool.alloc([1_u8; 16]).unwrap();
    let sum = thread::scope(|scope| {
        let shared = &block;
        scope
            .spawn(|| shared.iter().copied().map(u32::from).sum::<u32>())
            .join()
            .unwrap()
    });
    assert_eq!(sum, 16);
}
