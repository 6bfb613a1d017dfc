//! Models of the shared arena under loom, which runs them in every order that the memory model allows.
//! `.ci/steps/loom.sh` runs them.

use std::sync::Arc;
use std::vec::Vec;

use loom::cell::UnsafeCell;
use loom::thread;

use super::SharedArena;

const BYTES: usize = 16;

/// An arena, and one cell for each of its bytes. Loom panics if two threads access a cell without an order between
/// them.
struct Model {
    arena: SharedArena<BYTES>,
    bytes: [UnsafeCell<Option<usize>>; BYTES],
}

// SAFETY: loom's cells check each access.
unsafe impl Sync for Model {}

impl Model {
    fn new() -> Self {
        Self {
            arena: SharedArena::new(),
            bytes: core::array::from_fn(|_| UnsafeCell::new(None)),
        }
    }

    /// Takes `len` values and marks their bytes; returns the number of these bytes.
    fn take<T: Copy + Default>(&self, len: usize, owner: usize) -> usize {
        let Ok(slice) = self.arena.alloc_slice(len, T::default()) else {
            return 0;
        };
        let start = slice.as_ptr().addr() - self.arena.memory.get().addr();
        assert_eq!(start % align_of::<T>(), 0);
        for byte in &self.bytes[start..start + size_of_val(slice)] {
            byte.with_mut(|byte| {
                // SAFETY: what loom checks, as the arena's users would rely on it.
                let before = unsafe { (*byte).replace(owner) };
                assert_eq!(before, None, "given twice");
            });
        }
        size_of_val(slice)
    }
}

#[test]
fn no_byte_is_given_twice() {
    loom::model(|| {
        let model = Arc::new(Model::new());
        let other = Arc::clone(&model);
        // All of it, including bytes skipped for alignment: bytes and words in turn.
        let thread = thread::spawn(move || other.take::<u8>(3, 1) + other.take::<u32>(1, 1));
        let mine = model.take::<u32>(1, 0) + model.take::<u8>(1, 0);
        let taken = mine + thread.join().unwrap();
        let stats = model.arena.stats();
        assert!(taken <= stats.in_use && stats.in_use <= BYTES);
        assert_eq!((taken, stats.failures), (12, 0));
    });
}

#[test]
fn the_last_bytes_go_to_one_and_each_refusal_counts() {
    loom::model(|| {
        let model = Arc::new(Model::new());
        let threads: Vec<_> = (1..3)
            .map(|owner| {
                let model = Arc::clone(&model);
                thread::spawn(move || model.take::<u8>(9, owner))
            })
            .collect();
        let taken: usize = threads.into_iter().map(|t| t.join().unwrap()).sum();
        assert_eq!(taken, 9);
        assert_eq!(model.arena.stats().failures, 1);
        // Nothing of the refused request was taken.
        assert_eq!(model.take::<u8>(7, 0), 7);
    });
}

#[test]
fn a_reset_arena_gives_everything_again() {
    loom::model(|| {
        let mut model = Arc::new(Model::new());
        let other = Arc::clone(&model);
        let thread = thread::spawn(move || other.take::<u8>(7, 1));
        assert_eq!(model.take::<u8>(7, 0), 7);
        assert_eq!(thread.join().unwrap(), 7);
        let model = Arc::get_mut(&mut model).unwrap();
        model.arena.reset();
        assert_eq!(model.arena.stats().in_use, 0);
        assert_eq!(model.arena.stats().high_water, 14);
        assert_eq!(model.arena.alloc_slice(16, 0_u8).map(|s| s.len()), Ok(16));
    });
}
