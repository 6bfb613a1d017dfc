//! Counts instructions.
//!
//! Under QEMU's `-icount shift=7`, 128 ns of the board's time pass with every instruction, so a clock of the board
//! counts instructions, whatever the host does meanwhile. A difference of two readings is off by less than one tick,
//! and the clocks here tick at least twice per instruction. So the nearest whole number of instructions is the true
//! one.

use core::sync::atomic::{Ordering, compiler_fence};

use crate::nops;

/// The board's time per instruction, in nanoseconds.
pub const INSTRUCTION_NS: u64 = 1 << 7;

/// A clock of the board.
pub trait Clock {
    /// Nanoseconds per tick; at most half of [`INSTRUCTION_NS`].
    const TICK_NS: u64;

    /// Returns the ticks so far, modulo 2³².
    fn read(&self) -> u32;
}

/// Counts the instructions of pieces of code.
#[derive(Debug)]
pub struct Counter<C> {
    clock: C,
    /// Instructions between two readings without any work between them.
    overhead: u64,
}

impl<C: Clock> Counter<C> {
    /// Measures the cost of counting itself.
    pub fn new(clock: C) -> Self {
        let mut counter = Self { clock, overhead: 0 };
        counter.overhead = counter.count(&mut || ());
        counter
    }

    /// Returns the instructions of `work`, less those of an empty closure. 2³² ticks, 1.3 · 10⁹ instructions on the
    /// slowest clock, count as none.
    ///
    /// The closure is called through a pointer, so that the surrounding code is the same for all closures.
    #[inline(never)]
    pub fn count(&self, work: &mut dyn FnMut()) -> u64 {
        let from = self.clock.read();
        compiler_fence(Ordering::SeqCst);
        work();
        compiler_fence(Ordering::SeqCst);
        let to = self.clock.read();
        let ns = u64::from(to.wrapping_sub(from)) * C::TICK_NS;
        ((ns + INSTRUCTION_NS / 2) / INSTRUCTION_NS).saturating_sub(self.overhead)
    }

    /// Counts blocks of known length; all counts must be exact.
    ///
    /// # Errors
    /// `(length, count)` of the first wrong count: the board's clock does not follow its instructions, as without
    /// `-icount shift=7`.
    pub fn verify(&self) -> Result<(), (u64, u64)> {
        nops::try_each(|(expected, block)| {
            let counted = self.count(block);
            if counted == expected {
                Ok(())
            } else {
                Err((expected, counted))
            }
        })
    }
}
