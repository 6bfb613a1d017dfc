//! Counts whose kernels were used, and by which threads: this shows which set really worked.

#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicU64, Ordering};

use super::Isa;

/// How often kernels of an instruction set were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The set.
    pub isa: Isa,
    /// Uses by the process's first thread.
    pub by_main: u64,
    /// Uses by all other threads.
    pub by_others: u64,
}

#[cfg(debug_assertions)]
static COUNTS: [[AtomicU64; 2]; Isa::ALL.len()] =
    [const { [const { AtomicU64::new(0) }; 2] }; Isa::ALL.len()];

/// Counts a use of a set's kernels by the current thread.
#[cfg(debug_assertions)]
pub(super) fn take(isa: Isa) {
    let other = std::thread::current().name() != Some("main");
    COUNTS[isa as usize][usize::from(other)].fetch_add(1, Ordering::Relaxed);
}

/// Not counted.
#[cfg(not(debug_assertions))]
pub(super) const fn take(_: Isa) {}

/// Returns the uses in this process so far, set by set. They are counted with debug assertions, as in tests, because a
/// kernel over a group of 32 values takes little longer than a count. Otherwise the list is empty.
pub fn taken() -> Vec<Taken> {
    #[cfg(debug_assertions)]
    {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let sets = Isa::ALL.into_iter().zip(&COUNTS);
        sets.map(|(isa, [by_main, by_others])| Taken {
            isa,
            by_main: count(by_main),
            by_others: count(by_others),
        })
        .collect()
    }
    #[cfg(not(debug_assertions))]
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Backend;

    #[test]
    fn kernels_are_counted_by_their_set() {
        for backend in Backend::all() {
            let of_set = || taken().into_iter().find(|it| it.isa == backend.isa());
            let before = of_set().unwrap();
            backend.kernels().model();
            // Tests have their own threads.
            assert!(of_set().unwrap().by_others > before.by_others);
        }
    }
}
