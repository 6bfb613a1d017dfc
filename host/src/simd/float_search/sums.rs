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
pub(super) struct Query<'a> {
    pub(super) values: &'a [f32],
    /// Values that are read where they lie.
    pub(super) steps: usize,
    /// The others, and zeros.
    pub(super) rest: [f32; LANES],
}

impl<'a> Query<'a> {
    #[inline(always)]
    pub(super) fn new<S: Lanes>(values: &'a [f32]) -> Self {
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
pub(super) fn reached(left: usize) -> u64 {
    u64::MAX >> (LANES - left.min(LANES))
}

/// Σ q · r, or Σ (q − r)², for the first N of some rows; PARTS vectors have all lanes.
///
/// # Safety
/// The processor runs the set; there are N rows or more, of the query's length.
#[inline(always)]
unsafe fn of_rows<S: Lanes, T: Row, const PARTS: usize, const N: usize, const DISTANCE: bool>(
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
pub(super) fn rest<T: Row>(
    copy: &mut [T; LANES],
    rows: &[T],
    from: usize,
    count: usize,
) -> *const T {
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
pub(super) unsafe fn prefetch<S: Lanes, T: Row, const N: usize>(
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
