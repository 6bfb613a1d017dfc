//! Block pools: laws that hold for the single owner's and the shared ones alike.

use std::cell::Cell;
use std::hash::BuildHasher;
use std::mem::{self, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use tercet_core::pool::{BLOCK_ALIGN, Full, Stats};

const BLOCK: usize = 24;
const N: usize = 5;

/// A value that counts how often it is dropped.
struct Counted<'a>(&'a Cell<u32>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// A value whose destructor panics.
struct Bomb<'a>(&'a Cell<u32>);

impl Drop for Bomb<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
        panic!("a destructor's panic");
    }
}

#[derive(Clone, Debug)]
enum Action {
    Take(u64),
    /// Each on the held block of this number, modulo how many are held.
    Drop(usize),
    MoveOut(usize),
    Rewrite(usize, u64),
}

fn steps() -> impl Strategy<Value = Vec<Action>> {
    let step = prop_oneof![
        4 => any::<u64>().prop_map(Action::Take),
        2 => any::<usize>().prop_map(Action::Drop),
        1 => any::<usize>().prop_map(Action::MoveOut),
        1 => (any::<usize>(), any::<u64>()).prop_map(|(i, v)| Action::Rewrite(i, v)),
    ];
    prop::collection::vec(step, 0..200)
}

fn used(stats: Stats) -> (usize, usize, u32) {
    (stats.in_use, stats.high_water, stats.failures)
}

macro_rules! laws {
    ($module:ident, $pool:ident) => {
        mod $module {
            use super::*;
            use tercet_core::pool::{Block, $pool as Pool};

            type Small = Pool<BLOCK, N>;

            proptest! {
                #[test]
                fn behaves_as_a_list_of_values(steps in steps()) {
                    let pool = Small::new();
                    let mut held: Vec<(Block<'_, [u64; 3], Small>, u64)> = Vec::new();
                    let (mut most, mut refused) = (0, 0);
                    for step in steps {
                        match step {
                            Action::Take(value) => match pool.alloc([value, !value, value]) {
                                Ok(block) => held.push((block, value)),
                                Err(back) => {
                                    prop_assert_eq!(held.len(), N);
                                    prop_assert_eq!(back, [value, !value, value]);
                                    refused += 1;
                                }
                            },
                            _ if held.is_empty() => {}
                            Action::Drop(at) => drop(held.swap_remove(at % held.len())),
                            Action::MoveOut(at) => {
                                let (block, value) = held.swap_remove(at % held.len());
                                prop_assert_eq!(Block::into_inner(block), [value, !value, value]);
                            }
                            Action::Rewrite(at, new) => {
                                let at = at % held.len();
                                let (block, value) = &mut held[at];
                                **block = [new, !new, new];
                                *value = new;
                            }
                        }
                        most = most.max(held.len());
                        for (block, value) in &held {
                            prop_assert_eq!(**block, [*value, !*value, *value]);
                        }
                        let mut starts: Vec<usize> = held.iter().map(|(block, _)| block.as_ptr().addr()).collect();
                        starts.sort_unstable();
                        prop_assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= BLOCK));
                        prop_assert_eq!(used(pool.stats()), (held.len(), most, refused));
                    }
                    drop(held);
                    prop_assert_eq!(pool.stats().in_use, 0);
                    let all: Vec<_> = std::iter::from_fn(|| pool.alloc(1_u8).ok()).collect();
                    prop_assert_eq!(all.len(), N);
                }
            }

            #[test]
            fn a_full_pool_gives_the_value_back_and_goes_on() {
                let pool = Small::new();
                let held: [_; N] = std::array::from_fn(|i| pool.alloc(i).unwrap());
                assert_eq!(pool.alloc(N), Err(N));
                assert_eq!(pool.alloc_uninit::<u8>().err(), Some(Full));
                assert_eq!(pool.alloc_zeroed().err(), Some(Full));
                let stats = pool.stats();
                assert_eq!((stats.capacity, stats.free()), (N, 0));
                assert_eq!(used(stats), (N, N, 3));
                drop(held);
                assert!(pool.alloc(N).is_ok());
                assert_eq!(used(pool.stats()), (0, N, 3));
            }

            #[test]
            fn a_value_is_dropped_once() {
                let drops = Cell::new(0);
                let pool = Pool::<8, 1>::new();
                let held = pool.alloc(Counted(&drops)).ok().unwrap();
                // Refused values stay the caller's.
                let back = pool.alloc(Counted(&drops)).err().unwrap();
                assert_eq!(drops.get(), 0);
                drop(back);
                assert_eq!(drops.get(), 1);
                drop(held);
                assert_eq!(drops.get(), 2);
                let moved = Block::into_inner(pool.alloc(Counted(&drops)).ok().unwrap());
                assert_eq!((drops.get(), pool.stats().in_use), (2, 0));
                drop(moved);
                assert_eq!(drops.get(), 3);
                // Assigning drops the value that was there.
                let mut held = pool.alloc(Counted(&drops)).ok().unwrap();
                *held = Counted(&drops);
                assert_eq!(drops.get(), 4);
            }

            #[test]
            fn a_block_returns_though_the_destructor_panics() {
                let drops = Cell::new(0);
                let pool = Pool::<8, 1>::new();
                for round in 1..=3 {
                    let bomb = pool.alloc(Bomb(&drops)).ok().unwrap();
                    assert!(catch_unwind(AssertUnwindSafe(|| drop(bomb))).is_err());
                    assert_eq!((drops.get(), pool.stats().in_use), (round, 0));
                }
            }

            #[test]
            fn forgotten_and_leaked_blocks_stay_in_use() {
                let drops = Cell::new(0);
                {
                    let pool = Small::new();
                    mem::forget(pool.alloc(Counted(&drops)).ok().unwrap());
                    let leaked = Block::leak(pool.alloc(7_u64).unwrap());
                    *leaked += 1;
                    assert_eq!(used(pool.stats()), (2, 2, 0));
                    let rest = std::iter::from_fn(|| pool.alloc(0_u64).ok().map(Block::leak));
                    assert_eq!(rest.count(), N - 2);
                    assert_eq!(*leaked, 8);
                }
                // The pool's end drops nothing that was given away.
                assert_eq!(drops.get(), 0);
            }

            #[test]
            fn blocks_are_aligned_whatever_their_size() {
                fn check<const SIZE: usize>() {
                    let pool = Pool::<SIZE, 7>::new();
                    let held: [_; 7] = std::array::from_fn(|_| pool.alloc([0xA5_u8; SIZE]).unwrap());
                    for block in &held {
                        assert_eq!(block.as_ptr().addr() % BLOCK_ALIGN, 0);
                        assert_eq!(**block, [0xA5; SIZE]);
                    }
                    assert!(size_of_val(&pool) <= 7 * (SIZE.next_multiple_of(8) + 2) + 24);
                }
                check::<1>();
                check::<7>();
                check::<8>();
                check::<9>();
                check::<100>();
            }

            #[test]
            fn the_largest_alignment_is_served() {
                #[repr(align(8))]
                struct Widest(u8);
                let pool = Pool::<9, 3>::new();
                let held: [_; 3] = std::array::from_fn(|i| pool.alloc(Widest(i as u8)).ok().unwrap());
                for (i, block) in held.iter().enumerate() {
                    assert_eq!(usize::from(block.0), i);
                    assert!((&raw const **block).is_aligned());
                }
            }

            #[test]
            fn types_without_size_take_a_block_each() {
                let pool = Pool::<1, 2>::new();
                let held = (pool.alloc(()).unwrap(), pool.alloc(()).unwrap());
                assert_eq!(pool.alloc(()), Err(()));
                Block::into_inner(held.0);
                assert_eq!(pool.stats().in_use, 1);
            }

            #[test]
            fn a_pool_may_have_no_block() {
                let pool = Pool::<8, 0>::new();
                assert_eq!(pool.alloc(3), Err(3));
                assert_eq!(pool.stats(), Stats { failures: 1, ..Stats::default() });
            }

            #[test]
            fn a_block_may_be_written_in_place() {
                let pool = Small::new();
                let mut block = pool.alloc_uninit::<[u16; 12]>().unwrap();
                // The value's own method, not the handle's.
                (*block).write([5; 12]);
                // SAFETY: written just above.
                let block = unsafe { block.assume_init() };
                assert_eq!(*block, [5; 12]);
                drop(block);
                // The same block, whose old bytes are not to be seen.
                assert_eq!(*pool.alloc_zeroed().unwrap(), [0; BLOCK]);
                let unwritten: Block<'_, MaybeUninit<String>, _> = pool.alloc_uninit().unwrap();
                drop(unwritten);
                assert_eq!(used(pool.stats()), (0, 1, 0));
            }

            #[test]
            fn a_handle_stands_for_its_value() {
                let pool = Small::new();
                let (low, high) = (pool.alloc(3_i32).unwrap(), pool.alloc(4_i32).unwrap());
                assert!(low < high && low != high && low == low);
                assert_eq!(std::cmp::Ord::cmp(&low, &high), std::cmp::Ordering::Less);
                assert_eq!(format!("{low} {low:?} {high:>3}"), "3 3   4");
                assert_eq!((*low.as_ref(), size_of_val(&low)), (3, 2 * size_of::<usize>()));
                let hashes = std::hash::RandomState::new();
                assert_eq!(hashes.hash_one(&low), hashes.hash_one(3_i32));
            }

            #[test]
            fn a_pool_prints_its_stats() {
                let pool = Small::default();
                let _held = pool.alloc(1).unwrap();
                assert_eq!(pool.stats().to_string(), "1 of 5 in use, at most 1, 0 refused");
                assert!(format!("{pool:?}").contains("in_use: 1"));
            }

            #[test]
            fn the_last_returned_block_is_the_next_taken() {
                let pool = Small::new();
                let (first, second) = (pool.alloc(1_u8).unwrap(), pool.alloc(2_u8).unwrap());
                let place = (&raw const *first).addr();
                drop(first);
                let again = pool.alloc(3_u8).unwrap();
                assert_eq!((&raw const *again).addr(), place);
                assert_eq!((*again, *second), (3, 2));
                // Blocks never taken are taken only where none came back.
                assert_eq!(pool.stats().high_water, 2);
            }

            #[test]
            fn the_largest_pool_hands_out_every_block() {
                const MOST: usize = tercet_core::pool::MAX_BLOCKS;
                let pool = Box::new(Pool::<1, MOST>::new());
                for _ in 0..2 {
                    let held: Vec<_> = std::iter::from_fn(|| pool.alloc(1_u8).ok()).collect();
                    assert_eq!(held.len(), MOST);
                }
                assert_eq!(used(pool.stats()), (0, MOST, 2));
            }
        }
    };
}

laws!(one_owner, BlockPool);
laws!(lock_free, SharedBlockPool);
#[cfg(feature = "critical-section")]
laws!(critical, CriticalBlockPool);
