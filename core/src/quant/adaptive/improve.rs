//! Changes of one tensor or two that lower the error of a choice that stands.

use super::Adaptive;

/// Up to so many costs every pair of tensors is looked at, in the square of their number.
const ALL_PAIRS: usize = 2048;

impl Adaptive<'_> {
    /// Spends what is left, and tries to pay for better formats of tensor `broken` elsewhere, until neither
    /// helps: at most as many rounds as there are costs, so that roundings cannot make it go in circles.
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

    /// The one change of format within `left` more bytes that removes most error.
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

    /// The best change of two tensors together, one of them `broken` where there are many.
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

    /// The best change of `broken` and one other tensor together.
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

/// New formats for one tensor or two, and the error that they remove.
struct Change {
    removed: f64,
    moves: [Option<(usize, usize)>; 2],
}

impl Change {
    /// Keeps the larger removal above 0; of equals the first.
    fn keep_best(best: &mut Option<Self>, removed: f64, moves: [Option<(usize, usize)>; 2]) {
        if removed > best.as_ref().map_or(0.0, |best| best.removed) {
            *best = Some(Self { removed, moves });
        }
    }
}
