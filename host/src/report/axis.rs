//! An axis: maps values to px, with round numbers along it.

/// Superscript digits, for powers of ten.
const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// Values `low..=high`, mapped to `from..=to` px.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// Returns an axis that contains all finite `values`, with `part` of their range free at both ends.
    pub(super) fn of(values: impl Iterator<Item = f64>, part: f64, from: f64, to: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let free = match high - low {
            0.0 => low.abs().max(1.0) * 0.05,
            range => range * part,
        };
        Self {
            low: low - free,
            high: high + free,
            from,
            to,
        }
    }

    /// Returns the axis from 0 to slightly more than the largest value.
    pub(super) fn from_zero(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let high = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let high = if high > 0.0 { high } else { 1.0 };
        Self {
            low: 0.0,
            high: high * 1.06,
            from,
            to,
        }
    }

    /// Returns the place of a value.
    pub(super) fn at(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    /// Returns about `count` round values along the axis: multiples of 1, 2 or 5 times a power of ten, and if `whole`,
    /// of nothing below 1.
    pub(super) fn ticks(&self, count: usize, whole: bool) -> Vec<f64> {
        let rough = (self.high - self.low) / count.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|&step| step >= rough)
            .unwrap_or(rough);
        let step = if whole { step.max(1.0) } else { step };
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        // Rounding must not give more than requested, for any values.
        let last = last.min(first.saturating_add(2 * count as i64));
        (first..=last).map(|n| n as f64 * step).collect()
    }

    /// Returns the power of ten, a multiple of three, that keeps the numbers along the axis short.
    pub(super) fn exponent(&self) -> i32 {
        let largest = self.low.abs().max(self.high.abs());
        let digits = largest.log10().floor() as i32;
        match digits {
            -3..=4 => 0,
            _ => digits.div_euclid(3) * 3,
        }
    }
}

/// Formats a number along an axis, in units of ten to the `exponent`.
pub(super) fn tick(value: f64, exponent: i32) -> String {
    let scaled = value / 10f64.powi(exponent);
    // Steps are round: digits after the sixth are noise.
    let text = format!("{scaled:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

/// Returns `name`, with the power of ten that its numbers leave out.
pub(super) fn title(name: &str, exponent: i32) -> String {
    if exponent == 0 {
        return name.to_owned();
    }
    let sign = if exponent < 0 { "⁻" } else { "" };
    let digits: String = exponent
        .unsigned_abs()
        .to_string()
        .bytes()
        .filter_map(|digit| RAISED.get(usize::from(digit - b'0')))
        .collect();
    format!("{name} (× 10{sign}{digits})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        for (low, high) in [
            (0.0, 1.0),
            (-3.0, 7.5),
            (1e9, 1.5e9),
            (0.0, 1e-7),
            (2.0, 32.0),
        ] {
            let axis = Axis::of([low, high].into_iter(), 0.03, 0.0, 100.0);
            let ticks = axis.ticks(6, false);
            assert!((3..=9).contains(&ticks.len()), "{ticks:?}");
            for tick in ticks {
                let at = axis.at(tick);
                assert!((-1e-9..=100.0 + 1e-9).contains(&at), "{tick} at {at}");
            }
        }
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(tick(2.5e9, 9), "2.5");
        assert_eq!(tick(-0.0, 0), "0");
        assert_eq!(tick(0.1 + 0.2, 0), "0.3");
        assert_eq!(title("inertia", -12), "inertia (× 10⁻¹²)");
        assert_eq!(Axis::from_zero([3.2e7].into_iter(), 0.0, 1.0).exponent(), 6);
    }

    #[test]
    fn one_value_has_room_around_it() {
        for value in [0.0, -4.0, 1e30] {
            let axis = Axis::of([value].into_iter(), 0.05, 0.0, 10.0);
            assert!((axis.at(value) - 5.0).abs() < 1e-6, "{value}");
        }
    }
}
