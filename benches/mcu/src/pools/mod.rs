//! Counts the cost of taking and returning a piece of memory.
//!
//! Every operation is counted separately, so that the worst cost is known too.

mod peers;
mod tercet;

use core::hint::black_box;

pub use peers::{Heapless, Nothing, Talc, Tlsf};
pub use tercet::count_others;
use tercet_core::number::Random;

use crate::run::{Bench, Line, Name, Shape};

/// Bytes of the largest piece, and of every block.
pub const BLOCK: usize = 64;
/// Blocks of a pool.
pub const BLOCKS: usize = 64;
/// Maximum number of pieces held at once.
const HELD: usize = 48;
/// Bytes of a heap: twice a pool's blocks, because pieces have headers and holes lie between them.
pub const HEAP: usize = 2 * BLOCK * BLOCKS;
/// Number of operations of a trace.
const OPERATIONS: usize = 2000;

/// An allocator of pieces.
pub trait Allocator {
    /// Its name in the table.
    const NAME: &'static str;
    /// The type that holds a piece.
    type Handle;

    /// Returns a piece of at most [`BLOCK`] bytes.
    fn alloc(&self, bytes: usize) -> Option<Self::Handle>;

    /// Gives it back.
    fn free(&self, handle: Self::Handle, bytes: usize);
}

/// The order in which pieces are taken and returned.
#[derive(Clone, Copy)]
enum Trace {
    /// Takes a piece of 64 bytes and returns it.
    Same,
    /// Takes and returns sizes of 16 to 64 bytes in random order, with some 40 held.
    Mixed,
}

impl Trace {
    const fn name(self) -> &'static str {
        match self {
            Self::Same => "one_size",
            Self::Mixed => "mixed",
        }
    }
}

#[inline(never)]
fn alloc<A: Allocator>(allocator: &A, bytes: usize, slot: &mut Option<A::Handle>) {
    *slot = allocator.alloc(bytes);
}

#[inline(never)]
fn free<A: Allocator>(allocator: &A, bytes: usize, slot: &mut Option<A::Handle>) {
    if let Some(handle) = slot.take() {
        allocator.free(handle, bytes);
    }
}

#[derive(Clone, Copy, Default)]
struct Cost {
    operations: usize,
    total: u64,
    worst: u64,
}

impl Cost {
    fn add(&mut self, instructions: u64) {
        self.operations += 1;
        self.total += instructions;
        self.worst = self.worst.max(instructions);
    }
}

/// Counts both traces; `bytes` is all memory of the allocator, including its own data.
pub fn count<A: Allocator>(bench: &mut Bench, allocator: &A, bytes: usize) {
    for trace in [Trace::Same, Trace::Mixed] {
        let (taking, returning) = run(bench, allocator, trace);
        let (alloc, free) = (alloc::<A> as *const (), free::<A> as *const ());
        let layout = trace.name();
        report(
            bench,
            ["alloc", "alloc_max", layout, A::NAME],
            taking,
            bytes,
            alloc,
        );
        report(
            bench,
            ["free", "free_max", layout, A::NAME],
            returning,
            bytes,
            free,
        );
    }
}

/// Prints two lines: the mean and the worst cost.
fn report(bench: &Bench, names: [&'static str; 4], cost: Cost, bytes: usize, code: *const ()) {
    let [operation, worst, layout, name] = names;
    let mut line = Line {
        name: Name {
            operation,
            layout,
            shape: Shape(BLOCKS, BLOCK),
            code: name,
        },
        instructions: cost.total,
        work: cost.operations,
        scratch: bytes,
        code: code as usize,
    };
    bench.line(&line);
    line.name.operation = worst;
    line.instructions = cost.worst;
    line.work = 1;
    bench.line(&line);
}

fn run<A: Allocator>(bench: &mut Bench, allocator: &A, trace: Trace) -> (Cost, Cost) {
    let mut random = Random::new(4);
    let mut slots = [const { None }; HELD];
    let mut sizes = [BLOCK; HELD];
    let (mut taking, mut returning) = (Cost::default(), Cost::default());
    for _ in 0..OPERATIONS {
        let at = match trace {
            Trace::Same => 0,
            Trace::Mixed => random.below(HELD as u64) as usize,
        };
        // A chosen empty slot takes a piece; a chosen full one keeps its piece four times in five. So five slots in
        // six are held.
        let (slot, bytes) = (&mut slots[at], &mut sizes[at]);
        let keep = matches!(trace, Trace::Mixed) && random.below(5) > 0;
        if slot.is_none() {
            if matches!(trace, Trace::Mixed) {
                *bytes = 16 + random.below(49) as usize;
            }
            taking.add(
                bench
                    .counter()
                    .count(&mut || alloc(allocator, *bytes, slot)),
            );
            if slot.is_none() {
                bench.fail(A::NAME);
            }
            black_box(slot);
        } else if !keep {
            returning.add(bench.counter().count(&mut || free(allocator, *bytes, slot)));
        }
    }
    for (slot, &bytes) in slots.iter_mut().zip(&sizes) {
        free(allocator, bytes, slot);
    }
    (taking, returning)
}
