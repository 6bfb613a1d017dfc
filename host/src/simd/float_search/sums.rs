//! Sums over a query and rows of floats, their 64 lanes in vectors side by side.
//!
//! Lanes begin with −0, to which a term is added as if it came first. If a row ends within a vector, the lanes without
//! a term do not change; the values read for them are in the rows after it, or, for the last rows of a block, in a
//! copy.

use tercet_core::number::lanes::LANES;

use super::lanes::{FloatSums, Row};
use crate::simd::stores::ask;

/// Distance in bytes at which lines are prefetched, in memory order.
const AHEAD: usize = 12288;
/// Bytes per cache line.
const LINE: usize = 64;

/// A query prepared for rows.
pub(super) struct Query<'a> {
    pub(super) values: &'a [f32],
    /// Values that are read in place.
    pub(super) steps: usize,
    /// The others, and zeros.
    pub(super) rest: [f32; LANES],
}

impl<'a> Query<'a> {
    #[inline(always)]
    pub(super) fn new<S: FloatSums>(values: &'a [f32]) -> Self {
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

/// Returns the lanes that a row's last `left` values reach, or all.
#[inline(always)]
pub(super) fn reached(left: usize) -> u64 {
    u64::MAX >> (LANES - left.min(LANES))
}

/// Returns Σ q · r, or Σ (q − r)², for the first N of some rows; PARTS vectors have all lanes.
#[inline(always)]
fn of_rows<S: FloatSums, T: Row, const PARTS: usize, const N: usize, const DISTANCE: bool>(
    set: S,
    query: &Query<'_>,
    rows: &[T],
) -> [f64; N] {
    assert!(PARTS * set.lanes() == LANES);
    let dim = query.values.len();
    assert!(rows.len() >= N * dim && query.steps <= dim);
    // SAFETY: what is read lies within the query, the rows, which are as many as asserted, or a copy.
    unsafe {
        let mut lanes = [[set.pattern((-0.0f32).to_bits()); PARTS]; N];
        for at in (0..query.steps).step_by(LANES) {
            let places = reached(dim - at);
            for part in 0..PARTS {
                let (places, at) = (places >> (part * set.lanes()), at + part * set.lanes());
                let q = set.read_f32(query.values.as_ptr().wrapping_add(at), places);
                for (row, lanes) in lanes.iter_mut().enumerate() {
                    prefetch::<S, T, N>(set, rows, at, N * part + row, row);
                    let x = T::read(set, rows.as_ptr().wrapping_add(row * dim + at), places);
                    let sum = set.add_f32(lanes[part], term::<S, DISTANCE>(set, q, x));
                    lanes[part] = match S::PARTIAL {
                        true => set.take(places, sum, lanes[part]),
                        false => sum,
                    };
                }
            }
        }
        if query.steps < dim {
            let places = reached(dim - query.steps);
            let mut copy = [T::default(); LANES];
            for (row, lanes) in lanes.iter_mut().enumerate() {
                let rest = rest(&mut copy, rows, row * dim + query.steps, dim - query.steps);
                for (part, lane) in lanes.iter_mut().enumerate() {
                    let (places, at) = (places >> (part * set.lanes()), part * set.lanes());
                    if places == 0 {
                        break;
                    }
                    let q = set.read_f32(query.rest[at..].as_ptr(), places);
                    let term = term::<S, DISTANCE>(set, q, T::read(set, rest.add(at), places));
                    *lane = set.take(places, set.add_f32(*lane, term), *lane);
                }
            }
        }
        let mut sums = [0.0; N];
        for (sum, mut lanes) in sums.iter_mut().zip(lanes) {
            let mut half = PARTS / 2;
            while half > 0 {
                for part in 0..half {
                    lanes[part] = set.add_f32(lanes[part], lanes[part + half]);
                }
                half /= 2;
            }
            *sum = f64::from(set.halved(lanes[0]));
        }
        sums
    }
}

/// Returns q · x, or (q − x)².
#[inline(always)]
fn term<S: FloatSums, const DISTANCE: bool>(set: S, q: S::Words, x: S::Words) -> S::Words {
    if DISTANCE {
        let difference = set.subtract_f32(q, x);
        set.multiply_f32(difference, difference)
    } else {
        set.multiply_f32(q, x)
    }
}

/// Returns an address where 64 values can be read that begin with the `count` from `from` on: in the rows, or in the
/// copy.
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

/// Prefetches a line wherever the `index`-th vector of a step begins one, for N rows one after another.
#[inline(always)]
pub(super) fn prefetch<S: FloatSums, T: Row, const N: usize>(
    set: S,
    rows: &[T],
    at: usize,
    index: usize,
    row: usize,
) {
    if (index * set.lanes() * size_of::<T>()).is_multiple_of(LINE) {
        let ahead = rows.as_ptr().wrapping_add(N * at + row * set.lanes());
        ask(ahead.cast::<i8>().wrapping_add(AHEAD));
    }
}

/// Does [`of_rows`] for all rows, N at a time.
#[inline(always)]
pub(in crate::simd) fn sums<
    S: FloatSums,
    T: Row,
    const PARTS: usize,
    const N: usize,
    const DISTANCE: bool,
>(
    set: S,
    values: &[f32],
    mut rows: &[T],
    sums: &mut [f64],
) {
    let query = Query::new::<S>(values);
    let (groups, rest) = sums[..rows.len() / values.len()].as_chunks_mut::<N>();
    for sums in groups {
        *sums = of_rows::<S, T, PARTS, N, DISTANCE>(set, &query, rows);
        rows = &rows[N * values.len()..];
    }
    for sum in rest {
        [*sum] = of_rows::<S, T, PARTS, 1, DISTANCE>(set, &query, rows);
        rows = &rows[values.len()..];
    }
}
