//! What is refused, and with which index.

use tercet_core::engine::{SearchBase, SearchEngine};
use tercet_core::scalar::Scalar;
use tercet_core::search::{
    Dot, FloatRows, Hit, Int8Rows, Larger, MAX_DIM, Rows, SearchError, TernaryRows, rerank,
};

#[test]
fn shapes_that_do_not_fit_are_refused() {
    assert_eq!(Int8Rows::new(&[], 0), Err(SearchError::NoColumns));
    assert_eq!(
        FloatRows::<f32>::new(&[], 0).unwrap_err(),
        SearchError::NoColumns
    );
    assert_eq!(TernaryRows::new(&[], 0), Err(SearchError::NoColumns));
    let wide = MAX_DIM + 1;
    assert_eq!(
        Int8Rows::new(&[], wide),
        Err(SearchError::TooWide { dim: wide })
    );
    assert_eq!(
        TernaryRows::new(&[], wide),
        Err(SearchError::TooWide { dim: wide })
    );
    let shape = SearchError::Shape { len: 5, row: 2 };
    assert_eq!(Int8Rows::new(&[0; 5], 2), Err(shape));
    assert_eq!(FloatRows::new(&[0f32; 5], 2).unwrap_err(), shape);
    assert_eq!(TernaryRows::new(&[0; 5], 8), Err(shape));
    let message = SearchError::TooWide { dim: wide }.to_string();
    assert!(message.contains(&MAX_DIM.to_string()), "{message}");
}

#[test]
fn values_that_are_none_are_named_by_row_and_column() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let refused = FloatRows::new(&[0.0, 1.0, 2.0, 3.0, bad, bad], 3).unwrap_err();
        assert_eq!(refused, SearchError::NotFinite { row: 1, column: 1 });
        let rows = FloatRows::new(&[0.0f32; 6], 3).unwrap();
        let refused = rows.check_query(&[0.0, 0.0, bad]);
        let expected = SearchError::QueryNotFinite {
            query: 0,
            column: 2,
        };
        assert_eq!(refused, Err(expected));
        let mut engine = Scalar;
        let mut base = engine.base(rows).unwrap();
        let refused =
            base.top_k_all::<Dot>(&[0.0, 0.0, 0.0, 0.0, bad, 0.0], 1, &mut [Hit::default(); 2]);
        assert_eq!(
            refused,
            Err(SearchError::QueryNotFinite {
                query: 1,
                column: 1
            })
        );
    }
    // Two bytes a row of five; value 3 of the second row, and the same bits beyond a row's end.
    let five = [0b01_01_01_01, 0b01_01_01_01, 0b01_01_01_01, 0b01_01_11_01];
    assert_eq!(
        TernaryRows::new(&five, 5),
        Err(SearchError::CodeRange { row: 1, column: 3 })
    );
    assert!(TernaryRows::new(&[0b01_01_01_01, 0b11_01_01_01], 5).is_ok());
    assert_eq!(
        TernaryRows::pack(&[0, 1, -1, 0, 2], &mut [0; 2]),
        Err(SearchError::CodeRange { row: 0, column: 4 })
    );
}

#[test]
fn tables_and_queries_of_another_length_are_refused() {
    let length = |expected, found| SearchError::Length { expected, found };
    let rows = Int8Rows::new(&[0; 6], 2).unwrap();
    assert_eq!(rows.with_norms(&[0; 2]), Err(length(3, 2)));
    assert_eq!(rows.write_norms(&mut [0; 4]), Err(length(3, 4)));
    let ternary = TernaryRows::new(&[0; 6], 8).unwrap();
    assert_eq!(ternary.with_magnitudes(&[0; 2]), Err(length(3, 2)));
    assert_eq!(
        ternary.with_magnitudes(&[127, 128, 129]),
        Err(SearchError::Magnitude {
            row: 1,
            magnitude: 128
        })
    );
    assert_eq!(TernaryRows::pack(&[0; 5], &mut [0; 1]), Err(length(2, 1)));

    let mut engine = Scalar;
    let mut base = engine.base(rows).unwrap();
    let query = |expected, found| SearchError::QueryLength { expected, found };
    let mut hits = [Hit::default(); 2];
    assert_eq!(base.top_k::<Dot>(&[0; 3], &mut hits), Err(query(2, 3)));
    assert_eq!(base.range::<Dot>(&[0; 1], 0.0, &mut hits), Err(query(2, 1)));
    assert_eq!(
        base.top_k_all::<Dot>(&[0; 3], 2, &mut hits),
        Err(query(2, 3))
    );
    assert_eq!(
        base.top_k_all::<Dot>(&[0; 4], 2, &mut hits),
        Err(length(4, 2))
    );
    assert_eq!(
        base.range::<Dot>(&[0; 2], f32::NAN, &mut hits),
        Err(SearchError::Threshold)
    );
    assert_eq!(base.top_k::<Dot>(&[0; 2], &mut []), Ok(0));
    assert_eq!((base.len(), base.dim(), base.is_empty()), (3, 2, false));
}

#[test]
fn a_candidate_that_is_no_row_is_refused() {
    let rows = FloatRows::new(&[0f32; 4], 2).unwrap();
    let candidates = [1, 2].map(|index| Hit {
        index,
        score: Larger(0),
    });
    let refused = rerank::<Dot, _, _>(&rows, &[0.0; 2], &candidates, &mut [Hit::default(); 1]);
    assert_eq!(refused, Err(SearchError::NoRow { index: 2, rows: 2 }));
}
