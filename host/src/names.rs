//! Suggests existing names for a mistyped one.

/// Number of suggested names.
const OFFERED: usize = 3;

/// Returns the names with the smallest edit distance from `name`, the closest first. A distance of more than half its
/// length is no typing error, so such names are left out. Ties keep their order. O(length²) per name.
pub(crate) fn closest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let most = name.chars().count() / 2;
    let mut found = Vec::new();
    for other in names {
        let distance = strsim::levenshtein(name, other);
        if distance <= most {
            crate::order::insert(&mut found, (distance, other), |a, b| a.0.cmp(&b.0));
            found.truncate(OFFERED);
        }
    }
    let offered = found.into_iter();
    offered.map(|(_, other)| other.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
