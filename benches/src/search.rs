//! The nearest rows to one query.

use crate::guest;
use crate::peers::naive;
use tercet_host::measure::{Guest, input};

/// Number of rows to find.
const TOP: usize = 10;
/// Larger matrices have no naive peer, because it needs four bytes per value.
const MOST: usize = 1 << 28;

/// Returns the guests that do the same with f32 copies of the codes. The squared lengths are computed beforehand for
/// everyone.
pub(crate) fn guests(operation: &str, rows: usize, dim: usize) -> Vec<Guest> {
    let cosine = match operation {
        "search int8 dot" => false,
        "search int8 cosine" => true,
        _ => return Vec::new(),
    };
    if rows * dim > MOST {
        return Vec::new();
    }
    let Floats {
        rows,
        lengths,
        query,
    } = Floats::new(rows, dim);
    let lengths = if cosine { lengths } else { Vec::new() };
    let mut hits = Vec::new();
    let run = move || naive::top(&rows, &lengths, &query, TOP, &mut hits);
    vec![guest("naive", run)]
}

struct Floats {
    rows: Vec<f32>,
    lengths: Vec<f32>,
    query: Vec<f32>,
}

impl Floats {
    fn new(rows: usize, dim: usize) -> Self {
        let float = |codes: Vec<i8>| codes.iter().map(|&code| f32::from(code)).collect();
        let rows: Vec<f32> = float(input::codes(rows * dim));
        let length = |row: &[f32]| row.iter().map(|x| x * x).sum::<f32>().sqrt();
        Self {
            lengths: rows.chunks(dim).map(length).collect(),
            query: float(input::codes(dim)),
            rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tercet_core::engine::{SearchBase, SearchEngine};
    use tercet_core::scalar::Scalar;
    use tercet_core::search::{Cosine, Dot, Hit, Int8Rows, Metric};

    fn same<M: Metric>(cosine: bool) {
        let (rows, dim) = (3_000, 384);
        let codes = input::codes(rows * dim);
        let mut ours = vec![Hit::default(); TOP];
        let mut engine = Scalar;
        let mut base = engine.base(Int8Rows::new(&codes, dim).unwrap()).unwrap();
        base.top_k::<M>(&input::codes(dim), &mut ours).unwrap();

        let floats = Floats::new(rows, dim);
        let lengths = if cosine { &floats.lengths[..] } else { &[] };
        let mut theirs = Vec::new();
        naive::top(&floats.rows, lengths, &floats.query, TOP, &mut theirs);
        let ours: Vec<usize> = ours.iter().map(|hit| hit.index).collect();
        let theirs: Vec<usize> = theirs.iter().map(|&(_, index)| index).collect();
        assert_eq!(ours, theirs);
    }

    #[test]
    fn naive_loops_find_the_same_rows() {
        // Dot products of these integers stay below 2²⁴, so the floats are exact.
        same::<Dot>(false);
        same::<Cosine>(true);
    }
}
