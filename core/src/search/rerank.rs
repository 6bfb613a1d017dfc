//! Sorts candidates by their float scores, and counts the true nearest rows among results.

use super::{Hit, Metric, Rows, SearchError, TopK};

/// Scores candidates again with other rows of the same base, and keeps the best in `hits`, best first. Returns the
/// number of hits.
///
/// Integer rows find, for example, 4·k candidates cheaply, and f32 rows sort them in their true order. So the search
/// can only miss a row that was not a candidate. A candidate that occurs twice counts twice. O(candidates · (dim +
/// log k)), no scratch.
///
/// ```
/// use tercet_core::search::{FloatRows, Hit, Larger, SquaredL2, rerank};
///
/// let rows = FloatRows::new(&[0.0f32, 1.1, 0.9, 5.0], 1)?;
/// let candidates = [1, 2, 3].map(|index| Hit { index, score: Larger(0) });
/// let mut hits = [Hit::default(); 2];
/// assert_eq!(rerank::<SquaredL2, _, _>(&rows, &[1.05], &candidates, &mut hits)?, 2);
/// assert_eq!(hits.map(|hit| hit.index), [1, 2]);
/// # Ok::<(), tercet_core::search::SearchError>(())
/// ```
///
/// # Errors
/// Those of [`Rows::check_query`]; [`SearchError::NoRow`] for a candidate that is not a row.
pub fn rerank<M: Metric, R: Rows, S>(
    rows: &R,
    query: &[R::Query],
    candidates: &[Hit<S>],
    hits: &mut [Hit<R::Score<M>>],
) -> Result<usize, SearchError> {
    rows.check_query(query)?;
    let count = rows.len();
    let mut best = TopK::new(hits);
    for &Hit { index, .. } in candidates {
        if index >= count {
            return Err(SearchError::NoRow { index, rows: count });
        }
        rows.scan::<M>(query, index..index + 1, |index, score| {
            best.push(index, score)
        });
    }
    Ok(best.into_sorted().len())
}

/// Returns the number of rows in `truth` that are also in `found`. Recall is this number over `truth.len()`.
///
/// No row may occur twice. O(k²), no scratch.
pub fn recall<A, B>(found: &[Hit<A>], truth: &[Hit<B>]) -> usize {
    let hit = |row: &&Hit<B>| found.iter().any(|hit| hit.index == row.index);
    truth.iter().filter(hit).count()
}
