//! The lower convex hull of each tensor's (bytes, error) points, and the climb up all hulls together.

use super::{Adaptive, Cost};

/// A step up a tensor's hull.
#[derive(Clone, Copy)]
pub(super) struct Upgrade {
    /// The format that the step leads to, and the tensor's cost in it.
    format: usize,
    to: Cost,
    /// Bytes it adds and error it removes.
    bytes: u64,
    removed: f64,
    /// Error removed per byte.
    slope: f64,
}

impl Upgrade {
    /// Returns a key that orders steps like their slopes, which are finite and not negative.
    fn key(&self) -> u64 {
        self.slope.to_bits()
    }
}

/// Result of the climb.
pub(super) struct Climbed {
    /// The tensor of the first step that did not fit; `None` if all fitted.
    pub(super) broken: Option<usize>,
    /// The error of the linear relaxation.
    pub(super) relaxed: f64,
}

impl Adaptive<'_> {
    /// Takes the steps of all hulls, steepest first, while they fit into `left` bytes. Of equal steps it takes the
    /// lowest tensor's first. `choice` holds the smallest formats, and `error` is their error.
    ///
    /// Nothing is sorted, so no scratch is needed: a bisection over the slope's bit pattern, of 64 steps, finds the
    /// slope at which the budget ends.
    pub(super) fn climb(&self, choice: &mut [usize], mut left: u64, error: f64) -> Climbed {
        let steeper = |key: u64| -> u64 {
            let steps = (0..choice.len()).flat_map(|tensor| self.steps(tensor));
            // At most the bytes of all largest formats; their sum was checked.
            steps
                .filter(|step| step.key() > key)
                .map(|step| step.bytes)
                .sum()
        };
        // Find the smallest pattern for which all steeper steps fit.
        let (mut low, mut high) = (0, u64::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            if steeper(middle) <= left {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let mut relaxed = error;
        // First take all steeper steps, which fit; then the equal ones, of which one may not fit.
        for above in [true, false] {
            for (tensor, format) in choice.iter_mut().enumerate() {
                let due = |step: &Upgrade| match above {
                    true => step.key() > low,
                    false => step.key() == low,
                };
                for step in self.steps(tensor).filter(due) {
                    if step.bytes > left {
                        // Slope and product are rounded too; the bound's margin covers both.
                        relaxed -= step.slope * left as f64;
                        let broken = Some(tensor);
                        return Climbed { broken, relaxed };
                    }
                    left -= step.bytes;
                    relaxed -= step.removed;
                    *format = step.format;
                }
            }
        }
        Climbed {
            broken: None,
            relaxed,
        }
    }

    /// Returns the steps of a tensor's hull from its smallest format up. No slope exceeds the one before it.
    fn steps(&self, tensor: usize) -> impl Iterator<Item = Upgrade> + '_ {
        let start = self.smallest(tensor).map(|(_, cost)| cost);
        let first = start.and_then(|cost| self.steepest(tensor, cost));
        core::iter::successors(first, move |step| {
            let mut next = self.steepest(tensor, step.to)?;
            // Rounding must not make the step look steeper.
            next.slope = next.slope.min(step.slope);
            Some(next)
        })
    }

    /// Returns the step from `from` that removes the most error per byte; of equal ones the longest, then the lowest
    /// format.
    fn steepest(&self, tensor: usize, from: Cost) -> Option<Upgrade> {
        self.row(tensor)
            .filter(|(_, to)| to.bytes > from.bytes && to.error < from.error)
            .map(|(format, to)| {
                let (bytes, removed) = (to.bytes - from.bytes, from.error - to.error);
                Upgrade {
                    format,
                    to,
                    bytes,
                    removed,
                    slope: removed / bytes as f64,
                }
            })
            .reduce(|best, next| {
                let longer = next.slope == best.slope && next.bytes > best.bytes;
                if next.slope > best.slope || longer {
                    next
                } else {
                    best
                }
            })
    }
}
