//! Extremes and the exact sum of magnitudes in one pass; see [`crate::simd::exact`].

use tercet_core::number::{ExactSum, Stats};

use super::lanes::{Lanes, Value};
use crate::simd::exact::{Extent, LANE, Total, Window};
use crate::simd::stores::Ahead;

/// Vectors of a step.
pub(super) const VECTORS: usize = 4;

/// [`Stats::of`] where `SUM`, else [`Stats::extremes_of`].
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
pub(in crate::simd) unsafe fn stats<S: Lanes, T: Value, const SUM: bool>(
    values: &[T],
    ahead: Ahead,
) -> Stats {
    let mut total = Total::EMPTY;
    for block in values.chunks(VECTORS * S::WIDTH * LANE) {
        // SAFETY: the set runs here.
        let (extent, sums) = unsafe { look::<S, T, SUM>(block, ahead) };
        if !total.join(extent) {
            break;
        }
        if SUM {
            let (smallest, largest) = (extent.smallest(), extent.largest());
            // SAFETY: the set runs here.
            unsafe {
                match Window::new(smallest, largest) {
                    Some(window) => window.add(S::units(&sums.0, window), &mut total.sum),
                    None => add_windows::<S, T>(block, 0, largest, &mut total.sum),
                }
            }
        }
    }
    if !SUM {
        // SAFETY: the set runs here.
        unsafe { complete::<S, T>(&mut total, values) };
    }
    total.stats(values)
}

/// Looks for smallest magnitudes where they are needed: without both signs, one is an end of the range.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
unsafe fn complete<S: Lanes, T: Value>(total: &mut Total, values: &[T]) {
    if !total.has_both_signs() {
        // SAFETY: the set runs here.
        total.join(unsafe { least::<S, T>(values) });
    }
}

/// The largest patterns of whole steps.
pub(super) struct Most<S: Lanes>([S::Vector; 2]);

impl<S: Lanes> Most<S> {
    /// # Safety
    /// The processor runs the set.
    #[inline(always)]
    pub(super) unsafe fn new() -> Self {
        let none = Extent::EMPTY;
        // SAFETY: the set runs here.
        unsafe {
            Self([
                S::splat(none.unsigned_max),
                S::splat(none.signed_max as u32),
            ])
        }
    }

    /// # Safety
    /// The processor runs the set; the step is whole.
    #[inline(always)]
    pub(super) unsafe fn take<T: Value>(&mut self, step: &[T]) {
        for at in 0..VECTORS {
            // SAFETY: as the caller says.
            unsafe {
                let x = T::read::<S>(step.as_ptr().add(at * S::WIDTH));
                self.0 = S::larger(self.0, x);
            }
        }
    }

    /// The extremes of the values that were taken, all of them.
    ///
    /// # Safety
    /// The processor runs the set.
    #[inline(always)]
    pub(super) unsafe fn stats<T: Value>(self, values: &[T]) -> Stats {
        let mut total = Total::EMPTY;
        // SAFETY: the set runs here.
        unsafe {
            let (unsigned_max, signed_max) = S::largest(self.0);
            total.join(Extent {
                unsigned_max,
                signed_max,
                ..Extent::EMPTY
            });
            complete::<S, T>(&mut total, values);
        }
        total.stats(values)
    }
}

/// The extent of a block, without the smallest magnitudes unless `SUM`, and its sums.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
unsafe fn look<S: Lanes, T: Value, const SUM: bool>(
    values: &[T],
    ahead: Ahead,
) -> (Extent, Sums<S>) {
    let none = Extent::EMPTY;
    // SAFETY: the set runs here, and vectors are read whole within `values` or within `filled`.
    unsafe {
        let mut most = [
            S::splat(none.unsigned_max),
            S::splat(none.signed_max as u32),
        ];
        let mut least = [
            S::splat(none.unsigned_min),
            S::splat(none.signed_min as u32),
        ];
        let mut sums = Sums::<S>::zero();
        let mut steps = values.chunks_exact(VECTORS * S::WIDTH);
        for step in &mut steps {
            ahead.ask_step(step);
            for at in 0..VECTORS {
                let x = T::read::<S>(step.as_ptr().add(at * S::WIDTH));
                most = S::larger(most, x);
                if SUM {
                    least = S::smaller(least, x);
                    sums.add(at, x);
                }
            }
        }
        for (at, rest) in steps.remainder().chunks(S::WIDTH).enumerate() {
            // What fills the vector up is a value that the extremes know, and no sum has.
            let x = read_part::<S, T>(rest, rest[0]);
            most = S::larger(most, x);
            if SUM {
                least = S::smaller(least, x);
                sums.add(at, read_part::<S, T>(rest, T::default()));
            }
        }
        let (unsigned_max, signed_max) = S::largest(most);
        let (unsigned_min, signed_min) = match SUM {
            true => S::smallest(least),
            false => (none.unsigned_min, none.signed_min),
        };
        let extent = Extent {
            unsigned_max,
            signed_max,
            unsigned_min,
            signed_min,
        };
        (extent, sums)
    }
}

/// The extent's smallest magnitudes.
///
/// # Safety
/// The processor runs the set.
#[cold]
#[inline(always)]
unsafe fn least<S: Lanes, T: Value>(values: &[T]) -> Extent {
    let none = Extent::EMPTY;
    // SAFETY: the set runs here, and vectors are read whole.
    unsafe {
        let mut least = [
            S::splat(none.unsigned_min),
            S::splat(none.signed_min as u32),
        ];
        let mut vectors = values.chunks_exact(S::WIDTH);
        for vector in &mut vectors {
            least = S::smaller(least, T::read::<S>(vector.as_ptr()));
        }
        if let [first, ..] = vectors.remainder() {
            least = S::smaller(least, read_part::<S, T>(vectors.remainder(), *first));
        }
        let (unsigned_min, signed_min) = S::smallest(least);
        Extent {
            unsigned_min,
            signed_min,
            ..none
        }
    }
}

/// Reads less than a vector and fills it up.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
unsafe fn read_part<S: Lanes, T: Value>(values: &[T], fill: T) -> S::Vector {
    let mut filled = [fill; 16];
    filled[..values.len()].copy_from_slice(values);
    // SAFETY: the set runs here, and a vector has at most 16 lanes.
    unsafe { T::read::<S>(filled.as_ptr()) }
}

/// Adds the magnitudes of the patterns `smallest..=largest`, however far apart they lie.
///
/// # Safety
/// The processor runs the set.
#[cold]
#[inline(always)]
pub(super) unsafe fn add_windows<S: Lanes, T: Value>(
    values: &[T],
    smallest: u32,
    mut largest: u32,
    sum: &mut ExactSum,
) {
    // At most a block, so that no lane takes more than `LANE` values.
    debug_assert!(values.len() <= VECTORS * S::WIDTH * LANE);
    while largest > 0 && largest >= smallest {
        let (window, floor) = Window::below(largest);
        let floor = floor.max(smallest);
        // SAFETY: the set runs here, and vectors are read whole within `filled`.
        unsafe {
            let (from, to) = (S::splat(floor), S::splat(largest));
            let (zero, under) = (S::splat(0), S::splat(floor.saturating_sub(1)));
            let mut sums = Sums::<S>::zero();
            let mut next = [zero; 2];
            for (at, values) in values.chunks(S::WIDTH).enumerate() {
                let x = read_part::<S, T>(values, T::default());
                sums.add(at % VECTORS, S::within(x, from, to));
                next = S::larger(next, S::within(x, zero, under));
            }
            window.add(S::units(&sums.0, window), sum);
            largest = S::largest(next).0;
        }
    }
}

/// The sums of a step's lanes.
pub(super) struct Sums<S: Lanes>(pub(super) [[S::Wide; 2]; VECTORS]);

impl<S: Lanes> Sums<S> {
    /// # Safety
    /// The processor runs the set.
    #[inline(always)]
    pub(super) unsafe fn zero() -> Self {
        // SAFETY: the set runs here.
        Self([unsafe { S::no_sums() }; VECTORS])
    }

    /// Adds magnitudes to the sums of vector `at`.
    ///
    /// # Safety
    /// The processor runs the set.
    #[inline(always)]
    pub(super) unsafe fn add(&mut self, at: usize, x: S::Vector) {
        // SAFETY: the set runs here.
        self.0[at] = unsafe { S::add(self.0[at], x) };
    }
}
