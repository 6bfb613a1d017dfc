//! Scores that merge in the order of a list: SentencePiece uses scores instead of merges.
//!
//! SentencePiece joins the neighbours whose union has the highest score. This is equivalent to the list if all merges
//! of one token are adjacent in it, and if the list has every pair of tokens whose union is a token. Lists that the
//! library makes from SentencePiece models satisfy this, except for tokens of equal score, such as runs of blanks:
//! their merges are interleaved, ordered by the lengths of their parts. All of this is checked. (If several merges of
//! equal score are possible, SentencePiece takes the leftmost, and a list its first.)

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::language::vocabulary::TokenKind;

/// Returns the token that each merge makes.
fn products(ids: &HashMap<&str, u32>, pairs: &[(&str, &str)]) -> Result<Vec<u32>, String> {
    let product = |(index, (a, b)): (usize, &(&str, &str))| {
        let id = ids.get(format!("{a}{b}").as_str()).copied();
        let id = id.filter(|_| ids.contains_key(a) && ids.contains_key(b));
        id.ok_or_else(|| format!("merge {index}, `{a} {b}`, is not of two tokens"))
    };
    pairs.iter().enumerate().map(product).collect()
}

/// Returns a score for each token up to the last, by number: the first one that is made has −1, and one that no merge
/// makes 0.
pub(super) fn scores(
    tokens: &BTreeMap<u32, (String, TokenKind)>,
    pairs: &[(&str, &str)],
) -> Result<Vec<f32>, String> {
    let ids: HashMap<&str, u32> = (tokens.iter())
        .map(|(&id, (text, _))| (text.as_str(), id))
        .collect();
    let last = tokens
        .keys()
        .next_back()
        .map_or(0, |&last| last as usize + 1);
    // More numbers than an embedding has rows are refused later; they must not allocate memory here.
    let mut scores = vec![0.0; last.min(tokens.len().saturating_mul(4))];
    let products = products(&ids, pairs)?;
    let mut ends: HashMap<u32, usize> = HashMap::new();
    for (index, id) in products.iter().enumerate() {
        ends.insert(*id, index + 1);
    }
    // Tokens with interleaved merges have one score: the longest left part comes first, then the longest right one.
    let length = |index: usize| {
        let (a, b): (&str, &str) = pairs[index];
        (a.chars().count(), b.chars().count())
    };
    let (mut rank, mut index) = (0u32, 0);
    while index < products.len() {
        let (start, mut end) = (index, ends[&products[index]]);
        rank += 1;
        let mut mixed = false;
        while index < end {
            let id = products[index];
            end = end.max(ends[&id]);
            let text = || format!("{}{}", pairs[index].0, pairs[index].1);
            let slot = scores.get_mut(id as usize);
            *slot.ok_or_else(|| {
                let text = text();
                format!("token `{text}` has the number {id}, far beyond the others")
            })? = -(rank as f32);
            mixed |= id != products[start];
            if mixed && length(index) > length(index - 1) {
                let text = text();
                return Err(format!(
                    "merge {index} makes `{text}` between merges of other tokens: no scores give that order"
                ));
            }
            index += 1;
        }
    }
    let known: HashSet<(&str, &str)> = pairs.iter().copied().collect();
    let normal = |text: &str| {
        let id = ids.get(text)?;
        tokens
            .get(id)
            .filter(|(_, kind)| *kind == TokenKind::Normal)
    };
    for (text, kind) in tokens.values() {
        if *kind != TokenKind::Normal {
            continue;
        }
        for (at, _) in text.char_indices().skip(1) {
            let (a, b) = text.split_at(at);
            if normal(a).is_some() && normal(b).is_some() && !known.contains(&(a, b)) {
                return Err(format!(
                    "`{a}` and `{b}` make the token `{text}`, but no merge says so: scores would merge them"
                ));
            }
        }
    }
    Ok(scores)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str], pairs: &[(&str, &str)]) -> Result<Vec<f32>, String> {
        let tokens = (0..).zip(
            texts
                .iter()
                .map(|text| ((*text).to_owned(), TokenKind::Normal)),
        );
        scores(&tokens.collect(), pairs)
    }

    #[test]
    fn merges_of_one_token_stand_together() {
        let texts = ["a", "b", "ab", "abb", "bb"];
        let merges = [("a", "b"), ("b", "b"), ("ab", "b"), ("a", "bb")];
        assert_eq!(of(&texts, &merges), Ok(vec![0.0, 0.0, -1.0, -3.0, -2.0]));
        let lacking = of(&texts, &merges[..3]).unwrap_err();
        assert!(
            lacking.starts_with("`a` and `bb` make the token `abb`"),
            "{lacking}"
        );
        let apart = [("ab", "b"), ("a", "b"), ("b", "b"), ("a", "bb")];
        let apart = of(&texts, &apart).unwrap_err();
        assert!(apart.starts_with("merge 3 makes `abb` between"), "{apart}");
    }

    #[test]
    fn tokens_of_one_score_are_told_by_the_order_of_lengths() {
        let texts = ["_", "__", "___", "____", "a", "_a"];
        // The order of a list in which the tokens of blanks have one score.
        let blanks = [
            ("___", "_"),
            ("__", "__"),
            ("__", "_"),
            ("_", "___"),
            ("_", "__"),
            ("_", "_"),
        ];
        let merges = [&[("_", "a")], &blanks[..]].concat();
        let found = of(&texts, &merges).unwrap();
        assert_eq!(found, [0.0, -3.0, -2.0, -2.0, 0.0, -1.0]);
    }
}
