//! An axis on which equal steps are equal ratios.

/// Values `low..=high`, all positive, mapped to `from..=to` px by their logarithms.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogAxis {
    pub(super) low: f64,
    pub(super) high: f64,
    from: f64,
    to: f64,
}

impl LogAxis {
    /// Returns an axis that contains all positive finite `values`, from one power of `base` to another, at least one
    /// apart.
    pub(super) fn of(values: impl Iterator<Item = f64>, base: f64, from: f64, to: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (1.0, base);
        }
        // Rounding must not add another power.
        let first = (log(low, base) + 1e-9).floor();
        let last = (log(high, base) - 1e-9).ceil().max(first + 1.0);
        Self {
            low: base.powf(first),
            high: base.powf(last),
            from,
            to,
        }
    }

    /// Returns the place of a value; a value beyond an end is at the end.
    pub(super) fn at(&self, value: f64) -> f64 {
        let part = log(value.max(self.low) / self.low, self.high / self.low);
        self.from + part.min(1.0) * (self.to - self.from)
    }

    /// Returns powers of `base` along the axis: all, or every n-th so that there are at most `most`.
    pub(super) fn ticks(&self, base: f64, most: usize) -> Vec<f64> {
        let first = log(self.low, base).round() as i32;
        let last = log(self.high, base).round() as i32;
        let every = ((last - first) as usize).div_ceil(most.max(1)).max(1);
        (first..=last)
            .step_by(every)
            .map(|power| base.powi(power))
            .collect()
    }
}

fn log(value: f64, base: f64) -> f64 {
    value.ln() / base.ln()
}

/// Formats a number with few digits: `0.25`, `8`, `1000`.
pub(super) fn number(value: f64) -> String {
    match value {
        10.0.. => format!("{value:.0}"),
        1.0.. => trimmed(format!("{value:.1}")),
        _ => trimmed(format!("{value:.3}")),
    }
}

fn trimmed(text: String) -> String {
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_evenly_spaced_and_hold_the_values() {
        let axis = LogAxis::of([0.3, 70.0].into_iter(), 10.0, 0.0, 300.0);
        assert_eq!(axis.ticks(10.0, 8), [0.1, 1.0, 10.0, 100.0]);
        for (value, at) in [(0.1, 0.0), (1.0, 100.0), (100.0, 300.0), (1e9, 300.0)] {
            assert!((axis.at(value) - at).abs() < 1e-6, "{value}");
        }
        assert_eq!(axis.ticks(10.0, 2).len(), 2);
    }

    #[test]
    fn nothing_to_show_is_an_axis_still() {
        let axis = LogAxis::of([0.0, f64::NAN].into_iter(), 2.0, 10.0, 20.0);
        assert_eq!((axis.low, axis.high), (1.0, 2.0));
        let one = LogAxis::of([4.0].into_iter(), 2.0, 10.0, 20.0);
        assert_eq!((one.low, one.high), (4.0, 8.0));
    }
}
