//! What is kept of a stream of scores.

use proptest::prelude::*;
use tercet_core::search::{
    Cosine, Dot, Hit, Int8Rows, IntegerCosine, Larger, Metric, Rows, Score, SearchError, Smaller,
    SquaredL2, TopK, Within, recall,
};

use super::{cases, int8_matrix, scores, top_k};

/// All hits, best first, the lower index first on ties: by the standard library's stable sort.
fn sorted<S: Score>(mut hits: Vec<Hit<S>>) -> Vec<Hit<S>> {
    hits.sort_by(|a, b| b.score.rank(&a.score));
    hits
}

/// The hits of one metric: the first k of a full sort, however rows are split and in whatever order they come.
fn check<M: Metric>(
    dim: usize,
    query: &[i8],
    rows: &[i8],
    cut: usize,
) -> Result<(), TestCaseError> {
    let rows = Int8Rows::new(rows, dim).unwrap();
    let all = scores::<M, _>(rows, query);
    let expected = sorted(all.clone());
    for k in [0, 1, 2, 3, 7, rows.len(), rows.len() + 3] {
        let first = &expected[..k.min(rows.len())];
        prop_assert_eq!(&top_k::<M, _>(rows, query, k), first);

        let cut = cut.min(rows.len());
        let (mut left, mut right) = (vec![Hit::default(); k], vec![Hit::default(); k]);
        let mut best = TopK::new(&mut left);
        rows.scan::<M>(query, cut..rows.len(), |i, score| best.push(i, score));
        let mut other = TopK::new(&mut right);
        // Backwards: the order of pushes does not show.
        for hit in all[..cut].iter().rev() {
            other.push(hit.index, hit.score);
        }
        best.merge(&other);
        prop_assert_eq!(best.len(), first.len());
        prop_assert_eq!(&*best.into_sorted(), first);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn top_k_is_a_full_sort_however_it_is_split((dim, query, rows) in int8_matrix(), cut in 0usize..40) {
        check::<Dot>(dim, &query, &rows, cut)?;
        check::<SquaredL2>(dim, &query, &rows, cut)?;
        check::<Cosine>(dim, &query, &rows, cut)?;
    }

    /// In index order, all that reach the threshold, counted past the end of the slice.
    #[test]
    fn a_range_is_what_a_filter_leaves(values in prop::collection::vec(-9i32..9, 0..40), threshold in -9i32..9, room in 0usize..40) {
        let threshold = threshold as f32 + 0.5 * (threshold % 2) as f32;
        let mut hits = vec![Hit::default(); room];
        let mut within = Within::new(threshold, &mut hits).unwrap();
        for (index, &value) in values.iter().enumerate() {
            within.push(index, Larger(value));
        }
        let expected: Vec<_> = (0..values.len()).filter(|&i| values[i] as f32 >= threshold).collect();
        prop_assert_eq!(within.total(), expected.len());
        let stored = hits.iter().take(expected.len()).map(|hit| hit.index);
        prop_assert!(stored.eq(expected.iter().copied().take(room)));
    }

    /// No value is out of the order of its score.
    #[test]
    fn reported_values_never_rise_down_the_list((dim, query, rows) in int8_matrix()) {
        let rows = Int8Rows::new(&rows, dim).unwrap();
        let cosines = top_k::<Cosine, _>(rows, &query, rows.len());
        prop_assert!(cosines.windows(2).all(|pair| pair[0].score.value() >= pair[1].score.value()));
        let distances = top_k::<SquaredL2, _>(rows, &query, rows.len());
        prop_assert!(distances.windows(2).all(|pair| pair[0].score.value() <= pair[1].score.value()));
    }
}

#[test]
fn equal_scores_come_in_the_order_of_their_indices() {
    let rows = [1i8; 50];
    let rows = Int8Rows::new(&rows, 2).unwrap();
    for k in [1, 5, 25] {
        let found = top_k::<SquaredL2, _>(rows, &[3, -3], k);
        assert!(found.iter().map(|hit| hit.index).eq(0..k));
    }
}

#[test]
fn floats_that_overflowed_have_an_order_too() {
    let scores = [
        f32::NAN,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        f32::INFINITY,
        -f32::NAN,
        1.0,
    ];
    let order = |hits: &mut [Hit<Larger<f32>>]| {
        let mut best = TopK::new(hits);
        for (index, &score) in scores.iter().enumerate() {
            best.push(index, Larger(score));
        }
        best.into_sorted()
            .iter()
            .map(|hit| hit.index)
            .collect::<Vec<_>>()
    };
    // Zeros of both signs tie, and so do all NaN.
    assert_eq!(order(&mut [Hit::default(); 7]), [4, 6, 2, 3, 1, 0, 5]);
    let far = Smaller(f32::INFINITY);
    assert!(far.rank(&Smaller(0.0)).is_lt() && far.reaches(f32::INFINITY) && !far.reaches(3e38));
}

#[test]
fn a_threshold_meets_the_exact_score() {
    // 2²⁴ + 1 is no f32; its value rounds to 2²⁴, the score does not.
    let large = 16_777_217;
    assert_eq!(Larger(large).value(), 16_777_216.0);
    assert!(Larger(large).reaches(16_777_216.0));
    assert!(!Smaller(large as u32).reaches(16_777_216.0));
    assert!(!Larger(large).reaches(f32::NAN) && !Smaller(1u32).reaches(f32::NAN));
    let mut room: [Hit<IntegerCosine>; 0] = [];
    let refused = Within::new(f32::NAN, &mut room).map(|within| within.total());
    assert_eq!(refused, Err(SearchError::Threshold));
}

#[test]
fn recall_counts_rows_that_both_have() {
    let hit = |index| Hit {
        index,
        score: Larger(0),
    };
    let (found, truth) = ([4, 2, 9].map(hit), [2, 3, 4, 5].map(hit));
    assert_eq!(recall(&found, &truth), 2);
    assert_eq!(recall(&found, &truth[..0]), 0);
}
