//! From measured times to a cost.

use super::{Cost, Curve, CurveError};

/// A measured call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Bytes read and written.
    pub bytes: u64,
    /// Work done.
    pub work: u64,
    /// Its time.
    pub seconds: f64,
}

/// Calls up to so many times the shortest one tell of the launch; in longer ones it is lost.
const SHORT: f64 = 4.0;

impl Cost {
    /// The cost that calls with little work a byte (`streaming`) and, where an operation has such, calls with much (`busy`) show.
    /// `transfer` is what copies to the engine take.
    ///
    /// The launch is where the line through the shortest calls (of least relative squares) meets no bytes. What streaming calls took
    /// beyond it is the curve of bytes, so that predictions of them are their times; what busy calls took, that of work. A transfer is
    /// at most what a call took beyond its launch.
    ///
    /// # Errors
    /// [`CurveError`] where samples make no curve: none, without bytes or work, or twice the same.
    pub fn fit(
        streaming: &[Sample],
        busy: &[Sample],
        transfer: Option<&Curve>,
    ) -> Result<Self, CurveError> {
        let launch = launch(streaming);
        let crossed = |sample: &Sample| {
            let most = (sample.seconds - launch).max(0.0);
            transfer.map_or(0.0, |curve| curve.seconds(sample.bytes).min(most))
        };
        let beyond = |sample: &Sample| (sample.seconds - launch - crossed(sample)).max(0.0);
        let by_bytes = streaming
            .iter()
            .map(|sample| (sample.bytes, beyond(sample)));
        let by_work = busy.iter().map(|sample| (sample.work, beyond(sample)));
        let copies = streaming
            .iter()
            .map(|sample| (sample.bytes, crossed(sample)));
        Ok(Self {
            launch,
            memory: Curve::new(by_bytes)?,
            compute: if busy.is_empty() {
                None
            } else {
                Some(Curve::new(by_work)?)
            },
            transfer: transfer.map(|_| Curve::new(copies)).transpose()?,
        })
    }
}

/// Where the line through the shortest calls meets no bytes: at least 0, at most the shortest.
fn launch(samples: &[Sample]) -> f64 {
    let least = samples.iter().map(|sample| sample.seconds);
    let least = least.fold(f64::INFINITY, f64::min);
    if !least.is_finite() {
        return 0.0;
    }
    let mut short: Vec<&Sample> = samples.iter().collect();
    short.sort_by_key(|sample| sample.bytes);
    // The first two at least: one tells of no slope.
    let count = short
        .iter()
        .take_while(|sample| sample.seconds <= SHORT * least);
    let count = count.count().max(2).min(short.len());
    // Sums of a regression whose weights are 1 / seconds².
    let mut sums = [0.0; 5];
    for sample in &short[..count] {
        let (x, y) = (sample.bytes as f64, sample.seconds.max(1e-12));
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
