//! Fits a cost to measured times.

use super::{Cost, Curve, CurveError};

/// A measured call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Bytes read and written.
    pub bytes: u64,
    /// Work done.
    pub work: u64,
    /// Number of items.
    pub items: u64,
    /// Its time.
    pub seconds: f64,
}

/// Measured calls of an operation on an engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sweeps<'a> {
    /// Calls with little work per byte, by rising size.
    pub streaming: &'a [Sample],
    /// Calls with much work per byte; empty if an operation has no such calls.
    pub busy: &'a [Sample],
    /// Calls with many items of few bytes each; empty if an operation has no such calls.
    pub many: &'a [Sample],
}

/// Calls up to this many times the shortest one are used to find the launch; in longer ones it is too small a part.
const SHORT: f64 = 4.0;
/// Rounds of fitting the times for items and the rest of the cost, which depend on each other. Each round leaves a
/// fraction of the remaining error.
const ROUNDS: u32 = 8;
/// Items that take less than this many seconds in total count as free.
const NOTHING: f64 = 1e-9;

impl Cost {
    /// Fits a cost to measured calls; `transfer` is the time of copies to the engine.
    ///
    /// The launch is the time at zero bytes of a line through the shortest calls (with least relative squares). The
    /// curve of items is the time of calls with many items, less the launch and the predicted time of their bytes and
    /// work. The curve of bytes is the time of streaming calls less launch and items, so predictions of these calls
    /// equal their times. The curve of work is found in the same way from busy calls. A transfer is at most the time of
    /// a call less its launch. If items explain the calls no better than no items would, they take no time. O(samples ·
    /// log samples).
    ///
    /// # Errors
    /// [`CurveError`] if the samples do not form a curve: there are none, some have no bytes or work, or two are for
    /// the same amount.
    pub fn fit(sweeps: Sweeps<'_>, transfer: Option<&Curve>) -> Result<Self, CurveError> {
        let plain = Self::with(sweeps, None, None, transfer)?;
        let mut cost = plain.clone();
        for _ in 0..ROUNDS {
            let points = sweeps.many.iter().map(|sample| {
                let prediction = cost.of_sample(sample);
                let rest = sample.seconds - prediction.total() + prediction.items;
                (sample.items, rest.max(0.0))
            });
            let points: Vec<_> = points.collect();
            if points.iter().all(|&(_, seconds)| seconds < NOTHING) {
                return Ok(plain);
            }
            cost = Self::with(sweeps, None, Some(Curve::new(points)?), transfer)?;
        }
        Ok(if cost.error(sweeps) < plain.error(sweeps) {
            cost
        } else {
            plain
        })
    }

    /// Fits the cost of an engine that does some calls just as another, `like`, whose measured calls are `others`: all
    /// threads, which leave small work to one.
    ///
    /// The launch is that of `like`. The items take the times of `like`, scaled by the ratio of the two engines'
    /// measured calls with many items: so if both took the same time, both have the same prediction, whatever the
    /// shape.
    ///
    /// # Errors
    /// Those of [`Cost::fit`].
    pub fn fit_like(
        sweeps: Sweeps<'_>,
        like: &Self,
        others: Sweeps<'_>,
    ) -> Result<Self, CurveError> {
        let part = |sample: &Sample| {
            let other = others.many.iter().find(|it| it.items == sample.items)?;
            let seconds = like.items.as_ref()?.seconds(sample.items);
            Some((
                sample.items,
                seconds * sample.seconds / other.seconds.max(1e-12),
            ))
        };
        let parts: Vec<_> = sweeps.many.iter().filter_map(part).collect();
        let each = match parts.is_empty() {
            true => like.items.clone(),
            false => Some(Curve::new(parts)?),
        };
        Self::with(sweeps, Some(like.launch), each, None)
    }

    /// Returns the cost with these seconds for the launch and for items; without a launch, it finds the launch.
    fn with(
        sweeps: Sweeps<'_>,
        begun: Option<f64>,
        each: Option<Curve>,
        transfer: Option<&Curve>,
    ) -> Result<Self, CurveError> {
        let items = |sample: &Sample| {
            let seconds = each.as_ref().map(|each| each.seconds(sample.items));
            seconds.unwrap_or(0.0)
        };
        let launch = begun.unwrap_or_else(|| launch(sweeps.streaming, &items));
        let crossed = |sample: &Sample| {
            let most = (sample.seconds - launch - items(sample)).max(0.0);
            transfer.map_or(0.0, |curve| curve.seconds(sample.bytes).min(most))
        };
        let beyond = |sample: &Sample| {
            let rest = sample.seconds - launch - items(sample) - crossed(sample);
            rest.max(0.0)
        };
        let of = |samples: &[Sample], amount: fn(&Sample) -> u64, time: &dyn Fn(&Sample) -> f64| {
            let mut least = 0.0_f64;
            let points = samples.iter().map(|sample| {
                // If the items took more time than the curve says, little remains of a large call: this must not apply
                // to smaller calls.
                if each.is_some() {
                    least = least.max(time(sample));
                }
                (amount(sample), time(sample).max(least))
            });
            Curve::new(points)
        };
        let bytes = |sample: &Sample| sample.bytes;
        Ok(Self {
            launch,
            memory: of(sweeps.streaming, bytes, &beyond)?,
            compute: if sweeps.busy.is_empty() {
                None
            } else {
                Some(of(sweeps.busy, |sample| sample.work, &beyond)?)
            },
            transfer: transfer
                .map(|_| of(sweeps.streaming, bytes, &crossed))
                .transpose()?,
            items: each,
        })
    }

    /// Returns the sum of squared logarithms of predicted over measured times.
    fn error(&self, sweeps: Sweeps<'_>) -> f64 {
        let Sweeps {
            streaming,
            busy,
            many,
        } = sweeps;
        let squares = streaming.iter().chain(busy).chain(many).map(|sample| {
            let predicted = self.of_sample(sample).total();
            let ratio = predicted.max(1e-12) / sample.seconds.max(1e-12);
            ratio.ln().powi(2)
        });
        squares.sum()
    }
}

/// Returns where the line through the shortest calls meets zero bytes: at least 0, at most the shortest time. The time
/// of their items is not counted.
fn launch(samples: &[Sample], items: &dyn Fn(&Sample) -> f64) -> f64 {
    let beside = |sample: &Sample| (sample.seconds - items(sample)).max(0.0);
    let least = samples.iter().map(beside).fold(f64::INFINITY, f64::min);
    if !least.is_finite() {
        return 0.0;
    }
    let mut short: Vec<&Sample> = samples.iter().collect();
    short.sort_by_key(|sample| sample.bytes);
    // At least the first two: one point has no slope.
    let count = short
        .iter()
        .take_while(|sample| beside(sample) <= SHORT * least);
    let count = count.count().max(2).min(short.len());
    // Sums of a regression with weights 1 / seconds².
    let mut sums = [0.0; 5];
    for sample in &short[..count] {
        let (x, y) = (sample.bytes as f64, beside(sample).max(1e-12));
        let weight = 1.0 / (y * y);
        for (sum, value) in sums.iter_mut().zip([1.0, x, x * x, y, x * y]) {
            *sum += weight * value;
        }
    }
    let [one, x, xx, y, xy] = sums;
    let spread = one * xx - x * x;
    if spread <= 0.0 {
        return least;
    }
    ((xx * y - x * xy) / spread).clamp(0.0, least)
}
