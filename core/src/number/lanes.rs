//! The one order of float reductions: 64 virtual lanes.
//!
//! Float addition depends on its order, so the order is fixed. Lane j takes the terms j, j + 64, j + 128, … in index
//! order. Then lane j adds lane j + 32 for j < 32, then j + 16, 8, 4, 2, 1, and lane 0 is the result. Every
//! multiplication and addition is rounded by itself, never fused. 64 lanes are eight AVX2 registers, two warps, or
//! one loop: each machine can follow this order at full width.
//!
//! A long stream is divided into runs of [`RUN`] terms, of which the last may be shorter. Each run is summed in this
//! way over 64 new lanes, and the runs' totals are added in order. Up to 65,536 terms there is only one run.
//!
//! Runs let threads and processors share a long sum. Lanes from one end of a tensor to the other would have a fixed
//! order too, but only one worker could follow it: lane j's sum at term 10⁹ needs all the terms before. With runs a
//! worker needs no more than its own 256 KiB of `f32`. The remaining totals, one in 65,536, are cheap to add in order
//! ([`Lanes::append`]). A long sum is also closer to the true one. Of n terms, none goes through more than 1,024
//! additions in its lane, 6 halvings and one addition per run, instead of n / 64 additions (1,046 roundings for a
//! million terms, not 15,631). A second level of 64 lanes over the runs would save more of them, but would double the
//! state, which small machines have to hold.
//!
//! A lane without terms is skipped, and so is a run. In this code they hold −0. IEEE 754 addition of −0 changes no
//! value (x + −0 = x, also for x = −0 and x = +0), so adding it is the same as skipping it. A sum of terms that are
//! all −0 is therefore −0; with +0 in place of −0 it would be +0. The sum of no terms is +0.
//!
//! Such a sum can continue with chunks of any length, and with one whole run after another, but two long sums do not
//! merge. Sums that must merge are [`super::ExactSum`]s or integers.

use super::Element;

/// Number of lanes.
pub const LANES: usize = 64;

/// Number of terms per run: 1,024 in each lane.
pub const RUN: usize = 65_536;

/// A reduction in progress: `f32` for dot products and distances, `f64` for sums of squared errors.
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
    /// Lanes of the current run; −0 if they have no term of it yet.
    lanes: [F; LANES],
    /// Sum of the complete runs; −0 if there is none.
    runs: F,
    /// Number of all terms so far. [`RUN`] is a multiple of [`LANES`], so both positions are remainders of it.
    count: u64,
}

/// The methods that differ only in the type.
macro_rules! lanes_of {
    ($float:ident) => {
        impl Lanes<$float> {
            /// Returns a sum of no terms.
            pub const fn new() -> Self {
                Self {
                    lanes: [-0.0; LANES],
                    runs: -0.0,
                    count: 0,
                }
            }

            /// Returns the number of terms so far.
            pub const fn count(&self) -> u64 {
                self.count
            }

            /// Returns the sum of the terms so far. O(1); the reduction can continue afterwards.
            #[inline]
            pub fn total(&self) -> $float {
                if self.count == 0 {
                    return 0.0;
                }
                // Directly after a run the lanes hold −0, which changes nothing.
                self.runs + self.halve()
            }

            /// Continues with the terms of `next`, as if they had been added here one by one.
            ///
            /// Workers use this to share a sum: each sums its own runs, and one appends them in order. Returns `None`
            /// and adds nothing unless this sum is at the end of a run and `next` has at most [`RUN`] terms.
            pub fn append(&mut self, next: &Self) -> Option<()> {
                if self.in_run() != 0 || next.count > RUN as u64 {
                    return None;
                }
                // For a complete run, `next` holds the total and new lanes; for a shorter one, −0 and its lanes.
                self.runs += next.runs;
                self.lanes = next.lanes;
                self.count += next.count;
                Some(())
            }

            /// Returns the number of terms in the current run.
            const fn in_run(&self) -> usize {
                (self.count % RUN as u64) as usize
            }

            /// Adds the total of a complete run to those before.
            #[inline]
            fn end_run(&mut self) {
                self.runs += self.halve();
                self.lanes = [-0.0; LANES];
            }

            /// Returns lane 0 after halving. Not inlined: callers with several sums would hold as many copies of the
            /// lanes.
            #[inline(never)]
            fn halve(&self) -> $float {
                let mut lanes = self.lanes;
                for half in [32, 16, 8, 4, 2, 1] {
                    // Always `Some`; the checked form contains no panic.
                    if let Some((low, high)) = lanes.split_at_mut_checked(half) {
                        for (lane, other) in low.iter_mut().zip(high.iter()) {
                            *lane += *other;
                        }
                    }
                }
                let [total, ..] = lanes;
                total
            }

            /// Adds `term(a, b)` of every pair; returns `None` and adds nothing if the lengths differ.
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

            /// Adds pairs: at least one, and at most as many as the run has space for.
            #[inline]
            fn add_in_run<A: Copy, B: Copy>(
                &mut self,
                a: &[A],
                b: &[B],
                term: impl Fn(A, B) -> $float,
            ) {
                let first = self.in_run() % LANES;
                self.count += a.len() as u64;
                // First up to lane 0, so that whole rows of lanes follow.
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
    /// Adds the products a_i · b_i, in f32; returns `None` and adds nothing if the lengths differ.
    pub fn dot<A: Element, B: Element>(&mut self, a: &[A], b: &[B]) -> Option<()> {
        self.add_pairs(a, b, |a, b| a.to_f32() * b.to_f32())
    }

    /// Adds the squares of the values, in f32.
    pub(crate) fn squares(&mut self, values: &[f32]) {
        // The lengths are equal. With products of a slice by itself, this loop would share its code with searches'
        // dot products, which would then no longer be inlined.
        let _ = self.add_pairs(values, values, |value, _| value * value);
    }

    /// Adds the squares of a_i − b_i, in f32; returns `None` and adds nothing if the lengths differ.
    pub fn squared_distance<A: Element, B: Element>(&mut self, a: &[A], b: &[B]) -> Option<()> {
        self.add_pairs(a, b, |a, b| {
            let difference = a.to_f32() - b.to_f32();
            difference * difference
        })
    }
}

impl Lanes<f64> {
    /// Adds the squares of a_i − b_i, both converted to f64 first; returns `None` and adds nothing if the lengths
    /// differ.
    pub fn squared_error<A: Element, B: Element>(&mut self, a: &[A], b: &[B]) -> Option<()> {
        self.add_pairs(a, b, |a, b| {
            let difference = f64::from(a.to_f32()) - f64::from(b.to_f32());
            difference * difference
        })
    }

    /// Adds the products a_i · b_i, each exact in f64; returns `None` and adds nothing if the lengths differ.
    ///
    /// A product has twice 24 bits, which fit 53, and its range of 2⁻²⁹⁸ to 2²⁵⁶ is within f64's.
    pub fn products<A: Element, B: Element>(&mut self, a: &[A], b: &[B]) -> Option<()> {
        self.add_pairs(a, b, |a, b| product(a.to_f32(), b.to_f32()))
    }

    /// Adds the squares of the values, each exact in f64.
    pub fn squares<A: Element>(&mut self, values: &[A]) {
        // The lengths are equal.
        let _ = self.products(values, values);
    }

    /// Returns the lanes of the current run if `rows` whole rows of terms may follow: at the start of a row, with
    /// space for them in the run.
    pub(crate) fn before_rows(&self, rows: usize) -> Option<&[f64; LANES]> {
        let room = (RUN - self.in_run()) / LANES;
        (self.in_run().is_multiple_of(LANES) && rows <= room).then_some(&self.lanes)
    }

    /// Continues from the lanes of [`Self::before_rows`], to which an engine has added that many rows of terms.
    #[inline]
    pub(crate) fn after_rows(&mut self, rows: usize, lanes: &[f64; LANES]) {
        self.count += (rows * LANES) as u64;
        self.lanes = *lanes;
        if rows > 0 && self.in_run() == 0 {
            self.end_run();
        }
    }

    /// Adds terms that were computed elsewhere, in order.
    pub fn terms(&mut self, terms: &[f64]) {
        // The lengths are equal.
        let _ = self.add_pairs(terms, terms, |term, _| term);
    }
}

/// Returns a · b, exact.
#[inline]
pub(crate) fn product(a: f32, b: f32) -> f64 {
    let b = f64::from(b);
    // QEMU (at least 7.2) computes MDEBR, which multiplies and converts in one instruction, incorrectly. If the
    // compiler does not see the conversion, it uses MDBR.
    #[cfg(target_arch = "s390x")]
    let b = core::hint::black_box(b);
    f64::from(a) * b
}

/// Returns Σ a_i · b_i in f32, by the rule of [this module](self); `None` if the lengths differ.
pub fn dot<A: Element, B: Element>(a: &[A], b: &[B]) -> Option<f32> {
    let mut lanes = Lanes::<f32>::new();
    lanes.dot(a, b)?;
    Some(lanes.total())
}

/// Returns Σ (a_i − b_i)² in f32, by the rule of [this module](self); `None` if the lengths differ.
pub fn squared_distance<A: Element, B: Element>(a: &[A], b: &[B]) -> Option<f32> {
    let mut lanes = Lanes::<f32>::new();
    lanes.squared_distance(a, b)?;
    Some(lanes.total())
}

/// Returns Σ (a_i − b_i)² in f64, by the rule of [this module](self); `None` if the lengths differ.
pub fn squared_error<A: Element, B: Element>(a: &[A], b: &[B]) -> Option<f64> {
    let mut lanes = Lanes::<f64>::new();
    lanes.squared_error(a, b)?;
    Some(lanes.total())
}

/// Returns Σ x_i² in f64, by the rule of [this module](self).
pub fn sum_of_squares<A: Element>(values: &[A]) -> f64 {
    let mut lanes = Lanes::<f64>::new();
    lanes.squares(values);
    lanes.total()
}
