//! Changes of one or two tensors that lower the error of a complete choice.

use super::Adaptive;

/// Up to this number of costs, every pair of tensors is tried: quadratic in the number of tensors.
const ALL_PAIRS: usize = 2048;

impl Adaptive<'_> {
    /// Spends the remaining bytes, and tries to pay for better formats of tensor `broken` with bytes of other
    /// tensors, until neither helps. The number of rounds is at most the number of costs, so roundings cannot cause
    /// an endless loop.
    pub(super) fn improve(&self, choice: &mut [usize], broken: usize) {
        for _ in self.costs {
            let left = self.budget.saturating_sub(self.total(choice).bytes);
            let single = self.best_single(choice, left);
            let Some(change) = single.or_else(|| self.best_pairs(choice, broken, left)) else {
                break;
            };
            for (tensor, format) in change.moves.into_iter().flatten() {
                if let Some(slot) = choice.get_mut(tensor) {
                    *slot = format;
                }
            }
        }
    }

    /// Returns the one change of format within `left` more bytes that removes the most error.
    fn best_single(&self, choice: &[usize], left: u64) -> Option<Change> {
        let mut best = None;
        for (tensor, &format) in choice.iter().enumerate() {
            let Some(now) = self.cost(tensor, format) else {
                continue;
            };
            for (format, to) in self.row(tensor) {
                if to.bytes <= now.bytes.saturating_add(left) {
                    let moves = [Some((tensor, format)), None];
                    Change::keep_best(&mut best, now.error - to.error, moves);
                }
            }
        }
        best
    }

    /// Returns the best change of two tensors together. If there are many costs, one of the two is `broken`.
    fn best_pairs(&self, choice: &[usize], broken: usize, left: u64) -> Option<Change> {
        let pair = |tensor| self.best_pair(choice, tensor, left);
        if self.costs.len() > ALL_PAIRS {
            return pair(broken);
        }
        (0..choice.len()).filter_map(pair).reduce(|best, next| {
            if next.removed > best.removed {
                next
            } else {
                best
            }
        })
    }

    /// Returns the best change of `broken` and one other tensor together.
    fn best_pair(&self, choice: &[usize], broken: usize, left: u64) -> Option<Change> {
        let now = self.cost(broken, *choice.get(broken)?)?;
        let mut best = None;
        for (format, to) in self.row(broken) {
            for (other, &other_format) in choice.iter().enumerate() {
                let Some(other_now) = self.cost(other, other_format) else {
                    continue;
                };
                if other == broken {
                    continue;
                }
                let bytes = now.bytes as u128 + u128::from(other_now.bytes) + u128::from(left);
                for (other_format, other_to) in self.row(other) {
                    if u128::from(to.bytes) + u128::from(other_to.bytes) <= bytes {
                        let removed = (now.error - to.error) + (other_now.error - other_to.error);
                        let moves = [Some((broken, format)), Some((other, other_format))];
                        Change::keep_best(&mut best, removed, moves);
                    }
                }
            }
        }
        best
    }
}

/// New formats for one or two tensors, and the error that they remove.
struct Change {
    removed: f64,
    moves: [Option<(usize, usize)>; 2],
}

impl Change {
    /// Keeps the larger removal above 0; of equal ones the first.
    fn keep_best(best: &mut Option<Self>, removed: f64, moves: [Option<(usize, usize)>; 2]) {
        if removed > best.as_ref().map_or(0.0, |best| best.removed) {
            *best = Some(Self { removed, moves });
        }
    }
}
