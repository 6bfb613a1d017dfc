//! Measures of the distance between a restored tensor and the original.
//!
//! ```
//! use tercet_core::quant::Comparison;
//!
//! let mut comparison = Comparison::new();
//! comparison.push(&[3.0_f32, -4.0], &[3.0_f32, -3.5])?;
//! let measures = comparison.finish().unwrap();
//! assert_eq!(measures.squared_error, 0.25);
//! assert_eq!(measures.relative_error, 0.01);
//! assert_eq!(measures.sqnr_db, 20.0);
//! assert_eq!(measures.max_error, 0.5);
//! # Ok::<(), tercet_core::quant::QuantError>(())
//! ```

use super::QuantError;
use crate::number::lanes::LANES;
use crate::number::{Element, Lanes, first_not_finite, log2, root};

/// Compares an original with its restored copy, chunk by chunk, in one pass.
///
/// Differences and products are f64 (the product of two f32 is exact in f64) and are summed by the rule of
/// [`crate::number::lanes`], so the result does not depend on the chunks' lengths. Several threads can each compare
/// runs of [`RUN`](crate::number::RUN) values; then one thread [appends](Self::append) them. 2 KiB of state; O(1) per
/// value.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    error: Lanes<f64>,
    original: Lanes<f64>,
    restored: Lanes<f64>,
    product: Lanes<f64>,
    max_error: f64,
    max_index: u64,
}

/// The sums to which an engine adds whole rows of [`LANES`] values; see [`Comparison::push_rows`].
///
/// Lane j of a sum takes the j-th term of each row, in order. Products and additions are f64, rounded one by one and
/// never fused.
#[derive(Clone, Debug, PartialEq)]
pub struct RowSums {
    /// (original − restored)², with the values widened before the subtraction.
    pub error: [f64; LANES],
    /// original².
    pub original: [f64; LANES],
    /// restored².
    pub restored: [f64; LANES],
    /// original · restored.
    pub product: [f64; LANES],
    /// Largest |original − restored| so far.
    pub max_error: f64,
    /// Its lowest index among all values.
    pub max_index: u64,
}

/// Result of a [`Comparison`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Measures {
    /// Number of values.
    pub count: u64,
    /// Σ(original − restored)².
    pub squared_error: f64,
    /// Σ original².
    pub energy: f64,
    /// Mean squared error: `squared_error / count`.
    pub mse: f64,
    /// `squared_error / energy`; 0 if both are 0, infinite if only the energy is 0.
    pub relative_error: f64,
    /// Signal to quantization noise in decibels: 10 · log₁₀(energy / squared_error). +∞ without error, −∞ with error
    /// but no energy. The relative distance from the logarithm of the two sums is within 2⁻⁴⁸.
    pub sqnr_db: f64,
    /// Cosine of the angle between the tensors; 0 if either is all zeros.
    pub cosine: f64,
    /// Largest |original − restored|.
    pub max_error: f64,
    /// Lowest index of that value; 0 if there is no error.
    pub max_index: u64,
}

/// Prints the three figures that most readers look for, in one line.
impl core::fmt::Display for Measures {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self {
            sqnr_db,
            cosine,
            max_error,
            ..
        } = self;
        write!(
            f,
            "SQNR {sqnr_db:.2} dB, cosine {cosine:.6}, largest error {max_error:.3e}"
        )
    }
}

/// Number of values that go through all sums before the next ones, so that they are read from memory once.
const BLOCK: usize = 1024;

/// 10 · log₁₀(2): decibels per factor of two.
const DECIBELS_PER_OCTAVE: f64 = 3.010_299_956_639_812;

impl Comparison {
    /// Returns a comparison of no values.
    pub const fn new() -> Self {
        Self {
            error: Lanes::<f64>::new(),
            original: Lanes::<f64>::new(),
            restored: Lanes::<f64>::new(),
            product: Lanes::<f64>::new(),
            max_error: 0.0,
            max_index: 0,
        }
    }

    /// Returns the number of values of each tensor so far.
    pub const fn count(&self) -> u64 {
        self.error.count()
    }

    /// Adds the next values of both tensors.
    ///
    /// # Errors
    /// [`QuantError::Length`] for chunks of different lengths; [`QuantError::NotFinite`] with the index in the whole
    /// stream if either value is a NaN or an infinity. Nothing of the chunk is added then.
    pub fn push<A: Element, B: Element>(
        &mut self,
        original: &[A],
        restored: &[B],
    ) -> Result<(), QuantError> {
        if original.len() != restored.len() {
            return Err(QuantError::Length {
                expected: original.len(),
                found: restored.len(),
            });
        }
        let bad = [first_not_finite(original), first_not_finite(restored)];
        if let Some(index) = bad.into_iter().flatten().min() {
            let index = self.count() + index as u64;
            return Err(QuantError::NotFinite { index });
        }
        for (a, b) in original.chunks(BLOCK).zip(restored.chunks(BLOCK)) {
            self.largest(a, b);
            // The lengths are equal, so none of these fails.
            let _ = self.error.squared_error(a, b);
            let _ = self.product.products(a, b);
            self.original.squares(a);
            self.restored.squares(b);
        }
        Ok(())
    }

    /// Continues with whole rows of [`LANES`] values in an engine's own loop. `add` adds their terms to the sums, and
    /// replaces the largest error if it finds a larger one.
    ///
    /// Returns `None` and adds nothing in these cases: [`Self::count`] is not a multiple of [`LANES`]; the current
    /// run of [`RUN`](crate::number::RUN) values has no room for the rows; or an error sum is not finite afterwards.
    /// Finite values cannot cause the last case (a lane holds 1,024 terms of at most 2²⁵⁸), and a NaN or an infinity
    /// in either tensor always does, so the engine need not look for them. O(1) besides `add`; 2 KiB of stack.
    ///
    /// ```
    /// use tercet_core::quant::Comparison;
    ///
    /// let (a, b) = ([1.0f32; 64], [1.5f32; 64]);
    /// let (mut by_rows, mut pushed) = (Comparison::new(), Comparison::new());
    /// by_rows.push_rows(1, |sums| {
    ///     for lane in 0..64 {
    ///         sums.error[lane] += 0.25;
    ///         sums.original[lane] += 1.0;
    ///         sums.restored[lane] += 2.25;
    ///         sums.product[lane] += 1.5;
    ///     }
    ///     sums.max_error = 0.5;
    /// });
    /// pushed.push(&a, &b)?;
    /// assert_eq!(by_rows, pushed);
    /// # Ok::<(), tercet_core::quant::QuantError>(())
    /// ```
    pub fn push_rows(&mut self, rows: usize, add: impl FnOnce(&mut RowSums)) -> Option<()> {
        // All four have the same count, so the first check covers the others.
        let mut sums = RowSums {
            error: *self.error.before_rows(rows)?,
            original: *self.original.before_rows(rows)?,
            restored: *self.restored.before_rows(rows)?,
            product: *self.product.before_rows(rows)?,
            max_error: self.max_error,
            max_index: self.max_index,
        };
        add(&mut sums);
        if !sums.error.iter().all(|lane| lane.is_finite()) {
            return None;
        }
        self.error.after_rows(rows, &sums.error);
        self.original.after_rows(rows, &sums.original);
        self.restored.after_rows(rows, &sums.restored);
        self.product.after_rows(rows, &sums.product);
        self.max_error = sums.max_error;
        self.max_index = sums.max_index;
        Some(())
    }

    /// Continues with the values of `next`, as if they had been pushed here.
    ///
    /// Returns `None` and adds nothing unless this comparison is at the end of a run of [`RUN`](crate::number::RUN)
    /// values (or empty) and `next` has at most that many values. O(1).
    pub fn append(&mut self, next: &Self) -> Option<()> {
        let count = self.count();
        // All four have the same count, so the first check covers the others.
        self.error.append(&next.error)?;
        self.original.append(&next.original)?;
        self.restored.append(&next.restored)?;
        self.product.append(&next.product)?;
        // The lower index stays unless the error is larger.
        if next.max_error > self.max_error {
            self.max_error = next.max_error;
            self.max_index = count + next.max_index;
        }
        Some(())
    }

    /// Finds the largest error of values that are not summed yet.
    fn largest<A: Element, B: Element>(&mut self, a: &[A], b: &[B]) {
        let distance = |(a, b): (&A, &B)| (f64::from(a.to_f32()) - f64::from(b.to_f32())).abs();
        let distances = || a.iter().zip(b).map(distance);
        // Positive f64 order like their bits, and a maximum of integers does not depend on the order.
        let largest = distances().map(f64::to_bits).max().unwrap_or(0);
        if largest > self.max_error.to_bits() {
            self.max_error = f64::from_bits(largest);
            let within = distances().position(|x| x.to_bits() == largest);
            self.max_index = self.count() + within.unwrap_or(0) as u64;
        }
    }

    /// Returns the measures of all values so far, or `None` if there are none. The comparison may continue.
    pub fn finish(&self) -> Option<Measures> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let squared_error = self.error.total();
        let energy = self.original.total();
        let restored = self.restored.total();
        // Sums of f32 products lie in [2⁻²⁹⁸, 2³²⁰], so their products and quotients stay finite.
        let norms = root::sqrt_f64(energy * restored);
        Some(Measures {
            count,
            squared_error,
            energy,
            mse: squared_error / count as f64,
            relative_error: if squared_error == 0.0 {
                0.0
            } else {
                squared_error / energy
            },
            sqnr_db: if squared_error == 0.0 {
                f64::INFINITY
            } else {
                DECIBELS_PER_OCTAVE * log2(energy / squared_error)
            },
            cosine: if norms == 0.0 {
                0.0
            } else {
                // Adding 0 turns −0 into 0.
                (self.product.total() / norms + 0.0).clamp(-1.0, 1.0)
            },
            max_error: self.max_error,
            max_index: self.max_index,
        })
    }
}

impl Default for Comparison {
    fn default() -> Self {
        Self::new()
    }
}
