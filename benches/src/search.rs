//! The nearest rows to one query.

use crate::peers::naive;
use crate::{Case, Traffic, Who, codes, short};
use std::rc::Rc;
use tercet_core::engine::SearchBase;
use tercet_core::scalar;
use tercet_core::search::{Cosine, Dot, Hit, Int8Rows, Metric, SearchError};
use tercet_host::parallel;

const ROWS: usize = 100_000;
const DIM: usize = 384;
/// Rows to find.
const TOP: usize = 10;

/// A matrix of int8 rows and the same as f32.
struct Matrix {
    rows: Vec<i8>,
    /// Squared lengths.
    norms: Vec<u32>,
    floats: Vec<f32>,
    /// Lengths.
    lengths: Vec<f32>,
}

impl Matrix {
    fn new(rows: usize) -> Self {
        let rows = codes(rows * DIM);
        let mut norms = vec![0; rows.len() / DIM];
        let view = Int8Rows::new(&rows, DIM).expect("whole rows");
        view.write_norms(&mut norms).expect("one a row");
        Self {
            floats: rows.iter().map(|&code| f32::from(code)).collect(),
            lengths: norms.iter().map(|&norm| (norm as f32).sqrt()).collect(),
            rows,
            norms,
        }
    }

    fn view(&self) -> Int8Rows<'_> {
        let rows = Int8Rows::new(&self.rows, DIM).expect("whole rows");
        rows.with_norms(&self.norms).expect("one a row")
    }

    /// A query: the row in the middle, backwards.
    fn query(&self) -> Vec<i8> {
        let middle = self.norms.len() / 2;
        self.rows[middle * DIM..][..DIM]
            .iter()
            .rev()
            .copied()
            .collect()
    }
}

/// The cases, each built when it is asked for. Everyone has the lengths of the rows beforehand.
pub fn search() -> impl Iterator<Item = Case> {
    let matrix = Rc::new(Matrix::new(ROWS));
    let cosine = matrix.clone();
    let cases: [Box<dyn FnOnce() -> Case>; 2] = [
        Box::new(move || case::<Dot>("dot", &matrix, false)),
        Box::new(move || case::<Cosine>("cosine", &cosine, true)),
    ];
    cases.into_iter().map(|case| case())
}

fn case<M: Metric>(metric: &str, matrix: &Rc<Matrix>, cosine: bool) -> Case {
    let rows = matrix.norms.len();
    let hits = vec![Hit::default(); TOP];
    let query = matrix.query();
    let of_threads = query.clone();
    let floats: Vec<f32> = query.iter().map(|&code| f32::from(code)).collect();
    let norms = if cosine { rows * 4 } else { 0 };
    let bytes = rows * DIM + norms + DIM + size_of_val(&hits[..]);
    let name = format!("top {TOP} by {metric}, {} × {DIM}", short(rows));
    Case::new(name, rows * DIM, bytes, Traffic::Read)
        .with(Who::Scalar, matrix, hits.clone(), move |matrix, hits| {
            top::<M>(&mut scalar::Base::new(matrix.view()), &query, hits);
        })
        .with(Who::Threads, matrix, hits, move |matrix, hits| {
            top::<M>(&mut parallel::Base::new(matrix.view()), &of_threads, hits);
        })
        .with(Who::Naive, matrix, Vec::new(), move |matrix, hits| {
            let lengths = if cosine { &matrix.lengths[..] } else { &[] };
            naive::top(&matrix.floats, lengths, &floats, TOP, hits);
        })
}

/// The best rows of a base.
fn top<'a, M: Metric>(
    base: &mut impl SearchBase<Rows = Int8Rows<'a>, Error = SearchError>,
    query: &[i8],
    hits: &mut [Hit<M::Integer>],
) {
    base.top_k::<M>(query, hits).expect("the query fits");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same<M: Metric>(cosine: bool) {
        let matrix = Matrix::new(3_000);
        let query = matrix.query();
        let mut ours = vec![Hit::default(); TOP];
        top::<M>(&mut scalar::Base::new(matrix.view()), &query, &mut ours);

        let floats: Vec<f32> = query.iter().map(|&code| f32::from(code)).collect();
        let lengths = if cosine { &matrix.lengths[..] } else { &[] };
        let mut theirs = Vec::new();
        naive::top(&matrix.floats, lengths, &floats, TOP, &mut theirs);
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
