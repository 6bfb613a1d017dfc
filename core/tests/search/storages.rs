//! Storages against sums in wide integers, and against one another.

use proptest::collection::vec;
use proptest::prelude::*;
use tercet_core::arch::plain;
use tercet_core::engine::{SearchBase, SearchEngine};
use tercet_core::number::{dot, squared_distance, sum_of_squares};
use tercet_core::scalar::Scalar;
use tercet_core::search::{
    Cosine, Dot, FloatRows, Hit, Int8Rows, IntegerCosine, MAX_DIM, Metric, Rows, Score, SquaredL2,
    TernaryRows, rerank,
};
use tercet_core::{bf16, f16};

use super::{cases, int8_matrix, scores, top_k};

fn wide_dot(a: &[i8], b: &[i8]) -> i64 {
    a.iter()
        .zip(b)
        .map(|(&a, &b)| i64::from(a) * i64::from(b))
        .sum()
}

/// Codes of a query, ternary codes of some rows and their magnitudes.
type Packed = (usize, Vec<i8>, Vec<i8>, Vec<u8>);

fn ternary_matrix() -> impl Strategy<Value = Packed> {
    (1usize..70, 0usize..20).prop_flat_map(|(dim, rows)| {
        let (codes, magnitudes) = (vec(-1i8..=1, dim * rows), vec(0u8..=127, rows));
        (Just(dim), super::codes(dim), codes, magnitudes)
    })
}

fn packed(codes: &[i8], dim: usize) -> Vec<u8> {
    let row_bytes = TernaryRows::row_bytes(dim);
    let mut bytes = vec![0xAA; codes.len() / dim * row_bytes];
    for (row, out) in codes.chunks(dim).zip(bytes.chunks_mut(row_bytes)) {
        TernaryRows::pack(row, out).unwrap();
    }
    bytes
}

/// Both storages give the same scores, with and without norms beside them.
fn same_scores<M: Metric>(
    ternary: TernaryRows<'_>,
    int8: Int8Rows<'_>,
    query: &[i8],
) -> Result<(), TestCaseError> {
    let mut norms = vec![0; int8.len()];
    ternary.write_norms(&mut norms).unwrap();
    let expected = scores::<M, _>(int8, query);
    prop_assert_eq!(&scores::<M, _>(ternary, query), &expected);
    prop_assert_eq!(
        &scores::<M, _>(ternary.with_norms(&norms).unwrap(), query),
        &expected
    );
    prop_assert_eq!(
        &scores::<M, _>(int8.with_norms(&norms).unwrap(), query),
        &expected
    );
    Ok(())
}

/// A part of the rows scores as it does within the whole, and nothing beyond them.
fn parts<M: Metric, R: Rows>(
    rows: R,
    query: &[R::Query],
    from: usize,
    to: usize,
) -> Result<(), TestCaseError> {
    let (from, to) = (from.min(rows.len()), to.min(rows.len()));
    let mut found = Vec::new();
    rows.scan::<M>(query, from..to, |index, score| {
        found.push(Hit { index, score })
    });
    let all = scores::<M, _>(rows, query);
    prop_assert_eq!(&found[..], all.get(from..to).unwrap_or_default());
    rows.scan::<M>(query, from..rows.len() + 1, |_, _| {
        panic!("beyond the rows")
    });
    Ok(())
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn int8_scores_are_those_of_wide_integers((dim, query, values) in int8_matrix()) {
        let rows = Int8Rows::new(&values, dim).unwrap();
        let products = scores::<Dot, _>(rows, &query);
        let distances = scores::<SquaredL2, _>(rows, &query);
        let cosines = scores::<Cosine, _>(rows, &query);
        for (index, row) in values.chunks(dim).enumerate() {
            let dot = wide_dot(&query, row);
            let (q, r) = (wide_dot(&query, &query), wide_dot(row, row));
            prop_assert_eq!(i64::from(products[index].score.0), dot);
            prop_assert_eq!(i64::from(distances[index].score.0), q + r - 2 * dot);
            prop_assert_eq!(cosines[index].score, IntegerCosine::new(dot as i32, q as u32, r as u32));
            prop_assert_eq!(i64::from(plain::norm(row)), r);
        }
    }

    #[test]
    fn a_ternary_row_is_an_int8_row_of_its_magnitude((dim, query, codes, magnitudes) in ternary_matrix()) {
        let bytes = packed(&codes, dim);
        let plain = TernaryRows::new(&bytes, dim).unwrap();
        let int8 = Int8Rows::new(&codes, dim).unwrap();
        same_scores::<Dot>(plain, int8, &query)?;
        same_scores::<Cosine>(plain, int8, &query)?;

        let ternary = plain.with_magnitudes(&magnitudes).unwrap();
        let rows = codes.chunks(dim).zip(&magnitudes);
        let scaled: Vec<i8> = rows.flat_map(|(row, &m)| row.iter().map(move |&code| code * m as i8)).collect();
        let int8 = Int8Rows::new(&scaled, dim).unwrap();
        same_scores::<Dot>(ternary, int8, &query)?;
        same_scores::<SquaredL2>(ternary, int8, &query)?;
        same_scores::<Cosine>(ternary, int8, &query)?;
        parts::<SquaredL2, _>(ternary, &query, 2, 9)?;
    }

    #[test]
    fn a_part_scores_as_within_the_whole((dim, query, values) in int8_matrix(), from in 0usize..40, to in 0usize..40) {
        let rows = Int8Rows::new(&values, dim).unwrap();
        parts::<SquaredL2, _>(rows, &query, from, to)?;
        let mut norms = vec![0; rows.len()];
        rows.write_norms(&mut norms).unwrap();
        parts::<Cosine, _>(rows.with_norms(&norms).unwrap(), &query, from, to)?;
    }

    /// Float scores are the lane sums; halves score as their widened copy.
    #[test]
    fn float_scores_are_lane_sums(query in vec(-4f32..4.0, 5), halves in vec(any::<u16>(), 0..60)) {
        let mut values: Vec<f16> = halves.into_iter().map(f16::from_bits).filter(|x| x.is_finite()).collect();
        values.truncate(values.len() / 5 * 5);
        let widened: Vec<f32> = values.iter().map(|x| x.to_f32()).collect();
        let rows = FloatRows::new(&widened, 5).unwrap();
        for (index, row) in widened.chunks(5).enumerate() {
            prop_assert_eq!(scores::<Dot, _>(rows, &query)[index].score.0.to_bits(), dot(&query, row).unwrap().to_bits());
            let distance = squared_distance(&query, row).unwrap();
            prop_assert_eq!(scores::<SquaredL2, _>(rows, &query)[index].score.0.to_bits(), distance.to_bits());
        }
        let half = FloatRows::new(&values, 5).unwrap();
        prop_assert_eq!(scores::<Cosine, _>(half, &query), scores::<Cosine, _>(rows, &query));
        prop_assert_eq!(scores::<Dot, _>(half, &query), scores::<Dot, _>(rows, &query));
        let mut norms = vec![0.0; rows.len()];
        rows.write_norms(&mut norms).unwrap();
        prop_assert!(norms.iter().zip(widened.chunks(5)).all(|(&norm, row)| norm == sum_of_squares(row)));
        prop_assert_eq!(scores::<Cosine, _>(rows.with_norms(&norms).unwrap(), &query), scores::<Cosine, _>(rows, &query));
        parts::<Cosine, _>(rows.with_norms(&norms).unwrap(), &query, 1, 4)?;
    }

    /// Candidates that hold the true nearest come back in the float order, whatever order they were in.
    #[test]
    fn reranked_candidates_are_in_the_order_of_their_floats(query in vec(-4f32..4.0, 3), values in vec(-4f32..4.0, 0..60), k in 0usize..9) {
        let values = &values[..values.len() / 3 * 3];
        let rows = FloatRows::new(values, 3).unwrap();
        let mut candidates: Vec<Hit<IntegerCosine>> = (0..rows.len()).map(|index| Hit { index, score: IntegerCosine::default() }).collect();
        candidates.reverse();
        let mut hits = vec![Hit::default(); k];
        let found = rerank::<Cosine, _, _>(&rows, &query, &candidates, &mut hits).unwrap();
        prop_assert_eq!(&hits[..found], &top_k::<Cosine, _>(rows, &query, k)[..]);
    }

    #[test]
    fn many_queries_are_one_after_another((dim, query, values) in int8_matrix(), k in 0usize..5) {
        let mut queries = query.clone();
        queries.extend(query.iter().rev());
        queries.extend(query.iter().map(|x| x.saturating_neg()));
        let rows = Int8Rows::new(&values, dim).unwrap();
        let mut hits = vec![Hit::default(); 3 * k];
        let mut engine = Scalar;
        let mut base = engine.base(rows).unwrap();
        let found = base.top_k_all::<Dot>(&queries, k, &mut hits).unwrap();
        prop_assert_eq!(found, k.min(rows.len()));
        for (number, query) in queries.chunks(dim).enumerate() {
            prop_assert_eq!(&hits[number * k..][..found], &top_k::<Dot, _>(rows, query, k)[..]);
        }
    }
}

#[test]
fn the_widest_rows_do_not_wrap() {
    let (low, high) = (vec![-128i8; MAX_DIM], vec![127i8; MAX_DIM]);
    let rows = Int8Rows::new(&low, MAX_DIM).unwrap();
    let d = MAX_DIM as i64;
    assert_eq!(
        i64::from(scores::<Dot, _>(rows, &low)[0].score.0),
        16_384 * d
    );
    let distance = scores::<SquaredL2, _>(rows, &high)[0].score;
    assert_eq!(i64::from(distance.0), 65_025 * d);
    let bytes = vec![0u8; TernaryRows::row_bytes(MAX_DIM)];
    let ternary = TernaryRows::new(&bytes, MAX_DIM).unwrap();
    let ternary = ternary.with_magnitudes(&[127]).unwrap();
    assert_eq!(
        i64::from(scores::<Dot, _>(ternary, &low)[0].score.0),
        128 * 127 * d
    );
    assert_eq!(
        i64::from(scores::<SquaredL2, _>(ternary, &high)[0].score.0),
        254 * 254 * d
    );
}

#[test]
fn bf16_rows_are_taken() {
    let values = [1.0f32, 2.0, -3.0].map(bf16::from_f32);
    let found = top_k::<Dot, _>(FloatRows::new(&values, 1).unwrap(), &[2.0], 2);
    assert_eq!([found[0].index, found[1].index], [1, 0]);
    assert_eq!(found[0].score.value(), 4.0);
}

/// Four runs of ⌈7 / 4⌉ = 2 values: the byte order that the type's page gives.
#[test]
fn packed_rows_have_the_documented_bytes() {
    let mut bytes = [0; 2];
    TernaryRows::pack(&[-1, 0, 1, 0, -1, 1, 1], &mut bytes).unwrap();
    // Byte 0: values 0, 2, 4, 6; byte 1: values 1, 3, 5 and code 0.
    assert_eq!(bytes, [0b10_00_10_00, 0b01_10_01_01]);
}
