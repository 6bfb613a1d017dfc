//! A range test of the learning rate.

use std::path::Path;

use serde::Serialize;
use tercet_core::engine::TrainEngine;
use tercet_core::train::AdamW;

use super::batches::Batches;
use super::image::NAME;
use super::trainer::Trainer;
use crate::Error;
use crate::engine::EngineError;

/// A twentieth of the steps on each side are averaged to smooth a loss.
const SMOOTHED: usize = 20;
/// A test ends when a loss is this many times the least.
const DIVERGED: f64 = 4.0;

/// Learning rates to try in one short run: from the lowest to the highest, each the same number of times the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateTest {
    /// The first rate, above 0.
    pub lowest: f32,
    /// The last rate, above the first.
    pub highest: f32,
    /// Number of steps, at least 2.
    pub steps: u64,
}

impl RateTest {
    /// 100 steps from 10⁻⁵ to 1.
    pub const DEFAULT: Self = Self {
        lowest: 1e-5,
        highest: 1.0,
        steps: 100,
    };

    /// Returns the rate of a step, from 0.
    fn at(&self, step: u64) -> f32 {
        let (lowest, highest) = (f64::from(self.lowest), f64::from(self.highest));
        let part = step as f64 / (self.steps - 1) as f64;
        (lowest * (highest / lowest).powf(part)) as f32
    }
}

/// A step of a range test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatePoint {
    /// Its number, from 1.
    pub step: u64,
    /// The rate with which it updated the weights.
    pub rate: f32,
    /// Nats per target, before the update.
    pub loss: f64,
    /// The mean loss of this step and its neighbours: a twentieth of the test's steps on each side, at least one.
    pub smooth: f64,
}

/// The result of a range test.
#[derive(Clone, Debug, PartialEq)]
pub struct RateCurve {
    /// The steps, until the end or until the loss diverged.
    pub points: Vec<RatePoint>,
    /// The step with the least smoothed loss, if it is not the first.
    pub least: Option<RatePoint>,
}

impl RateCurve {
    /// Smooths the losses with those of so many steps on each side, and finds the least.
    fn smooth(&mut self, side: usize) {
        let losses: Vec<f64> = self.points.iter().map(|point| point.loss).collect();
        for (index, point) in self.points.iter_mut().enumerate() {
            let end = losses.len().min(index + side + 1);
            let near = &losses[index.saturating_sub(side)..end];
            point.smooth = near.iter().sum::<f64>() / near.len() as f64;
        }
        let smooth = |a: &&RatePoint, b: &&RatePoint| a.smooth.total_cmp(&b.smooth);
        let least = self.points.iter().min_by(smooth).copied();
        let first = self.points.first().map(|point| point.step);
        self.least = least.filter(|least| Some(least.step) != first);
    }

    /// Returns the proposed rate: a tenth of the rate at the least smoothed loss. `None` if the loss never fell.
    pub fn proposed(&self) -> Option<f32> {
        self.least.map(|least| least.rate / 10.0)
    }
}

impl<E: TrainEngine<Failure: Into<EngineError>> + Send> Trainer<E> {
    /// Takes steps with rising rates, without the schedule or decay, and returns their losses. It ends early when a loss
    /// is four times the least, or numbers are no longer finite. Each step's time is that of
    /// [`Trainer::step`]. The trainer is used up, because its weights are no longer of use.
    ///
    /// The test is L. N. Smith's (arXiv 1506.01186, section 3.3). The end and the proposal (the rate of the least loss
    /// divided by 10) are those of fastai's `lr_find` ("minimum"). Its exponential smoothing (0.98) lags behind the loss
    /// by most of a test of 60 steps, and its proposals were several times too high here; so losses are smoothed over
    /// both sides.
    ///
    /// # Errors
    /// [`Error::Options`] for rates or steps that are not in their ranges; those of [`Trainer::step`] at the first step.
    pub fn try_rates(mut self, batches: &Batches, test: &RateTest) -> Result<RateCurve, Error> {
        let in_order = 0.0 < test.lowest && test.lowest < test.highest;
        if !in_order || !test.highest.is_finite() || test.steps < 2 {
            let RateTest {
                lowest,
                highest,
                steps,
            } = test;
            return Err(Error::options(format!(
                "a test of {steps} steps from {lowest} to {highest} needs at least 2, and rates above 0 that rise"
            )));
        }
        let adamw = AdamW {
            decay: 0.0,
            ..self.options.adamw
        };
        let mut curve = RateCurve {
            points: Vec::new(),
            least: None,
        };
        let mut least = f64::INFINITY;
        for index in 0..test.steps {
            let rate = test.at(index);
            let report = match self.step_with(batches, rate, &adamw) {
                Ok(report) => report,
                // Rates that are too high for this model are what a test is for.
                Err(Error::Unsupported { path, .. } | Error::Tensor { path, .. })
                    if index > 0 && path == Path::new(NAME) =>
                {
                    break;
                }
                Err(error) => return Err(error),
            };
            let loss = report.mean();
            curve.points.push(RatePoint {
                step: report.step,
                rate,
                loss,
                smooth: loss,
            });
            least = loss.min(least);
            if loss > DIVERGED * least {
                break;
            }
        }
        curve.smooth((test.steps as usize / SMOOTHED).max(1));
        Ok(curve)
    }
}
