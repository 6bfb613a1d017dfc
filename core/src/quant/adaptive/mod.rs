//! Chooses a format for each tensor so that the total error is least within a byte budget.
//!
//! The problem is a multiple-choice knapsack. The method is the Lagrangian one of bit allocation (Shoham and Gersho,
//! *Efficient bit allocation for an arbitrary set of quantizers*, IEEE Trans. ASSP 36(9), 1988). Each tensor starts
//! at its smallest format and climbs the lower convex hull of (bytes, error). Of all tensors' next steps, the one
//! that removes the most error per byte is taken first.
//!
//! **Gap.** Taking a fraction of the first step that does not fit gives the optimum of the linear relaxation. This is
//! a lower bound for every choice within the budget. The climb misses it by less than the error that this one step
//! removes. Then single tensors and pairs of tensors change formats while that removes error: all pairs up to 2,048
//! costs, above that only pairs with the tensor of that step. [`Allocation`] reports the bound beside the error.
//!
//! ```
//! use tercet_core::quant::adaptive::{Adaptive, Cost};
//!
//! // Two tensors, each in a small, a middle and a large format.
//! let cost = |bytes, error| Some(Cost { bytes, error });
//! let costs = [
//!     cost(10, 8.0), cost(20, 4.0), cost(80, 0.5),
//!     cost(10, 90.0), cost(20, 30.0), cost(80, 1.0),
//! ];
//! let problem = Adaptive { formats: 3, costs: &costs, weights: None, budget: 100 };
//! let mut choice = [0; 2];
//! let allocation = problem.choose(&mut choice)?;
//! assert_eq!(choice, [1, 2]);
//! assert_eq!((allocation.bytes, allocation.error), (100, 5.0));
//! # Ok::<(), tercet_core::quant::adaptive::AdaptiveError>(())
//! ```

mod hull;
mod improve;

/// Cost of a tensor in one format.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Cost {
    /// Bytes of the tensor in this format.
    pub bytes: u64,
    /// Squared error of the tensor: finite, not negative.
    pub error: f64,
}

/// The costs of all tensors in all formats, and the budget for all of them.
#[derive(Clone, Copy, Debug)]
pub struct Adaptive<'a> {
    /// Number of formats; each row of `costs` has as many entries.
    pub formats: usize,
    /// Row-major, one row per tensor; `None` if a tensor cannot take a format.
    pub costs: &'a [Option<Cost>],
    /// One factor per tensor for its errors, finite and not negative. If absent, all are 1.
    pub weights: Option<&'a [f64]>,
    /// Largest number of bytes of all tensors together.
    pub budget: u64,
}

/// Totals of the choice, and a bound on its distance from the best.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Allocation {
    /// Bytes of all tensors in their chosen formats; within the budget.
    pub bytes: u64,
    /// Sum of their weighted errors, added in order.
    pub error: f64,
    /// Lower bound: no choice within the budget has a smaller error. It is the linear relaxation's optimum minus its
    /// possible rounding errors.
    pub bound: f64,
}

impl Allocation {
    /// Returns the largest error that a better choice could still save.
    pub fn gap(&self) -> f64 {
        self.error - self.bound
    }
}

error_enum! {
    /// Reason why no formats were chosen.
    pub enum AdaptiveError {
        /// A slice does not fit the number of tensors, or the costs do not divide into rows of `formats`.
        Length {
            /// The required length.
            expected: usize,
            /// The length given.
            found: usize,
        } => "slice of {found} elements where {expected} are needed",
        /// A tensor can take none of the formats.
        NoFormat {
            /// Index of the tensor.
            tensor: usize,
        } => "tensor {tensor} has no format to take",
        /// An error or a weight is negative or not finite, or the sum of the weighted errors up to this tensor
        /// exceeds the largest f64.
        NotFinite {
            /// Index of the tensor.
            tensor: usize,
        } => "an error or weight of tensor {tensor} is negative or too large",
        /// The sum of the largest formats' bytes does not fit `u64`.
        Overflow => "the total size exceeds 2^64 bytes",
        /// Even the smallest formats exceed the budget.
        Infeasible {
            /// The budget in bytes.
            budget: u64,
            /// Bytes of all tensors in their smallest formats.
            minimal: u64,
        } => "a budget of {budget} bytes; the smallest formats take {minimal}",
    }
}

/// Returns the bytes that `values` values may take at `millibits` thousandths of a bit per value, rounded down.
pub const fn budget_bytes(values: u64, millibits: u32) -> u64 {
    let bytes = values as u128 * millibits as u128 / 8000;
    if bytes > u64::MAX as u128 {
        u64::MAX
    } else {
        bytes as u64
    }
}

impl Adaptive<'_> {
    /// Returns the bytes of the costs and the choice of this many tensors and formats, on a machine with addresses of
    /// 32 bits; the largest `usize` if there are more.
    pub const fn bytes(tensors: usize, formats: usize) -> usize {
        let row = formats.saturating_mul(size_of::<Option<Cost>>());
        tensors.saturating_mul(row.saturating_add(size_of::<u32>()))
    }

    /// Writes each tensor's format into `choice`, one element per tensor.
    ///
    /// Time: O(64·T·F²) for T tensors and F formats. Each improvement found afterwards (at most T·F of them) takes
    /// O(T²·F²) up to 2,048 costs and O(T·F²) above. No scratch. Ties go to the lowest tensor, then to the lowest
    /// format. Every comparison is of f64 values computed in a fixed order, so the choice is the same on every
    /// machine.
    ///
    /// # Errors
    /// See [`AdaptiveError`]; `choice` is then unspecified.
    pub fn choose(&self, choice: &mut [usize]) -> Result<Allocation, AdaptiveError> {
        self.check(choice.len())?;
        for (tensor, format) in choice.iter_mut().enumerate() {
            let smallest = self.smallest(tensor);
            (*format, _) = smallest.ok_or(AdaptiveError::NoFormat { tensor })?;
        }
        let start = self.total(choice);
        let left = self
            .budget
            .checked_sub(start.bytes)
            .ok_or(AdaptiveError::Infeasible {
                budget: self.budget,
                minimal: start.bytes,
            })?;
        let climbed = self.climb(choice, left, start.error);
        if let Some(broken) = climbed.broken {
            self.improve(choice, broken);
        }
        let Cost { bytes, error } = self.total(choice);
        // Each of these operations rounds by at most 2⁻⁵³ of a value that is no larger than the first error.
        let operations = (2 * self.costs.len() + choice.len() + 4) as f64;
        let bound = climbed.relaxed - operations * f64::EPSILON * start.error;
        Ok(Allocation {
            bytes,
            error,
            // Comparisons, because f64::max leaves the sign of a zero open.
            bound: if bound > 0.0 { bound.min(error) } else { 0.0 },
        })
    }

    fn check(&self, choices: usize) -> Result<(), AdaptiveError> {
        let length = |expected, found| {
            if expected == found {
                Ok(())
            } else {
                Err(AdaptiveError::Length { expected, found })
            }
        };
        length(choices.saturating_mul(self.formats), self.costs.len())?;
        if let Some(weights) = self.weights {
            length(choices, weights.len())?;
        }
        let finite = |x: f64| (0.0..f64::INFINITY).contains(&x);
        let (mut bytes, mut error) = (0u64, 0.0);
        for tensor in 0..choices {
            let mut largest = Cost {
                bytes: 0,
                error: 0.0,
            };
            for (_, cost) in self.row(tensor) {
                if !finite(cost.error) {
                    return Err(AdaptiveError::NotFinite { tensor });
                }
                largest.bytes = largest.bytes.max(cost.bytes);
                largest.error = largest.error.max(cost.error);
            }
            bytes = bytes
                .checked_add(largest.bytes)
                .ok_or(AdaptiveError::Overflow)?;
            error += largest.error;
            if !finite(error) || !finite(self.weight(tensor)) {
                return Err(AdaptiveError::NotFinite { tensor });
            }
        }
        Ok(())
    }

    fn weight(&self, tensor: usize) -> f64 {
        let weight = |weights: &[f64]| weights.get(tensor).copied().unwrap_or(0.0);
        self.weights.map_or(1.0, weight)
    }

    /// Returns the formats that a tensor can take, with weighted errors.
    fn row(&self, tensor: usize) -> impl Iterator<Item = (usize, Cost)> + Clone + '_ {
        let weight = self.weight(tensor);
        let row = self.costs.chunks(self.formats.max(1)).nth(tensor);
        row.unwrap_or(&[])
            .iter()
            .enumerate()
            .filter_map(move |(format, cost)| {
                let Cost { bytes, error } = (*cost)?;
                let error = error * weight;
                Some((format, Cost { bytes, error }))
            })
    }

    fn cost(&self, tensor: usize, format: usize) -> Option<Cost> {
        self.row(tensor)
            .find(|&(index, _)| index == format)
            .map(|(_, cost)| cost)
    }

    /// Returns the format with the fewest bytes; of equal ones the one with the least error, then the lowest.
    fn smallest(&self, tensor: usize) -> Option<(usize, Cost)> {
        self.row(tensor).reduce(|best, next| {
            let (a, b) = (best.1, next.1);
            if b.bytes < a.bytes || (b.bytes == a.bytes && b.error < a.error) {
                next
            } else {
                best
            }
        })
    }

    /// Returns the bytes and the weighted error of a choice, added in order.
    fn total(&self, choice: &[usize]) -> Cost {
        let mut total = Cost {
            bytes: 0,
            error: 0.0,
        };
        for (tensor, &format) in choice.iter().enumerate() {
            if let Some(cost) = self.cost(tensor, format) {
                total.bytes += cost.bytes;
                total.error += cost.error;
            }
        }
        total
    }
}
