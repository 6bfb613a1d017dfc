//! Runs arenas, rings, buffers by shape and caches for as many operations as asked, checks what they hold as it goes,
//! and fails where a byte is not what was written or a pool does not end empty.
//!
//! `cargo run --release -p tercet-core --example arena_soak -- 100000000`

use std::process::ExitCode;
use std::time::Instant;

use tercet_core::number::Random;
use tercet_core::pool::{Arena, ArenaError, Buffer, Lru, Ring, Scope, ShapePool, SharedArena};

type Soak = fn(u64) -> String;

fn main() -> ExitCode {
    let count = std::env::args()
        .nth(1)
        .map_or(Ok(1_000_000), |count| count.parse::<u64>());
    let Ok(count) = count else {
        eprintln!("usage: arena_soak [OPERATIONS]");
        return ExitCode::FAILURE;
    };
    let soaks: [(&str, Soak); 5] = [
        ("Arena", arena),
        ("SharedArena", shared_arena),
        ("Ring", ring),
        ("ShapePool", shape_pool),
        ("Lru", lru),
    ];
    let each = count / soaks.len() as u64;
    for (name, soak) in soaks {
        let start = Instant::now();
        let figures = soak(each);
        let seconds = start.elapsed().as_secs_f64();
        println!("{name}: {each} operations in {seconds:.2} s; {figures}");
    }
    ExitCode::SUCCESS
}

/// Batches of slices in nested scopes until the operations are spent.
fn arena(mut count: u64) -> String {
    let mut arena = Arena::<4096>::new();
    let mut random = Random::new(1);
    while count > 0 {
        fill_scope(arena.scope(), &mut random, &mut count, 0);
    }
    assert_eq!(arena.stats().in_use, 0);
    arena.stats().to_string()
}

/// Takes slices and opens scopes; what was taken before a scope is whole after it.
fn fill_scope(mut scope: Scope<'_>, random: &mut Random, count: &mut u64, depth: u32) {
    let mine = scope
        .alloc_slice(random.below(24) as usize, depth)
        .unwrap_or_default();
    for round in 0..16_u32 {
        if *count == 0 {
            break;
        }
        *count -= 1;
        let len = random.below(32) as usize;
        let taken: Result<bool, ArenaError> = match round % 4 {
            0 => scope
                .alloc_slice(len, round as u8)
                .map(|s| s.iter().all(|&v| v == round as u8)),
            1 => scope
                .alloc_slice_with(len, |i| i as u64)
                .map(|s| s.iter().copied().eq(0..len as u64)),
            2 => scope
                .alloc_from_iter((0..len as u16).rev())
                .map(|s| s.iter().rev().copied().eq(0..len as u16)),
            _ => scope
                .alloc_bytes(len, 64)
                .map(|s| len == 0 || s.as_ptr().addr() % 64 == 0),
        };
        assert!(taken.unwrap_or(true));
        if depth < 4 && random.below(12) == 0 {
            fill_scope(scope.scope(), random, count, depth + 1);
        }
    }
    assert!(mine.iter().all(|&value| value == depth));
}

/// Two threads that fill one arena again and again, and find all that they wrote.
fn shared_arena(count: u64) -> String {
    const BATCH: u64 = 2 * 5_000;
    let mut arena = Box::new(SharedArena::<65_536>::new());
    for _ in 0..count.div_ceil(BATCH) {
        std::thread::scope(|threads| {
            for id in 0..2_u32 {
                let arena = &*arena;
                threads.spawn(move || {
                    let mut last: Option<&mut [u32]> = None;
                    for _ in 0..BATCH / 2 {
                        let next = arena.alloc_slice(3, id).ok();
                        if let Some(last) = next.and_then(|next| last.replace(next)) {
                            assert!(last.iter().all(|&value| value == id));
                        }
                    }
                });
            }
        });
        assert_eq!(arena.stats().in_use, 65_532);
        arena.reset();
    }
    arena.stats().to_string()
}

/// A window of rows over a count, whose every row says its position.
fn ring(count: u64) -> String {
    let mut ring = Ring::<[u64; 4], 100>::new([0; 4]);
    let mut random = Random::new(2);
    for position in 0..count {
        ring.advance().fill(position);
        let age = random.below(ring.len() as u64) as usize;
        assert_eq!(ring.get(age), Some(&[position - age as u64; 4]));
        if position % 4096 == 0 {
            assert!(ring.iter().map(|row| row[0]).eq(ring.positions()));
        }
    }
    ring.stats().to_string()
}

/// Up to eight buffers in use of nine shapes in a store that is too small for all of them.
fn shape_pool(count: u64) -> String {
    let pool = ShapePool::<8192, 12>::new();
    let mut random = Random::new(3);
    let mut held: [Option<Buffer<'_, u32>>; 8] = Default::default();
    for number in 0..count {
        let place = &mut held[random.below(8) as usize];
        match place.take() {
            Some(buffer) => assert!(buffer.iter().all(|value| value == &buffer[0])),
            None => {
                let shape = [
                    1 + 7 * random.below(3) as usize,
                    4 + 30 * random.below(3) as usize,
                ];
                *place = pool.take_filled(shape, number as u32).ok();
            }
        }
    }
    drop(held);
    assert_eq!(pool.stats().bytes.in_use, 0);
    pool.stats().to_string()
}

/// Rows of different lengths that say their key, asked for with a preference for a few.
fn lru(count: u64) -> String {
    let mut cache = Lru::<u32, u32, 8, 128>::new(0);
    let mut random = Random::new(4);
    for _ in 0..count {
        // The product of two numbers of even chances is more often small.
        let key = (random.below(16) * random.below(16)) as u32;
        match cache.get(&key) {
            Some(value) => assert!(value.iter().all(|&element| element == key)),
            None => {
                let inserted = cache.insert_with(key, key as usize % 40, |_, part| part.fill(key));
                assert!(inserted.is_ok());
            }
        }
        if random.below(64) == 0 {
            cache.remove(&(key + 1));
        }
    }
    let figures = cache.stats().to_string();
    cache.clear();
    assert_eq!(cache.stats().bytes.in_use, 0);
    figures
}
