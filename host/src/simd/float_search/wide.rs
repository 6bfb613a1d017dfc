//! Products and squares over rows of floats in f64, with their 64 lanes in vectors side by side, or in passes if
//! registers hold fewer.

use tercet_core::number::lanes::LANES;

use super::lanes::{FloatSums, Row};
use super::sums::{Query, prefetch, reached, rest};
use crate::simd::vectors::Doubles;

/// Lanes in f64: the lower and the upper ones of PARTS vectors.
type Wide<S, const PARTS: usize> = [[<S as Doubles>::Doubles; 2]; PARTS];

/// Returns Σ q · r in f64 for the first N of some rows and, if requested, Σ r². Each of PASSES processes the lanes of
/// PARTS vectors, as many as registers hold.
///
/// A product of f32 is exact in f64: 48 bits, and exponents from −298 to 256; so the fused addition rounds as the
/// separate one does.
#[inline(always)]
fn wide<
    S: FloatSums,
    T: Row,
    const PARTS: usize,
    const PASSES: usize,
    const N: usize,
    const NORMS: bool,
>(
    set: S,
    query: &Query<'_>,
    rows: &[T],
) -> [[f64; N]; 2] {
    assert!(PASSES * PARTS * set.lanes() == LANES);
    let dim = query.values.len();
    assert!(rows.len() >= N * dim && query.steps <= dim);
    // SAFETY: what is read lies within the query, the rows, which are as many as asserted, or a copy.
    unsafe {
        let none: Wide<S, PARTS> = [[set.splat_f64(-0.0); 2]; PARTS];
        let (mut products, mut squares) = ([[none; PASSES]; N], [[none; PASSES]; N]);
        for pass in 0..PASSES {
            let first = pass * PARTS * set.lanes();
            let mut lanes = [(none, none); N];
            for at in (0..query.steps).step_by(LANES) {
                let places = reached(dim - at);
                for part in 0..PARTS {
                    let place = first + part * set.lanes();
                    let (places, at) = (places >> place, at + place);
                    let q = set.read_f32(query.values.as_ptr().wrapping_add(at), places);
                    for (row, lanes) in lanes.iter_mut().enumerate() {
                        prefetch::<S, T, N>(set, rows, at, N * part + row, row);
                        let x = T::read(set, rows.as_ptr().wrapping_add(row * dim + at), places);
                        add::<S, PARTS, NORMS>(set, lanes, part, (q, x), places, S::PARTIAL);
                    }
                }
            }
            if query.steps < dim {
                let places = reached(dim - query.steps);
                let mut copy = [T::default(); LANES];
                for (row, lanes) in lanes.iter_mut().enumerate() {
                    let rest = rest(&mut copy, rows, row * dim + query.steps, dim - query.steps);
                    for part in 0..PARTS {
                        let place = first + part * set.lanes();
                        let places = places >> place;
                        if places == 0 {
                            break;
                        }
                        let q = set.read_f32(query.rest[place..].as_ptr(), places);
                        let x = T::read(set, rest.add(place), places);
                        add::<S, PARTS, NORMS>(set, lanes, part, (q, x), places, true);
                    }
                }
            }
            for (row, lanes) in lanes.into_iter().enumerate() {
                (products[row][pass], squares[row][pass]) = lanes;
            }
        }
        let mut sums = [[0.0; N]; 2];
        for row in 0..N {
            sums[0][row] = halved::<S, PARTS, PASSES>(set, products[row]);
            if NORMS {
                sums[1][row] = halved::<S, PARTS, PASSES>(set, squares[row]);
            }
        }
        sums
    }
}

/// Adds products and, if requested, squares to the lanes of a part; if `select`, only to those in the set.
#[inline(always)]
fn add<S: FloatSums, const PARTS: usize, const NORMS: bool>(
    set: S,
    (products, squares): &mut (Wide<S, PARTS>, Wide<S, PARTS>),
    part: usize,
    (q, x): (S::Words, S::Words),
    places: u64,
    select: bool,
) {
    let (q, x) = (set.doubles(q), set.doubles(x));
    for half in 0..2 {
        let places = places >> (half * set.lanes() / 2);
        let old = products[part][half];
        let new = set.add_product_f64(old, q[half], x[half]);
        products[part][half] = match select {
            true => set.take_f64(places, new, old),
            false => new,
        };
        if NORMS {
            let old = squares[part][half];
            let new = set.add_product_f64(old, x[half], x[half]);
            squares[part][half] = match select {
                true => set.take_f64(places, new, old),
                false => new,
            };
        }
    }
}

/// Returns lane 0 after halving.
#[inline(always)]
fn halved<S: FloatSums, const PARTS: usize, const PASSES: usize>(
    set: S,
    mut lanes: [Wide<S, PARTS>; PASSES],
) -> f64 {
    let mut half = PASSES / 2;
    while half > 0 {
        for pass in 0..half {
            let upper = lanes[pass + half];
            for (lane, upper) in lanes[pass].iter_mut().zip(upper) {
                *lane = plus::<S>(set, *lane, upper);
            }
        }
        half /= 2;
    }
    let mut lanes = lanes[0];
    half = PARTS / 2;
    while half > 0 {
        for part in 0..half {
            lanes[part] = plus::<S>(set, lanes[part], lanes[part + half]);
        }
        half /= 2;
    }
    let [low, high] = lanes[0];
    set.halved_f64(set.add_f64(low, high))
}

/// Returns the sums of lanes.
#[inline(always)]
fn plus<S: FloatSums>(set: S, a: [S::Doubles; 2], b: [S::Doubles; 2]) -> [S::Doubles; 2] {
    [set.add_f64(a[0], b[0]), set.add_f64(a[1], b[1])]
}

/// Does [`wide`] for all rows, N at a time.
#[inline(always)]
pub(in crate::simd) fn products<
    S: FloatSums,
    T: Row,
    const PARTS: usize,
    const PASSES: usize,
    const N: usize,
>(
    set: S,
    values: &[f32],
    mut rows: &[T],
    sums: &mut [f64],
) {
    let query = Query::new::<S>(values);
    let (groups, rest) = sums[..rows.len() / values.len()].as_chunks_mut::<N>();
    for sums in groups {
        [*sums, _] = wide::<S, T, PARTS, PASSES, N, false>(set, &query, rows);
        rows = &rows[N * values.len()..];
    }
    for sum in rest {
        [[*sum], _] = wide::<S, T, PARTS, PASSES, 1, false>(set, &query, rows);
        rows = &rows[values.len()..];
    }
}

/// Does [`wide`] for all rows with their norms, one at a time.
#[inline(always)]
pub(in crate::simd) fn products_and_norms<
    S: FloatSums,
    T: Row,
    const PARTS: usize,
    const PASSES: usize,
>(
    set: S,
    values: &[f32],
    rows: &[T],
    sums: &mut [f64],
    norms: &mut [f64],
) {
    let query = Query::new::<S>(values);
    let starts = (0..rows.len()).step_by(values.len());
    for ((start, sum), norm) in starts.zip(sums).zip(norms) {
        [[*sum], [*norm]] = wide::<S, T, PARTS, PASSES, 1, true>(set, &query, &rows[start..]);
    }
}
