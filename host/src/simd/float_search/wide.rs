//! Products and squares over rows of floats in f64, their 64 lanes in vectors side by side, or in passes where registers hold fewer.

use tercet_core::number::lanes::LANES;

use super::lanes::{Lanes, Row};
use super::sums::{Query, prefetch, reached, rest};

/// Lanes in f64: the lower and the upper ones of PARTS vectors.
type Wide<S, const PARTS: usize> = [[<S as crate::simd::quantize::lanes::Lanes>::Wide; 2]; PARTS];

/// Σ q · r in f64 for the first N of some rows and, where they are asked for, Σ r². Each of PASSES takes PARTS vectors' lanes, as many
/// as registers hold.
///
/// A product of f32 is exact in f64: 48 bits, and exponents from −298 to 256; so the fused addition rounds as the separate one does.
///
/// # Safety
/// The processor runs the set; there are N rows or more, of the query's length.
#[inline(always)]
unsafe fn wide<
    S: Lanes,
    T: Row,
    const PARTS: usize,
    const PASSES: usize,
    const N: usize,
    const NORMS: bool,
>(
    query: &Query<'_>,
    rows: &[T],
) -> [[f64; N]; 2] {
    const { assert!(PASSES * PARTS * S::WIDTH == LANES) };
    let dim = query.values.len();
    // SAFETY: the set runs here; what is read lies within the query, the rows or a copy.
    unsafe {
        let none: Wide<S, PARTS> = [[S::no_products(); 2]; PARTS];
        let (mut products, mut squares) = ([[none; PASSES]; N], [[none; PASSES]; N]);
        for pass in 0..PASSES {
            let first = pass * PARTS * S::WIDTH;
            let mut lanes = [(none, none); N];
            for at in (0..query.steps).step_by(LANES) {
                let set = reached(dim - at);
                for part in 0..PARTS {
                    let place = first + part * S::WIDTH;
                    let (set, at) = (set >> place, at + place);
                    let q = S::read_f32(query.values.as_ptr().wrapping_add(at), set);
                    for (row, lanes) in lanes.iter_mut().enumerate() {
                        prefetch::<S, T, N>(rows, at, N * part + row, row);
                        let x = T::read::<S>(rows.as_ptr().wrapping_add(row * dim + at), set);
                        add::<S, PARTS, NORMS>(lanes, part, (q, x), set, S::PARTIAL);
                    }
                }
            }
            if query.steps < dim {
                let set = reached(dim - query.steps);
                let mut copy = [T::default(); LANES];
                for (row, lanes) in lanes.iter_mut().enumerate() {
                    let rest = rest(&mut copy, rows, row * dim + query.steps, dim - query.steps);
                    for part in 0..PARTS {
                        let place = first + part * S::WIDTH;
                        let set = set >> place;
                        if set == 0 {
                            break;
                        }
                        let q = S::read_f32(query.rest[place..].as_ptr(), set);
                        let x = T::read::<S>(rest.add(place), set);
                        add::<S, PARTS, NORMS>(lanes, part, (q, x), set, true);
                    }
                }
            }
            for (row, lanes) in lanes.into_iter().enumerate() {
                (products[row][pass], squares[row][pass]) = lanes;
            }
        }
        let mut sums = [[0.0; N]; 2];
        for row in 0..N {
            sums[0][row] = halved::<S, PARTS, PASSES>(products[row]);
            if NORMS {
                sums[1][row] = halved::<S, PARTS, PASSES>(squares[row]);
            }
        }
        sums
    }
}

/// Adds products and, where they are asked for, squares to the lanes of a part; where `select`, to those of the set alone.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
unsafe fn add<S: Lanes, const PARTS: usize, const NORMS: bool>(
    (products, squares): &mut (Wide<S, PARTS>, Wide<S, PARTS>),
    part: usize,
    (q, x): (S::Vector, S::Vector),
    set: u64,
    select: bool,
) {
    // SAFETY: the set runs here.
    unsafe {
        let (q, x) = (S::doubles(q), S::doubles(x));
        for half in 0..2 {
            let set = set >> (half * S::WIDTH / 2);
            let old = products[part][half];
            let new = S::plus_product(old, q[half], x[half]);
            products[part][half] = match select {
                true => S::select_wide(set, new, old),
                false => new,
            };
            if NORMS {
                let old = squares[part][half];
                let new = S::plus_product(old, x[half], x[half]);
                squares[part][half] = match select {
                    true => S::select_wide(set, new, old),
                    false => new,
                };
            }
        }
    }
}

/// Lane 0 after halving.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
unsafe fn halved<S: Lanes, const PARTS: usize, const PASSES: usize>(
    mut lanes: [Wide<S, PARTS>; PASSES],
) -> f64 {
    // SAFETY: the set runs here.
    unsafe {
        let mut half = PASSES / 2;
        while half > 0 {
            for pass in 0..half {
                let upper = lanes[pass + half];
                for (lane, upper) in lanes[pass].iter_mut().zip(upper) {
                    *lane = plus::<S>(*lane, upper);
                }
            }
            half /= 2;
        }
        let mut lanes = lanes[0];
        half = PARTS / 2;
        while half > 0 {
            for part in 0..half {
                lanes[part] = plus::<S>(lanes[part], lanes[part + half]);
            }
            half /= 2;
        }
        let [low, high] = lanes[0];
        S::halved_wide(S::plus_wide(low, high))
    }
}

/// The sums of lanes.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
unsafe fn plus<S: Lanes>(a: [S::Wide; 2], b: [S::Wide; 2]) -> [S::Wide; 2] {
    // SAFETY: the set runs here.
    unsafe { [S::plus_wide(a[0], b[0]), S::plus_wide(a[1], b[1])] }
}

/// [`wide`] of all rows, N at a time.
///
/// # Safety
/// As for [`super::sums::sums`].
#[inline(always)]
pub(in crate::simd) unsafe fn products<
    S: Lanes,
    T: Row,
    const PARTS: usize,
    const PASSES: usize,
    const N: usize,
>(
    values: &[f32],
    mut rows: &[T],
    sums: &mut [f64],
) {
    let query = Query::new::<S>(values);
    let (groups, rest) = sums[..rows.len() / values.len()].as_chunks_mut::<N>();
    // SAFETY: the caller's promises; there are as many rows as places are left.
    unsafe {
        for sums in groups {
            [*sums, _] = wide::<S, T, PARTS, PASSES, N, false>(&query, rows);
            rows = &rows[N * values.len()..];
        }
        for sum in rest {
            [[*sum], _] = wide::<S, T, PARTS, PASSES, 1, false>(&query, rows);
            rows = &rows[values.len()..];
        }
    }
}

/// [`wide`] of all rows with their norms, one at a time.
///
/// # Safety
/// As for [`super::sums::sums`], and as many places for norms.
#[inline(always)]
pub(in crate::simd) unsafe fn products_and_norms<
    S: Lanes,
    T: Row,
    const PARTS: usize,
    const PASSES: usize,
>(
    values: &[f32],
    rows: &[T],
    sums: &mut [f64],
    norms: &mut [f64],
) {
    let query = Query::new::<S>(values);
    let starts = (0..rows.len()).step_by(values.len());
    for ((start, sum), norm) in starts.zip(sums).zip(norms) {
        // SAFETY: the caller's promises; a row begins there.
        [[*sum], [*norm]] = unsafe { wide::<S, T, PARTS, PASSES, 1, true>(&query, &rows[start..]) };
    }
}
