//! Suggests existing names for a mistyped one.

/// Number of suggested names.
const OFFERED: usize = 3;

/// Returns the names with the smallest edit distance from `name`, the closest first. A distance of more than half its
/// length is no typing error, so such names are left out. Ties keep their order. O(length²) per name.
pub(crate) fn closest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let wanted: Vec<char> = name.chars().collect();
    let mut found = Vec::new();
    for other in names {
        let distance = distance(&wanted, other);
        if distance <= wanted.len() / 2 {
            crate::order::insert(&mut found, (distance, other), |a, b| a.0.cmp(&b.0));
            found.truncate(OFFERED);
        }
    }
    let offered = found.into_iter();
    offered.map(|(_, other)| other.to_owned()).collect()
}

/// Returns Levenshtein's distance: the smallest number of characters to insert, delete or replace.
fn distance(a: &[char], b: &str) -> usize {
    // The table's row for the characters of `b` so far.
    let mut row: Vec<usize> = (0..=a.len()).collect();
    for c in b.chars() {
        let mut diagonal = row[0];
        row[0] += 1;
        for (i, &d) in a.iter().enumerate() {
            let replaced = diagonal + usize::from(c != d);
            diagonal = row[i + 1];
            row[i + 1] = replaced.min(diagonal + 1).min(row[i] + 1);
        }
    }
    row[a.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_counted_by_hand() {
        let cases = [
            ("", "", 0),
            ("abc", "", 3),
            ("", "☃☃", 2),
            ("kitten", "sitting", 3),
            ("ab", "ba", 2),
        ];
        for (a, b, expected) in cases {
            let letters: Vec<char> = a.chars().collect();
            assert_eq!(distance(&letters, b), expected, "{a} {b}");
            let letters: Vec<char> = b.chars().collect();
            assert_eq!(distance(&letters, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn the_closest_come_first_and_strangers_not_at_all() {
        let names = [
            "layer.10.weight",
            "layer.1.weight",
            "bias",
            "layer.2.weight",
            "layer.3.weight",
        ];
        assert_eq!(
            closest("layer.1.weigth", names.into_iter()),
            ["layer.1.weight", "layer.10.weight", "layer.2.weight"]
        );
        assert!(closest("x", names.into_iter()).is_empty());
    }
}
