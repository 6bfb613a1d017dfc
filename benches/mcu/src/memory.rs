//! The memory that cases use one after the other.

#![allow(unsafe_code, reason = "one static buffer, lent once")]

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

/// Bytes in total: as many as the largest case takes, on every board.
const BYTES: usize = 3 << 20;

#[repr(align(16))]
struct Buffer(UnsafeCell<[u8; BYTES]>);

// SAFETY: Lent once, to one owner.
unsafe impl Sync for Buffer {}

static BUFFER: Buffer = Buffer(UnsafeCell::new([0; BYTES]));
static LENT: AtomicBool = AtomicBool::new(false);

/// Memory that hands out slices until it is used up. A [`Memory::fork`] starts at its parent's current position.
#[derive(Debug)]
pub struct Memory<'a> {
    free: &'a mut [u8],
}

impl Memory<'static> {
    /// Returns all of it.
    ///
    /// # Panics
    /// If called a second time.
    pub fn take() -> Self {
        // Load and store: a Cortex-M0 has no swap, and there is one thread and no interrupt here.
        assert!(!LENT.load(Ordering::Relaxed), "lent once");
        LENT.store(true, Ordering::Relaxed);
        Self {
            // SAFETY: The only borrow of the buffer, by the flag.
            free: unsafe { &mut *BUFFER.0.get() },
        }
    }
}

impl<'a> Memory<'a> {
    /// Returns the same memory for the time of a borrow.
    pub fn fork(&mut self) -> Memory<'_> {
        Memory {
            free: &mut *self.free,
        }
    }

    /// Returns `len` elements, all zero, at an address that is a multiple of 16.
    ///
    /// # Panics
    /// If less memory remains.
    pub fn slice<T: bytemuck::Pod>(&mut self, len: usize) -> &'a mut [T] {
        let bytes = len * size_of::<T>();
        let free = core::mem::take(&mut self.free);
        let (taken, rest) = free.split_at_mut(bytes.next_multiple_of(16));
        self.free = rest;
        let taken = &mut taken[..bytes];
        taken.fill(0);
        bytemuck::cast_slice_mut(taken)
    }
}
