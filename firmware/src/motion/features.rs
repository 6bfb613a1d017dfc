//! Computes 18 numbers from a window of samples, and their int8 codes.

use micromath::F32;
use tercet_core::quant::Grid;

use super::scales::SCALES;
use super::{AXES, Sample};

/// Number of values per window: three per axis.
pub const FEATURES: usize = 3 * AXES;

/// The values of a window before conversion to int8: the roots of the axes' deviations, then of their mean steps, then
/// of their ranges, in roots of the sensor's units.
pub type Values = [f32; FEATURES];

/// The values of a window as int8, −127 to 127.
pub type Codes = [i8; FEATURES];

/// Sums over one axis. No sum overflows in a window of up to 2¹⁵ samples.
#[derive(Clone, Copy)]
struct Axis {
    count: i64,
    sum: i64,
    squares: i64,
    /// Σ |x[t] − x[t − 1]|.
    steps: i64,
    last: i16,
    min: i16,
    max: i16,
}

impl Axis {
    const NONE: Self = Self {
        count: 0,
        sum: 0,
        squares: 0,
        steps: 0,
        last: 0,
        min: i16::MAX,
        max: i16::MIN,
    };

    fn take(&mut self, x: i16) {
        let value = i64::from(x);
        if self.count > 0 {
            self.steps += (value - i64::from(self.last)).abs();
        }
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
        self.last = x;
        self.min = self.min.min(x);
        self.max = self.max.max(x);
    }

    /// Returns the roots of deviation, mean step and range.
    ///
    /// The codes must cover motion from quiet to loud. With roots, standing and walking, which the clusters must
    /// distinguish, use more of the codes, although running is covered too.
    fn values(&self) -> [f32; 3] {
        if self.count < 2 {
            return [0.0; 3];
        }
        // n²·variance = n·Σx² − (Σx)², exact and never negative.
        let squared = self.count * self.squares - self.sum * self.sum;
        let deviation = F32(squared as f32).sqrt() / self.count as f32;
        let step = F32(self.steps as f32) / (self.count - 1) as f32;
        let range = F32((i32::from(self.max) - i32::from(self.min)) as f32);
        [deviation, step, range].map(|value| value.sqrt().0)
    }
}

/// Returns the values of a window, oldest sample first; all 0 if there are fewer than two samples. O(samples).
///
/// A constant added to an axis changes none of the values.
pub fn values<'a>(window: impl Iterator<Item = &'a Sample>) -> Values {
    let mut axes = [Axis::NONE; AXES];
    for sample in window {
        for (axis, &x) in axes.iter_mut().zip(sample) {
            axis.take(x);
        }
    }
    let mut values = [0.0; FEATURES];
    for (index, axis) in axes.iter().enumerate() {
        let places = values.iter_mut().skip(index).step_by(AXES);
        for (place, value) in places.zip(axis.values()) {
            *place = value;
        }
    }
    values
}

/// Converts the values to int8: 0 becomes −127, and the largest value seen in training becomes 127. Larger values
/// saturate.
pub fn codes(values: &Values) -> Codes {
    let mut codes = [0; FEATURES];
    for (code, (&value, &scale)) in codes.iter_mut().zip(values.iter().zip(&SCALES)) {
        let grid = Grid {
            scale,
            zero_point: -127,
            low: -127,
            high: 127,
        };
        *code = grid.code(value);
    }
    codes
}
