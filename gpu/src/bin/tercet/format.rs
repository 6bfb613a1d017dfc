//! Formats numbers for people.

/// Formats counts as bars of eight heights, one character each; the highest count fills its bar, 0 is the lowest bar.
pub(crate) fn spark(counts: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let top = u128::from(counts.iter().copied().max().unwrap_or(0).max(1));
    counts
        .iter()
        // Rounded up, so that a count of one is still visible beside millions.
        .map(|&count| BARS[(u128::from(count) * 7).div_ceil(top) as usize])
        .collect()
}

/// Formats bytes in powers of 1,024 with three or four digits: `68.8 KiB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value < 10.0 {
        2
    } else {
        usize::from(value < 100.0)
    };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// Formats a number of things: `1 tensor`, `2 tensors`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

/// Formats a shape as `64 x 256`; `scalar` if there is no dimension.
pub(crate) fn shape(dims: &[usize]) -> String {
    if dims.is_empty() {
        return "scalar".to_owned();
    }
    dims.iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(" x ")
}

/// Formats four significant digits, plainly if that is short, else with an exponent.
pub(crate) fn significant(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if !value.is_finite() {
        format!("{value}")
    } else if (1e-3..1e5).contains(&size) {
        let digits = (3 - size.log10().floor() as i32).max(0) as usize;
        format!("{value:.digits$}")
    } else {
        format!("{value:.3e}")
    }
}

/// Formats a time for people, in whole seconds or minutes and at least a second: `12 s`, `1 min 12 s`, `2 h 5 min`.
pub(crate) fn lasting(seconds: f64) -> String {
    let seconds = (seconds.round() as u64).max(1);
    let (large, small, rest) = match seconds {
        0..60 => return format!("{seconds} s"),
        60..3600 => (format!("{} min", seconds / 60), "s", seconds % 60),
        _ => (format!("{} h", seconds / 3600), "min", seconds % 3600 / 60),
    };
    match rest {
        0 => large,
        rest => format!("{large} {rest} {small}"),
    }
}

/// Makes text from a file safe for a terminal: replaces control characters, which would move its cursor.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spark_line_shows_every_nonzero_count() {
        assert_eq!(spark(&[0, 1, 1_000_000, u64::MAX]), "▁▂▂█");
        assert_eq!(spark(&[0, 0]), "▁▁");
        assert_eq!(spark(&[]), "");
    }

    #[test]
    fn bytes_keep_three_digits() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (70_451, "68.8 KiB"),
            (u64::MAX, "16384 PiB"),
        ];
        for (count, text) in cases {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn times_are_in_the_units_of_clocks() {
        for (seconds, text) in [
            (0.01, "1 s"),
            (59.4, "59 s"),
            (60.0, "1 min"),
            (71.6, "1 min 12 s"),
            (3600.0, "1 h"),
            (7535.0, "2 h 5 min"),
        ] {
            assert_eq!(lasting(seconds), text);
        }
    }

    #[test]
    fn four_digits_whatever_the_size() {
        for (value, text) in [
            (0.0, "0"),
            (0.19153, "0.1915"),
            (-12345.6, "-12346"),
            (1e-9, "1.000e-9"),
        ] {
            assert_eq!(significant(value), text);
        }
    }
}
