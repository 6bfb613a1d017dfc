//! The effect of evaluations.

use super::latent::Weights;

/// When evaluations change a run. Their cost is a sum of integers, so every machine decides the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Evaluations are made every so many steps, and after the last.
    pub every: u64,
    /// Halve the learning rate when this many in a row cost no less than the best, and again after as many more.
    pub plateau: Option<u32>,
    /// End the run when this many in a row cost no less than the best; the file is then that of the best.
    pub patience: Option<u32>,
}

impl Watch {
    /// True if an evaluation is due after a step of a run of so many.
    pub const fn is_due(&self, step: u64, steps: u64) -> bool {
        step.is_multiple_of(if self.every == 0 { 1 } else { self.every }) || step == steps
    }
}

/// The effect of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It cost the least so far.
    Best,
    /// It did not cost less than the best; the value counts such evaluations in a row, including this one.
    Waited(u32),
    /// It did not either, and the learning rate was halved.
    Halved,
    /// It did not either, and the run ends.
    Over,
}

/// The evaluation with the least cost.
#[derive(Debug, PartialEq)]
pub(super) struct Best {
    pub(super) sum: i64,
    pub(super) step: u64,
    /// The weights at that time, for a run that may end later.
    pub(super) weights: Option<Weights>,
}

/// The state of evaluations.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Watched {
    pub(super) best: Option<Best>,
    /// Evaluations since the best.
    pub(super) waited: u32,
    /// Number of times that the learning rate was halved.
    pub(super) halvings: u32,
}

impl Watched {
    /// Records the cost of an evaluation after a step.
    pub(super) fn take(
        &mut self,
        watch: &Watch,
        sum: i64,
        step: u64,
        weights: &Weights,
    ) -> Verdict {
        if self.best.as_ref().is_none_or(|best| sum < best.sum) {
            let mut kept = self.best.take().and_then(|best| best.weights);
            if watch.patience.is_some() {
                match &mut kept {
                    Some(kept) => kept.clone_from(weights),
                    None => kept = Some(weights.clone()),
                }
            }
            self.best = Some(Best {
                sum,
                step,
                weights: kept,
            });
            self.waited = 0;
            return Verdict::Best;
        }
        self.waited += 1;
        if self.is_over(watch) {
            return Verdict::Over;
        }
        match watch.plateau {
            Some(most) if self.waited.is_multiple_of(most) => {
                self.halvings += 1;
                Verdict::Halved
            }
            _ => Verdict::Waited(self.waited),
        }
    }

    /// True if a run has waited as long as it should.
    pub(super) fn is_over(&self, watch: &Watch) -> bool {
        watch.patience.is_some_and(|most| self.waited >= most)
    }

    /// Returns the factor of the learning rate: a power of two, so that nothing is rounded except below the smallest
    /// normal number.
    pub(super) fn factor(&self) -> f32 {
        f32::from_bits((127 - self.halvings.min(126)) << 23)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_halved_and_runs_end_when_nothing_gets_better() {
        let watch = Watch {
            every: 1,
            plateau: Some(2),
            patience: Some(5),
        };
        let mut watched = Watched::default();
        let costs = [9, 7, 7, 8, 6, 6, 6, 6, 6, 6];
        let found = (1..)
            .zip(costs)
            .map(|(step, sum)| watched.take(&watch, sum, step, &Weights::Full(vec![step as f32])));
        use Verdict::{Best, Halved, Over, Waited};
        assert_eq!(
            found.collect::<Vec<_>>(),
            [
                Best,
                Best,
                Waited(1),
                Halved,
                Best,
                Waited(1),
                Halved,
                Waited(3),
                Halved,
                Over
            ]
        );
        assert_eq!(watched.factor(), 0.125);
        let best = watched.best.unwrap();
        assert_eq!(
            (best.sum, best.step, best.weights),
            (6, 5, Some(Weights::Full(vec![5.0])))
        );
    }
}
