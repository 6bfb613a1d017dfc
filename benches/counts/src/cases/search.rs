//! The nearest rows to one query.

use tercet_core::engine::{BaseQuery, BaseScore, SearchBase, SearchEngine};
use tercet_core::f16;
use tercet_core::search::{
    Cosine, Dot, FloatRows, Hit, Int8Rows, Metric, Rows, SearchError, SquaredL2, TernaryRows,
};
use tercet_host::parallel::Threads;

use super::{Case, codes, normals};

const ROWS: usize = 256;
/// Values of a row.
const DIM: usize = 384;
/// Rows to find.
const TOP: usize = 10;

pub(super) fn cases() -> Vec<Case> {
    let int8: &'static [i8] = codes(ROWS * DIM, -127, 127).leak();
    let rows = Int8Rows::new(int8, DIM).expect("whole rows");
    let norms = vec![0; ROWS].leak();
    rows.write_norms(norms).expect("one a row");
    let rows = rows.with_norms(norms).expect("one a row");
    let query = codes(DIM, -100, 100);

    let ternary = vec![0; ROWS * DIM / 4].leak();
    TernaryRows::pack(&codes(ROWS * DIM, -1, 1), ternary).expect("ternary codes");
    let ternary = TernaryRows::new(ternary, DIM).expect("whole rows");

    let floats: &'static [f32] = normals(ROWS * DIM).leak();
    let halves: Vec<f16> = floats.iter().map(|&x| f16::from_f32(x)).collect();
    let halves = FloatRows::new(halves.leak(), DIM).expect("whole rows");
    let float_query = normals(DIM);
    let floats = FloatRows::new(floats, DIM).expect("whole rows");
    vec![
        top_k::<_, Dot>("int8,dot", rows, &query),
        top_k::<_, Cosine>("int8,cosine", rows, &query),
        top_k::<_, SquaredL2>("int8,squared_l2", rows, &query),
        top_k::<_, Dot>("ternary,dot", ternary, &query),
        top_k::<_, Dot>("f32,dot", floats, &float_query),
        top_k::<_, Dot>("f16,dot", halves, &float_query),
    ]
}

fn top_k<R, M>(on: &str, rows: R, query: &[R::Query]) -> Case
where
    R: Rows + 'static,
    R::Query: 'static,
    M: Metric,
    R::Score<M>: 'static,
{
    let (query, mut hits) = (query.to_vec(), vec![Hit::default(); TOP]);
    Case::new("top_k", on, ROWS * DIM, move || {
        let mut engine = Threads::default();
        let found = engine
            .base(rows)
            .and_then(|mut base| best::<_, M>(&mut base, &query, &mut hits));
        found.unwrap_or_else(|error| panic!("{error}"));
    })
}

fn best<B: SearchBase<Error = SearchError>, M: Metric>(
    base: &mut B,
    query: &[BaseQuery<B>],
    hits: &mut [Hit<BaseScore<B, M>>],
) -> Result<(), SearchError> {
    base.top_k::<M>(query, hits).map(|_| ())
}
