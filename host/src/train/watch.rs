//! What evaluations decide.

/// When evaluations change a run: what they cost is a sum of integers, so that no machine decides otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Evaluations come every so many steps, and after the last.
    pub every: u64,
    /// Halve the learning rate when so many in a row cost no less than the best, and again after as many more.
    pub plateau: Option<u32>,
    /// End the run when so many in a row cost no less than the best; the file is that of the best.
    pub patience: Option<u32>,
}

impl Watch {
    /// Whether an evaluation is due after a step of a run of so many.
    pub const fn is_due(&self, step: u64, steps: u64) -> bool {
        step.is_multiple_of(if self.every == 0 { 1 } else { self.every }) || step == steps
    }
}

/// What an evaluation led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It cost the least so far.
    Best,
    /// It did not, as so many before it in a row, itself among them.
    Waited(u32),
    /// Nor did it, and the learning rate was halved.
    Halved,
    /// Nor did it, and the run ends.
    Over,
}

/// The evaluation that cost the least.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Best {
    pub(super) sum: i64,
    pub(super) step: u64,
    /// The weights then, kept for a run that may end at another; else none.
    pub(super) weights: Vec<f32>,
}

/// What is remembered of evaluations.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Watched {
    pub(super) best: Option<Best>,
    /// Evaluations since the best.
    pub(super) waited: u32,
    /// How often the learning rate was halved.
    pub(super) halvings: u32,
}

impl Watched {
    /// Takes what an evaluation after a step cost.
    pub(super) fn take(&mut self, watch: &Watch, sum: i64, step: u64, weights: &[f32]) -> Verdict {
        if self.best.as_ref().is_none_or(|best| sum < best.sum) {
            let mut kept = self.best.take().map_or_else(Vec::new, |best| best.weights);
            kept.clear();
            if watch.patience.is_some() {
                kept.extend_from_slice(weights);
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

    /// Whether a run has waited for as long as it should.
    pub(super) fn is_over(&self, watch: &Watch) -> bool {
        watch.patience.is_some_and(|most| self.waited >= most)
    }

    /// What the learning rate is multiplied by: a power of two, so that nothing is rounded but below the least normal number.
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
            .map(|(step, sum)| watched.take(&watch, sum, step, &[step as f32]));
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
        assert_eq!((best.sum, best.step, best.weights), (6, 5, vec![5.0]));
    }
}
