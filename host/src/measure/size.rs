//! Sizes of inputs in a readable form.

/// Two to the twentieth.
const MI: usize = 1 << 20;

/// Formats a shape: `1Mi`, `4096 × 4096`, `4096 × 4096 × 128`, `100K × 64, k = 64`, `100K × 384, 64 queries`, `417.0M
/// weights`, `4096 positions × 640`.
pub(super) fn words(area: &str, shape: &[usize]) -> String {
    match *shape {
        [rows, cols, count] if area == "linear" => format!("{rows} × {cols} × {count}"),
        [rows, dim, queries] if area == "search" => {
            format!("{} × {dim}, {queries} queries", short(rows))
        }
        [weights, 1] if area == "model" => format!("{} weights", millions(weights)),
        [weights, tokens] if area == "model" => {
            format!("{} weights, {tokens} tokens", millions(weights))
        }
        [positions, width] if area == "attention" => format!("{positions} positions × {width}"),
        [values] => short(values),
        [rows, cols] => format!("{} × {cols}", short(rows)),
        [points, dims, k] => format!("{} × {dims}, k = {k}", short(points)),
        _ => format!("{shape:?}"),
    }
}

fn millions(count: usize) -> String {
    format!("{:.1}M", count as f64 / 1e6)
}

/// Formats a count: `1M`, `100K`, `16Mi` (times 2²⁰), or its digits.
pub fn short(count: usize) -> String {
    const UNITS: [(&str, usize); 3] = [("Mi", MI), ("M", 1_000_000), ("K", 1_000)];
    let whole = |&&(_, unit): &&(&str, usize)| count > 0 && count.is_multiple_of(unit);
    match UNITS.iter().find(whole) {
        Some((name, unit)) => format!("{}{name}", count / unit),
        None => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_short() {
        for (count, text) in [
            (MI, "1Mi"),
            (1_000_000, "1M"),
            (100_000, "100K"),
            (4096, "4096"),
            (0, "0"),
        ] {
            assert_eq!(short(count), text);
        }
    }
}
