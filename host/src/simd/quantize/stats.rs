//! Extremes and the exact sum of magnitudes in one pass; see [`crate::simd::exact`].

use tercet_core::number::{ExactSum, Stats};

use super::lanes::{Quantizing, VECTORS, Value};
use crate::simd::exact::{Extent, LANE, Total, Window};
use crate::simd::stores::Ahead;

/// Computes [`Stats::of`] if `SUM`, else [`Stats::extremes_of`].
#[inline(always)]
pub(in crate::simd) fn stats<S: Quantizing, T: Value, const SUM: bool>(
    set: S,
    values: &[T],
    ahead: Ahead,
) -> Stats {
    let mut total = Total::EMPTY;
    for block in values.chunks(VECTORS * set.lanes() * LANE) {
        let (extent, sums) = look::<S, T, SUM>(set, block, ahead);
        if !total.join(extent) {
            break;
        }
        if SUM {
            let (smallest, largest) = (extent.smallest(), extent.largest());
            match Window::new(smallest, largest) {
                Some(window) => window.add(set.units(&sums.0, window), &mut total.sum),
                None => add_windows::<S, T>(set, block, 0, largest, &mut total.sum),
            }
        }
    }
    if !SUM {
        complete::<S, T>(set, &mut total, values);
    }
    total.stats(values)
}

/// Finds the smallest magnitudes if they are needed: without both signs, one of them is an end of the range.
#[inline(always)]
fn complete<S: Quantizing, T: Value>(set: S, total: &mut Total, values: &[T]) {
    if !total.has_both_signs() {
        total.join(least::<S, T>(set, values));
    }
}

/// The largest patterns of whole steps.
pub(super) struct Most<S: Quantizing>([S::Words; 2]);

impl<S: Quantizing> Most<S> {
    #[inline(always)]
    pub(super) fn new(set: S) -> Self {
        let none = Extent::EMPTY;
        Self([
            set.pattern(none.unsigned_max),
            set.pattern(none.signed_max as u32),
        ])
    }

    #[inline(always)]
    pub(super) fn take<T: Value>(&mut self, set: S, step: &[T]) {
        for at in 0..VECTORS {
            let x = set.values(&step[at * set.lanes()..]);
            self.0 = set.larger(self.0, x);
        }
    }

    /// Returns the extremes of the processed values, which are all values.
    #[inline(always)]
    pub(super) fn stats<T: Value>(self, set: S, values: &[T]) -> Stats {
        let mut total = Total::EMPTY;
        let (unsigned_max, signed_max) = set.largest(self.0);
        total.join(Extent {
            unsigned_max,
            signed_max,
            ..Extent::EMPTY
        });
        complete::<S, T>(set, &mut total, values);
        total.stats(values)
    }
}

/// Returns the extent of a block, without the smallest magnitudes unless `SUM`, and its sums.
#[inline(always)]
fn look<S: Quantizing, T: Value, const SUM: bool>(
    set: S,
    values: &[T],
    ahead: Ahead,
) -> (Extent, Sums<S>) {
    let none = Extent::EMPTY;
    let mut most = [
        set.pattern(none.unsigned_max),
        set.pattern(none.signed_max as u32),
    ];
    let mut least = [
        set.pattern(none.unsigned_min),
        set.pattern(none.signed_min as u32),
    ];
    let mut sums = Sums::zero(set);
    let mut steps = values.chunks_exact(VECTORS * set.lanes());
    for step in &mut steps {
        ahead.ask_step(step);
        for at in 0..VECTORS {
            let x = set.values(&step[at * set.lanes()..]);
            most = set.larger(most, x);
            if SUM {
                least = set.smaller(least, x);
                sums.add(set, at, x);
            }
        }
    }
    for (at, rest) in steps.remainder().chunks(set.lanes()).enumerate() {
        // The padding of the vector is a value that the extremes already include and that no sum includes.
        let x = read_part::<S, T>(set, rest, rest[0]);
        most = set.larger(most, x);
        if SUM {
            least = set.smaller(least, x);
            sums.add(set, at, read_part::<S, T>(set, rest, T::default()));
        }
    }
    let (unsigned_max, signed_max) = set.largest(most);
    let (unsigned_min, signed_min) = match SUM {
        true => set.smallest(least),
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

/// Returns the extent's smallest magnitudes.
#[cold]
#[inline(always)]
fn least<S: Quantizing, T: Value>(set: S, values: &[T]) -> Extent {
    let none = Extent::EMPTY;
    let mut least = [
        set.pattern(none.unsigned_min),
        set.pattern(none.signed_min as u32),
    ];
    let mut vectors = values.chunks_exact(set.lanes());
    for vector in &mut vectors {
        least = set.smaller(least, set.values(vector));
    }
    if let [first, ..] = vectors.remainder() {
        least = set.smaller(least, read_part::<S, T>(set, vectors.remainder(), *first));
    }
    let (unsigned_min, signed_min) = set.smallest(least);
    Extent {
        unsigned_min,
        signed_min,
        ..none
    }
}

/// Reads less than a vector and pads it.
#[inline(always)]
fn read_part<S: Quantizing, T: Value>(set: S, values: &[T], fill: T) -> S::Words {
    let mut filled = [fill; 16];
    filled[..values.len()].copy_from_slice(values);
    set.values(&filled)
}

/// Adds the magnitudes of the patterns `smallest..=largest`, however far apart they are.
#[cold]
#[inline(always)]
pub(super) fn add_windows<S: Quantizing, T: Value>(
    set: S,
    values: &[T],
    smallest: u32,
    mut largest: u32,
    sum: &mut ExactSum,
) {
    // At most a block, so that no lane adds more than `LANE` values.
    debug_assert!(values.len() <= VECTORS * set.lanes() * LANE);
    while largest > 0 && largest >= smallest {
        let (window, floor) = Window::below(largest);
        let floor = floor.max(smallest);
        let (from, to) = (set.pattern(floor), set.pattern(largest));
        let (zero, under) = (set.pattern(0), set.pattern(floor.saturating_sub(1)));
        let mut sums = Sums::zero(set);
        let mut next = [zero; 2];
        for (at, values) in values.chunks(set.lanes()).enumerate() {
            let x = read_part::<S, T>(set, values, T::default());
            sums.add(set, at % VECTORS, set.within(x, from, to));
            next = set.larger(next, set.within(x, zero, under));
        }
        window.add(set.units(&sums.0, window), sum);
        largest = set.largest(next).0;
    }
}

/// The sums of a step's lanes.
pub(super) struct Sums<S: Quantizing>(pub(super) [[S::Doubles; 2]; VECTORS]);

impl<S: Quantizing> Sums<S> {
    #[inline(always)]
    pub(super) fn zero(set: S) -> Self {
        Self([[set.splat_f64(0.0); 2]; VECTORS])
    }

    /// Adds magnitudes to the sums of vector `at`.
    #[inline(always)]
    pub(super) fn add(&mut self, set: S, at: usize, x: S::Words) {
        self.0[at] = set.add_magnitudes(self.0[at], x);
    }
}
