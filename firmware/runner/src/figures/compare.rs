//! Checks a program's figures against the committed table and against limits.

use std::collections::BTreeMap;

use super::Figures;

/// Growth that is accepted, in per cent.
const PERCENT: u64 = 2;

/// Differences of a program's figures from the committed ones, one line each.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Failures: figures that grew by more than 2 %, and figures that appeared or disappeared.
    pub grown: Vec<String>,
    /// Figures that are smaller now, so that the table could be renewed.
    pub shrunk: Vec<String>,
}

/// Compares figures with the committed ones.
pub fn compare(committed: &Figures, now: &Figures) -> Comparison {
    let mut comparison = Comparison::default();
    for (name, is) in now.iter() {
        let Some(was) = committed.get(name) else {
            let line = format!("{name}: {is}, not in the committed table");
            comparison.grown.push(line);
            continue;
        };
        let line = format!("{name}: {is}, {was} in the committed table");
        if is > was + was * PERCENT / 100 {
            comparison.grown.push(line);
        } else if is < was {
            comparison.shrunk.push(line);
        }
    }
    for (name, was) in committed.iter() {
        if now.get(name).is_none() {
            let line = format!("{name}: only in the committed table, {was}");
            comparison.grown.push(line);
        }
    }
    comparison
}

/// Returns every figure that is over its limit, and every limit without a figure, one line each.
pub fn over_limits(limits: &BTreeMap<String, u64>, now: &Figures) -> Vec<String> {
    let lines = limits.iter().filter_map(|(name, &limit)| {
        let Some(is) = now.get(name) else {
            return Some(format!("{name}: may be {limit} at most and was not found"));
        };
        (is > limit).then(|| format!("{name}: {is}, may be {limit} at most"))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(pairs: &[(&str, u64)]) -> Figures {
        let mut figures = Figures::default();
        for &(name, value) in pairs {
            figures.set(name, value);
        }
        figures
    }

    #[test]
    fn two_per_cent_pass_and_one_byte_more_does_not() {
        let committed = figures(&[("flash", 1000), ("stack", 49)]);
        let same = compare(&committed, &figures(&[("flash", 1020), ("stack", 49)]));
        assert_eq!(same, Comparison::default());
        let more = compare(&committed, &figures(&[("flash", 1021), ("stack", 50)]));
        assert_eq!(
            more.grown,
            [
                "flash: 1021, 1000 in the committed table",
                "stack: 50, 49 in the committed table",
            ]
        );
    }

    #[test]
    fn less_is_told_and_passes() {
        let less = compare(&figures(&[("flash", 1000)]), &figures(&[("flash", 999)]));
        assert_eq!(less.grown, [""; 0]);
        assert_eq!(less.shrunk, ["flash: 999, 1000 in the committed table"]);
    }

    #[test]
    fn figures_come_and_go_only_by_renewing_the_table() {
        let comparison = compare(&figures(&[("old", 1)]), &figures(&[("new", 2)]));
        assert_eq!(
            comparison.grown,
            [
                "new: 2, not in the committed table",
                "old: only in the committed table, 1",
            ]
        );
    }

    #[test]
    fn a_limit_holds_to_the_byte_and_a_figure_it_names_must_exist() {
        let limits = BTreeMap::from([("flash".to_owned(), 100), ("stack".to_owned(), 10)]);
        assert_eq!(
            over_limits(&limits, &figures(&[("flash", 100), ("stack", 10)])),
            [""; 0]
        );
        assert_eq!(
            over_limits(&limits, &figures(&[("flash", 101)])),
            [
                "flash: 101, may be 100 at most",
                "stack: may be 10 at most and was not found",
            ]
        );
    }
}
