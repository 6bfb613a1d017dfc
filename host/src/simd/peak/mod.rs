//! Loops that measure arithmetic.

use std::hint::black_box;

/// Loops of multiply-adds only over registers, for one instruction set.
#[derive(Debug)]
pub(crate) struct Peak {
    /// f32: a multiplication and an addition, each rounded, as in the number rules.
    pub(crate) f32: Turns,
    /// int8 × int8 into i32.
    pub(crate) int8: Turns,
    /// −1, 0, 1 × int8, with the fastest instructions for such codes.
    pub(crate) ternary: Turns,
}

/// A loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    kernel: unsafe fn(u64),
    products: u64,
}

impl Turns {
    /// Returns a loop with so many multiply-adds per turn.
    pub(crate) const fn new(kernel: unsafe fn(u64), products: u64) -> Self {
        Self { kernel, products }
    }

    /// Runs at least `products` multiply-adds, and returns their number.
    pub(crate) fn run(&self, products: u64) -> u64 {
        let turns = products.div_ceil(self.products).max(1);
        // SAFETY: a table is only reached through a `Backend` that was found to run its set, and there is a turn.
        unsafe { (self.kernel)(turns) };
        turns * self.products
    }
}

/// Values on each side per turn: 8 KiB of i16, in the nearest cache.
const VALUES: usize = 4096;

/// The compiler's code for a product of arrays in the nearest cache, because there is no register to name.
pub(in crate::simd) const SCALAR: Peak = Peak {
    f32: Turns::new(floats, VALUES as u64),
    int8: Turns::new(integers, VALUES as u64),
    ternary: Turns::new(integers, VALUES as u64),
};

fn floats(turns: u64) {
    let (a, b) = ([1.5f32; VALUES], [0.5f32; VALUES]);
    for _ in 0..turns {
        let mut lanes = [0.0; 64];
        for (a, b) in black_box(&a)
            .as_chunks::<64>()
            .0
            .iter()
            .zip(black_box(&b).as_chunks::<64>().0)
        {
            for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
                *lane += a * b;
            }
        }
        black_box(lanes);
    }
}

fn integers(turns: u64) {
    let (a, b) = ([3i16; VALUES], [-5i16; VALUES]);
    for _ in 0..turns {
        let pairs = black_box(&a).iter().zip(black_box(&b));
        black_box(
            pairs
                .map(|(&a, &b)| i32::from(a) * i32::from(b))
                .sum::<i32>(),
        );
    }
}

/// Repeats instructions until a register has counted down to 0. Registers that they write are named after them.
#[cfg(target_arch = "x86_64")]
macro_rules! turns {
    ($turns:expr, $code:literal, $($register:tt)+) => {
        std::arch::asm!(
            "2:",
            $code,
            "sub {turns}, 1",
            "jnz 2b",
            turns = inout(reg) $turns => _,
            $(out($register) _,)+
            options(nomem, nostack),
        )
    };
}

/// Repeats instructions until a register has counted down to 0. Registers that they write are named after them.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
macro_rules! turns {
    ($turns:expr, $code:literal, $($register:tt)+) => {
        std::arch::asm!(
            "2:",
            $code,
            "subs {turns}, {turns}, #1",
            "b.ne 2b",
            turns = inout(reg) $turns => _,
            $(out($register) _,)+
            options(nomem, nostack),
        )
    };
}

#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little")
))]
pub(in crate::simd) use turns;

#[cfg(test)]
mod tests {
    use crate::simd::Backend;

    #[test]
    fn a_loop_runs_at_least_what_is_asked_for_and_ends() {
        for peak in Backend::all().map(Backend::peak) {
            for turns in [peak.f32, peak.int8, peak.ternary] {
                assert_eq!(turns.run(0), turns.products);
                assert_eq!(turns.run(5 * turns.products), 5 * turns.products);
            }
        }
    }
}
