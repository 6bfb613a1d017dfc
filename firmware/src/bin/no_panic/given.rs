//! What callers give: the compiler must assume that it does anything but panic.

use core::hash::Hasher;
use core::hint::black_box;

use tercet_core::linear::Sums;

/// Takes sums of rows.
pub struct Seen;

impl Sums for Seen {
    fn narrow(&mut self, sums: &[i32]) {
        black_box(sums);
    }

    fn wide(&mut self, sums: &[i64]) {
        black_box(sums);
    }
}

/// Takes bytes to hash.
pub struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        black_box(bytes);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
