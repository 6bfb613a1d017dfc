//! The one order of float reductions: 64 virtual lanes.
//!
//! Float addition depends on its order, so the order is fixed. Lane j takes the terms j, j + 64, j + 128, …
//! in index order; then lane j takes lane j + 32 for j < 32, then j + 16, 8, 4, 2, 1, and lane 0 is the result.
//! Every multiplication and addition is rounded by itself, never fused. 64 lanes are eight AVX2
//! registers, two warps, or one loop: each machine can follow this order at full width.
//!
//! A long stream is cut into runs of [`RUN`] terms, the last of them shorter. Each run is summed so over 64 lanes that
//! start anew, and the runs' totals are added in order. Up to 65,536 terms that is the lanes alone.
//!
//! Runs are what lets threads and processors share a long sum. Lanes that go on from one end of a tensor to the other
//! have one order too, but only one worker can follow it: lane j's sum at term 10⁹ needs all the terms before. With
//! runs a worker needs no more than its own 256 KiB of `f32`; the totals that are left, one in 65,536, are
//! cheap to add in order ([`Lanes::append`]). A long sum is also closer to the true one: of n terms, none goes through
//! more than 1,024 additions in its lane, 6 halvings and one addition for each run, in place of n / 64 additions
//! (for a million terms 1,046 roundings, not 15,631). A second level of 64 lanes over the runs would save more of
//! them, but doubles the state, which small machines have to hold.
//!
//! A lane that no term reached is skipped, and so is a run. Here they hold −0, which IEEE 754 addition leaves
//! every value unchanged by (x + −0 = x, also for x = −0 and x = +0), so adding it is skipping it. A sum of
//! terms that are all −0 is therefore −0; +0 in place of −0 would show there. The sum of no terms is +0.
//!
//! Such a sum can be continued, in chunks of any length, and by one whole run after another, but two long sums
//! do not merge. Sums that must are [`super::ExactSum`]s or integers.

use super::Element;

/// How many lanes the rule has.
pub const LANES: usize = 64;

/// How many terms make a run: 1,024 in each lane.
pub const RUN: usize = 65_536;

/// A reduction under way: `f32` for dot products and distances, `f64` for sums of squared errors.
///
/// 264 or 528 bytes.
///
/// ```
/// use tercet_core::number::{Lanes, squared_error};
///
/// let (a, b) = ([0.1f32; 100], [0.3f32; 100]);
/// let mut lanes = Lanes::<f64>::new();
/// lanes.squared_error(&a[..7], &b[..7]);
/// lanes.squared_error(&a[7..], &b[7..]);
/// assert_eq!(Some(lanes.total()), squared_error(&a, &b));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lanes<F> {
    /// The run under way; −0 where no term of it came yet.
    lanes: [F; LANES],
    /// The sum of the runs that are complete; −0 without one.
    runs: F,
    /// All terms so far. [`RUN`] is a multiple of [`LANES`], so both positions are remainders of it.
    count: u64,
}

/// The methods that differ in the type alone.
macro_rules! lanes_of {
    ($float:ident) => {
        impl Lanes<$float> {
            /// A sum of no terms.
            pub const fn new() -> Self {
                Self {
                    lanes: [-0.0; LANES],
                    runs: -0.0,
                    count: 0,
                }
            }

            /// How many terms there were.
            pub const fn count(&self) -> u64 {
                self.count
            }

            /// The sum of the terms so far. O(1); the reduction can go on afterwards.
            #[inline]
            pub fn total(&self) -> $float {
                if self.count == 0 {
                    return 0.0;
                }
                // Right after a run the lanes hold −0, which changes nothing.
                self.runs + self.halve()
            }

            /// Goes on with the terms of `next`, as if they had been added here one by one.
            ///
            /// This is how workers share a sum: each sums its own runs, and one appends them in order. `None`,
            /// and nothing added, unless this sum is at the end of a run and `next` has at most [`RUN`]
            /// terms.
            pub fn append(&mut self, next: &Self) -> Option<()> {
                if self.in_run() != 0 || next.count > RUN as u64 {
                    return None;
                }
                // Of a complete run `next` holds the total and fresh lanes, of a shorter one −0 and its lanes.
                self.runs += next.runs;
                self.lanes = next.lanes;
                self.count += next.count;
                Some(())
            }

            /// How many terms of the run under way there were.
            const fn in_run(&self) -> usize {
                (self.count % RUN as u64) as usize
            }

            /// Adds a complete run's total to those before.
            #[inline]
            fn end_run(&mut self) {
                self.runs += self.halve();
                self.lanes = [-0.0; LANES];
            }

            /// Lane 0 after halving. Not inlined: callers with several sums would hold as many copies of the lanes.
            #[inline(never)]
            fn halve(&self) -> $float {
                let mut lanes = self.lanes;
                for half in [32, 16, 8, 4, 2, 1] {
                    // Always `Some`; the checked form has no panic to remove.
                    if let Some((low, high)) = lanes.split_at_mut_checked(half) {
                        for (lane, other) in low.iter_mut().zip(high.iter()) {
                            *lane += *other;
                        }
                    }
                }
                let [total, ..] = lanes;
                total
            }

            /// Adds `term(a, b)` of every pair; `None`, and nothing added, when the lengths differ.
            #[inline]
            pub(crate) fn add_pairs<A: Copy, B: Copy>(
                &mut self,
                a: &[A],
                b: &[B],
                term: impl Fn(A, B) -> $float,
            ) -> Option<()> {
                if a.len() != b.len() {
                    return None;
                }
                let (mut a, mut b) = (a, b);
                while !a.is_empty() {
                    let room = RUN - self.in_run();
                    let (a_now, a_next) = a.split_at(room.min(a.len()));
                    let (b_now, b_next) = b.split_at(room.min(b.len()));
                    self.add_in_run(a_now, b_now, &term);
                    (a, b) = (a_next, b_next);
                    if self.in_run() == 0 {
                        self.end_run();
                    }
                }
                Some(())
            }

            /// Adds pairs, at least one and no more than the run has room for.
            #[inline]
            fn add_in_run<A: Copy, B: Copy>(
                &mut self,
                a: &[A],
                b: &[B],
                term: impl Fn(A, B) -> $float,
            ) {
                let first = self.in_run() % LANES;
                self.count += a.len() as u64;
                // Up to lane 0, so that whole rows of lanes follow.
                let ahead = (LANES - first) % LANES;
                let (a_head, a) = a.split_at(ahead.min(a.len()));
                let (b_head, b) = b.split_at(ahead.min(b.len()));
                let lanes = self.lanes.iter_mut().skip(first);
                for ((lane, &a), &b) in lanes.zip(a_head).zip(b_head) {
                    *lane += term(a, b);
                }
                let (mut a_rest, mut b_rest) = (a, b);
                while let (Some((a, a_next)), Some((b, b_next))) = (
                    a_rest.split_first_chunk::<LANES>(),
                    b_rest.split_first_chunk::<LANES>(),
                ) {
                    for ((lane, &a), &b) in self.lanes.iter_mut().zip(a).zip(b) {
                        *lane += term(a, b);
                    }
                    (a_rest, b_rest) = (a_next, b_next);
                }
                for ((lane, &a), &b) in self.lanes.iter_mut().zip(a_rest).zip(b_rest) {
                    *lane += term(a, b);
                }
            }
        }

        impl Default for Lanes<$float> {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}

lanes_of!(f32);
lanes_of!(f64);

impl Lanes<f32> {
    /// Adds the products a_i · b_i, in f32; `None`, and nothing added, when the lengths differ.
    pub fn dot<A: Element, B: Element>(&mut self, a: &[A], b: &[B]) -> Option<()> {
        self.add_pairs(a, b, |a, b| a.to_f32() * b.to_f32())
    }

    /// Adds the squares of the values, in f32.
    pub(crate) fn squares(&mut self, values: &[f32]) {
        // A slice has its own length. As products of a slice by itself, searches' dot products would share this loop's code,
        // and no longer have it inlined.
        let _ = self.add_pairs(values, values, |value, _| value * value);
    }

    /// Adds the squares of a_i − b_i, in f32; `None`, and nothing added, when the lengths differ.
    pub fn squared_distance<A: Element, B: Element>(&mut self, a: &[A], b: &[B]) -> Option<()> {
        self.add_pairs(a, b, |a, b| {
            let difference = a.to_f32() - b.to_f32();
            difference * difference
        })
    }
}

impl Lanes<f64> {
    /// Adds the squares of a_i − b_i, both widened to f64 first; `None`, and nothing added, when the lengths
    /// differ.
    pub fn squared_error<A: Element, B: Element>(&mut self, a: &[A], b: &[B]) -> Option<()> {
        self.add_pairs(a, b, |a, b| {
            let difference = f64::from(a.to_f32()) - f64::from(b.to_f32());
            difference * difference
        })
    }

    /// Adds the products a_i · b_i, each exact in f64; `None`, and nothing added, when the lengths differ.
    ///
    /// Twice 24 bits fit in 53, and 2⁻²⁹⁸ to 2²⁵⁶ in f64's range.
    pub fn products<A: Element, B: Element>(&mut self, a: &[A], b: &[B]) -> Option<()> {
        self.add_pairs(a, b, |a, b| product(a.to_f32(), b.to_f32()))
    }

    /// Adds the squares of the values, each exact in f64.
    pub fn squares<A: Element>(&mut self, values: &[A]) {
        // A slice has its own length.
        let _ = self.products(values, values);
    }

    /// The lanes of the run under way, where `rows` whole rows of terms may follow: at a row's start, with room for them in the run.
    pub(crate) fn before_rows(&self, rows: usize) -> Option<&[f64; LANES]> {
        let room = (RUN - self.in_run()) / LANES;
        (self.in_run().is_multiple_of(LANES) && rows <= room).then_some(&self.lanes)
    }

    /// Goes on from what [`Self::before_rows`] gave, to which an engine has added as many rows of terms.
    #[inline]
    pub(crate) fn after_rows(&mut self, rows: usize, lanes: &[f64; LANES]) {
        self.count += (rows * LANES) as u64;
        self.lanes = *lanes;
        if rows > 0 && self.in_run() == 0 {
            self.end_run();
        }
    }

    /// Adds terms that are made elsewhere, in order.
    pub fn terms(&mut self, terms: &[f64]) {
        // A slice has its own length.
        let _ = self.add_pairs(terms, terms, |term, _| term);
    }
}

/// a · b, exact.
#[inline]
pub(crate) fn product(a: f32, b: f32) -> f64 {
    let b = f64::from(b);
    // QEMU (7.2 at least) computes MDEBR, which multiplies and widens at once, wrongly. Where the compiler does not
    // see the widening it takes MDBR.
    #[cfg(target_arch = "s390x")]
    let b = core::hint::black_box(b);
    f64::from(a) * b
}

/// Σ a_i · b_i in f32, by the rule of [this module](self); `None` when the lengths differ.
pub fn dot<A: Element, B: Element>(a: &[A], b: &[B]) -> Option<f32> {
    let mut lanes = Lanes::<f32>::new();
    lanes.dot(a, b)?;
    Some(lanes.total())
}

/// Σ (a_i − b_i)² in f32, by the rule of [this module](self); `None` when the lengths differ.
pub fn squared_distance<A: Element, B: Element>(a: &[A], b: &[B]) -> Option<f32> {
    let mut lanes = Lanes::<f32>::new();
    lanes.squared_distance(a, b)?;
    Some(lanes.total())
}

/// Σ (a_i − b_i)² in f64, by the rule of [this module](self); `None` when the lengths differ.
pub fn squared_error<A: Element, B: Element>(a: &[A], b: &[B]) -> Option<f64> {
    let mut lanes = Lanes::<f64>::new();
    lanes.squared_error(a, b)?;
    Some(lanes.total())
}

/// Σ x_i² in f64, by the rule of [this module](self).
pub fn sum_of_squares<A: Element>(values: &[A]) -> f64 {
    let mut lanes = Lanes::<f64>::new();
    lanes.squares(values);
    lanes.total()
}
