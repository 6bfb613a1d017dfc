//! Sums over a query and rows of floats, their 64 lanes in vectors side by side.
//!
//! Lanes begin with −0, to which a term is added as if it came first. Where a row ends within a vector, the lanes that no term is
//! for stay as they are; what is read for them lies in the rows behind, or, for the last rows of a block, in a copy.

use tercet_core::number::lanes::LANES;

use super::lanes::{Lanes, Row};

/// Bytes that lines are fetched ahead, in the order in which they lie.
const AHEAD: usize = 12288;
/// Bytes in a line of the caches.
const LINE: usize = 64;

/// A query as it meets rows.
pub(in crate::simd) struct Query<'a> {
    values: &'a [f32],
    /// Values that are read where they lie.
    steps: usize,
    /// The others, and zeros.
    rest: [f32; LANES],
}

impl<'a> Query<'a> {
    #[inline(always)]
    pub(in crate::simd) fn new<S: Lanes>(values: &'a [f32]) -> Self {
        let steps = match S::PARTIAL {
            true => values.len(),
            false => values.len() / LANES * LANES,
        };
        let mut rest = [0.0; LANES];
        rest[..values.len() - steps].copy_from_slice(&values[steps..]);
        Self {
            values,
            steps,
            rest,
        }
    }
}

/// The lanes that a row's last `left` values reach, or all.
#[inline(always)]
fn reached(left: usize) -> u64 {
    u64::MAX >> (LANES - left.min(LANES))
}

/// Σ q · r, or Σ (q − r)², for the first N of some rows; PARTS vectors have all lanes.
///
/// # Safety
/// The processor runs the set; there are N rows or more, of the query's length.
#[inline(always)]
pub(in crate::simd) unsafe fn of_rows<
    S: Lanes,
    T: Row,
    const PARTS: usize,
    const N: usize,
    const DISTANCE: bool,
>(
    query: &Query<'_>,
    rows: &[T],
) -> [f64; N] {
    const { assert!(PARTS * S::WIDTH == LANES) };
    let dim = query.values.len();
    // SAFETY: the set runs here; what is read lies within the query, the rows or a copy.
    unsafe {
        let mut lanes = [[S::splat((-0.0f32).to_bits()); PARTS]; N];
        for at in (0..query.steps).step_by(LANES) {
            let set = reached(dim - at);
            for part in 0..PARTS {
                let (set, at) = (set >> (part * S::WIDTH), at + part * S::WIDTH);
                let q = S::read_f32(query.values.as_ptr().wrapping_add(at), set);
                for (row, lanes) in lanes.iter_mut().enumerate() {
                    prefetch::<S, T, N>(rows, at, N * part + row, row);
                    let x = T::read::<S>(rows.as_ptr().wrapping_add(row * dim + at), set);
                    let sum = S::plus(lanes[part], term::<S, DISTANCE>(q, x));
                    lanes[part] = match S::PARTIAL {
                        true => S::select(set, sum, lanes[part]),
                        false => sum,
                    };
                }
            }
        }
        if query.steps < dim {
            let set = reached(dim - query.steps);
            let mut copy = [T::default(); LANES];
            for (row, lanes) in lanes.iter_mut().enumerate() {
                let rest = rest(&mut copy, rows, row * dim + query.steps, dim - query.steps);
                for (part, lane) in lanes.iter_mut().enumerate() {
                    let (set, at) = (set >> (part * S::WIDTH), part * S::WIDTH);
                    if set == 0 {
                        break;
                    }
                    let q = S::read_f32(query.rest[at..].as_ptr(), set);
                    let term = term::<S, DISTANCE>(q, T::read::<S>(rest.add(at), set));
                    *lane = S::select(set, S::plus(*lane, term), *lane);
                }
            }
        }
        let mut sums = [0.0; N];
        for (sum, mut lanes) in sums.iter_mut().zip(lanes) {
            let mut half = PARTS / 2;
            while half > 0 {
                for part in 0..half {
                    lanes[part] = S::plus(lanes[part], lanes[part + half]);
                }
                half /= 2;
            }
            *sum = f64::from(S::halved(lanes[0]));
        }
        sums
    }
}

/// q · x, or (q − x)².
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
unsafe fn term<S: Lanes, const DISTANCE: bool>(q: S::Vector, x: S::Vector) -> S::Vector {
    // SAFETY: the set runs here.
    unsafe {
        if DISTANCE {
            let difference = S::minus(q, x);
            S::multiply(difference, difference)
        } else {
            S::multiply(q, x)
        }
    }
}

/// Where 64 values can be read that begin with the `count` from `from` on: behind them in the rows, or in the copy.
#[inline(always)]
fn rest<T: Row>(copy: &mut [T; LANES], rows: &[T], from: usize, count: usize) -> *const T {
    match rows[from..].first_chunk::<LANES>() {
        Some(rest) => rest.as_ptr(),
        None => {
            copy[..count].copy_from_slice(&rows[from..from + count]);
            copy.as_ptr()
        }
    }
}

/// Asks for a line wherever the `index`-th vector of a step begins one; of N rows, one after the other.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
unsafe fn prefetch<S: Lanes, T: Row, const N: usize>(
    rows: &[T],
    at: usize,
    index: usize,
    row: usize,
) {
    if (index * S::WIDTH * size_of::<T>()).is_multiple_of(LINE) {
        let ahead = rows.as_ptr().wrapping_add(N * at + row * S::WIDTH);
        // SAFETY: the set runs here, and a prefetch may name any address.
        unsafe { S::prefetch(ahead.cast::<i8>().wrapping_add(AHEAD)) };
    }
}

/// Lanes in f64: the lower and the upper ones of PARTS vectors.
type Wide<S, const PARTS: usize> = [[<S as crate::simd::quantize::lanes::Lanes>::Wide; 2]; PARTS];

/// Σ q · r in f64 for the first N of some rows and, where they are asked for, Σ r². Each of PASSES takes PARTS vectors' lanes, as many
/// as registers hold.
///
/// A product of f32 is exact in f64: 48 bits, and exponents from −298 to 256; so the fused addition rounds as the separate one does.
///
/// # Safety
/// As for [`of_rows`].
#[inline(always)]
pub(in crate::simd) unsafe fn wide<
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
                for part in 0..PARTS {
                    lanes[pass][part] = plus::<S>(lanes[pass][part], lanes[pass + half][part]);
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

/// [`of_rows`] of all rows, N at a time.
///
/// # Safety
/// The processor runs the set; whole rows of the query's length, which is not 0, and no more than places.
#[inline(always)]
pub(in crate::simd) unsafe fn sums<
    S: Lanes,
    T: Row,
    const PARTS: usize,
    const N: usize,
    const DISTANCE: bool,
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
            *sums = of_rows::<S, T, PARTS, N, DISTANCE>(&query, rows);
            rows = &rows[N * values.len()..];
        }
        for sum in rest {
            [*sum] = of_rows::<S, T, PARTS, 1, DISTANCE>(&query, rows);
            rows = &rows[values.len()..];
        }
    }
}

/// [`wide`] of all rows, N at a time.
///
/// # Safety
/// As for [`sums`].
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
    // SAFETY: as in `sums`.
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
/// As for [`sums`], and as many places for norms.
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
