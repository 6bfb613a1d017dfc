//! Colours of clusters that can be distinguished on white and on black.

/// The first ten.
const FIRST: [&str; 10] = [
    "#2f7ed8", "#e4572e", "#2ca25f", "#a453c4", "#d69a00", "#16a3a8", "#e0529c", "#7a8b1f",
    "#8c6d5a", "#6b7fa8",
];

/// Returns the colour of cluster `index`, as `#rrggbb`. After the first ten, hues advance by the golden angle.
pub(super) fn of(index: usize) -> String {
    if let Some(colour) = FIRST.get(index) {
        return (*colour).to_owned();
    }
    let hue = (index as f64 * 137.507_764).rem_euclid(360.0);
    // Two levels of lightness, so that close hues of large sets differ.
    let lightness = if index.is_multiple_of(2) { 0.46 } else { 0.58 };
    let reach = 0.6 * (1.0 - (2.0 * lightness - 1.0_f64).abs());
    let channel = |offset: f64| -> u8 {
        let at = ((hue + offset) / 60.0).rem_euclid(6.0);
        let part = (at - 3.0).abs() - 1.0;
        let value = lightness + reach * (part.clamp(0.0, 1.0) - 0.5);
        (value * 255.0).round() as u8
    };
    format!(
        "#{:02x}{:02x}{:02x}",
        channel(0.0),
        channel(240.0),
        channel(120.0)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_differ() {
        let all: Vec<String> = (0..256).map(of).collect();
        for pair in all.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
        assert!(all.iter().all(|colour| colour.len() == 7));
    }
}
