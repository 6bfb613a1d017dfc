//! Dot products of one int8 query with a block of rows, four rows at a time, so that the query is loaded once for them.
//!
//! If a set has no partial loads, the part of a row that is less than a vector is read as a whole vector, into the rows
//! after it. The last rows of a block, which may have nothing after them, are copied.

use super::{Dots, Norms};
use crate::simd::stores::ask;

/// Rows at a time.
const ROWS: usize = 4;
/// Bytes per cache line.
const LINE: usize = 64;
/// Distance in bytes at which lines are prefetched in memory order, while loads alternate between rows. Without it a
/// scan takes 1.3 times as long from memory and 1.5 times from the last cache (AVX-512 VNNI, Zen 5).
const AHEAD: usize = 12288;

/// Ones and then zeros, for [`ones`].
const ONES: [u8; 64] = {
    let mut ones = [0; 64];
    let mut at = 0;
    while at < 32 {
        ones[at] = u8::MAX;
        at += 1;
    }
    ones
};

/// Returns 32 bytes, of which the first `count` are ones and the others zeros.
#[inline(always)]
pub(in crate::simd) fn ones(count: usize) -> *const u8 {
    ONES[32 - count..][..32].as_ptr()
}

/// How a detected instruction set multiplies rows by a query.
pub(in crate::simd) trait DotProducts: Copy {
    /// [`DotProducts::STEP`] values.
    type Values: Copy;
    /// Lanes of 32 bits whose total is a sum of products, modulo 2³².
    type Sums: Copy;
    /// The state of a sum of squares.
    type Squares: Copy;

    /// Values per step: a divisor of 64.
    const STEP: usize;
    /// True if [`DotProducts::load`] can read less than a step; otherwise [`DotProducts::rest`] does that.
    const PARTIAL: bool;
    /// The offset that [`DotProducts::add_products`] adds to a row's values.
    const ABOVE: i32;

    /// Reads the values of a step; if [`DotProducts::PARTIAL`] and fewer are left, those and zeros.
    ///
    /// # Safety
    /// They can be read, at any alignment.
    unsafe fn load(self, from: *const i8, left: usize) -> Self::Values;
    /// Reads the first `count` values, fewer than a step's, and zeros.
    ///
    /// # Safety
    /// Of the following values, `readable`, which is at least `count`, can be read.
    #[inline(always)]
    unsafe fn rest(self, from: *const i8, count: usize, readable: usize) -> Self::Values {
        let _ = readable;
        // SAFETY: the caller's promise.
        unsafe { self.load(from, count) }
    }
    /// Returns lanes whose total is `value`.
    fn start(self, value: i32) -> Self::Sums;
    /// Adds (row + [`DotProducts::ABOVE`]) · query.
    fn add_products(self, sums: Self::Sums, row: Self::Values, query: Self::Values) -> Self::Sums;
    /// Returns a sum of no squares.
    fn no_squares(self) -> Self::Squares;
    /// Adds row².
    fn add_squares(self, squares: Self::Squares, row: Self::Values) -> Self::Squares;
    /// Returns the sums of squares.
    fn squares(self, squares: Self::Squares) -> Self::Sums;
    /// Returns the total of each.
    fn totals(self, sums: [Self::Sums; ROWS]) -> [i32; ROWS];
}

/// A query prepared for rows.
struct Query<'a, S: DotProducts> {
    values: &'a [i8],
    /// Values that are loaded.
    steps: usize,
    /// The others, if there are any, and zeros.
    rest: Option<S::Values>,
    /// The initial value of products, which compensates for the offset.
    start: S::Sums,
}

impl<'a, S: DotProducts> Query<'a, S> {
    #[inline(always)]
    fn new(set: S, values: &'a [i8]) -> Self {
        let steps = match S::PARTIAL {
            true => values.len(),
            false => values.len() / S::STEP * S::STEP,
        };
        let rest = &values[steps..];
        let mut above = 0i32;
        if S::ABOVE != 0 {
            for &value in values {
                above = above.wrapping_add(S::ABOVE * i32::from(value));
            }
        }
        Self {
            values,
            steps,
            rest: match rest.len() {
                0 => None,
                // SAFETY: so many lie there.
                count => Some(unsafe { set.rest(rest.as_ptr(), count, count) }),
            },
            start: set.start(above.wrapping_neg()),
        }
    }
}

/// Returns an address where `readable` values begin with the `count` ones: `from`, or, if they are fewer than a copy's,
/// in the copy.
///
/// # Safety
/// `count` values lie there, no more than a copy's.
#[inline(always)]
pub(in crate::simd) unsafe fn within<const STEP: usize>(
    copy: &mut [i8; STEP],
    from: *const i8,
    count: usize,
    readable: usize,
) -> *const i8 {
    if readable >= STEP {
        return from;
    }
    // SAFETY: the caller's promise.
    copy[..count].copy_from_slice(unsafe { core::slice::from_raw_parts(from, count) });
    copy.as_ptr()
}

/// See [`super::Search::dots`]: whole rows of the query's length, which is not 0, and as many places.
#[inline(always)]
pub(in crate::simd) fn dots<S: DotProducts>(set: S, query: &[i8], rows: &[i8], dots: &mut Dots) {
    let dim = query.len();
    let mut rows = rows;
    let (fours, rest) = dots[..rows.len() / dim].as_chunks_mut::<ROWS>();
    let query = Query::new(set, query);
    for dots in fours {
        let (sums, _) = sums::<S, ROWS, false>(set, &query, rows);
        *dots = set.totals(sums);
        rows = &rows[ROWS * dim..];
    }
    for dot in rest {
        let ([sum], _) = sums::<S, 1, false>(set, &query, rows);
        [*dot, ..] = set.totals([sum; ROWS]);
        rows = &rows[dim..];
    }
}

/// See [`super::Search::dots_and_norms`]; as [`dots`].
#[inline(always)]
pub(in crate::simd) fn dots_and_norms<S: DotProducts>(
    set: S,
    query: &[i8],
    rows: &[i8],
    dots: &mut Dots,
    norms: &mut Norms,
) {
    let dim = query.len();
    let mut rows = rows;
    let (fours, rest) = dots[..rows.len() / dim].as_chunks_mut::<ROWS>();
    let (norms, rest_norms) = norms[..rows.len() / dim].as_chunks_mut::<ROWS>();
    let query = Query::new(set, query);
    for (dots, norms) in fours.iter_mut().zip(norms) {
        let (sums, [a, b, c, d]) = sums::<S, ROWS, true>(set, &query, rows);
        *dots = set.totals(sums);
        let squares = [
            set.squares(a),
            set.squares(b),
            set.squares(c),
            set.squares(d),
        ];
        *norms = set.totals(squares).map(i32::cast_unsigned);
        rows = &rows[ROWS * dim..];
    }
    for (dot, norm) in rest.iter_mut().zip(rest_norms) {
        let ([sum], [squares]) = sums::<S, 1, true>(set, &query, rows);
        let squares = set.squares(squares);
        let [dot_of, norm_of, ..] = set.totals([sum, squares, sum, squares]);
        (*dot, *norm) = (dot_of, norm_of.cast_unsigned());
        rows = &rows[dim..];
    }
}

/// Returns the products of the first N of some rows with a query and, if requested, their squares. There are N rows or
/// more.
#[inline(always)]
fn sums<S: DotProducts, const N: usize, const SQUARES: bool>(
    set: S,
    query: &Query<'_, S>,
    rows: &[i8],
) -> ([S::Sums; N], [S::Squares; N]) {
    let dim = query.values.len();
    assert!(rows.len() >= N * dim && query.steps <= dim);
    let mut sums = ([query.start; N], [set.no_squares(); N]);
    for at in (0..query.steps).step_by(S::STEP) {
        // SAFETY: a step, or less where sets load less, of the query.
        let q = unsafe { set.load(query.values.as_ptr().add(at), dim - at) };
        for row in 0..N {
            prefetch::<S, N>(rows, at, row);
            // SAFETY: the same of a row.
            let x = unsafe { set.load(rows.as_ptr().add(row * dim + at), dim - at) };
            add::<S, N, SQUARES>(set, &mut sums, row, x, q);
        }
    }
    if let Some(q) = query.rest {
        for row in 0..N {
            prefetch::<S, N>(rows, query.steps, row);
            let from = row * dim + query.steps;
            // SAFETY: what is left of a row, and all that follows it.
            let x = unsafe {
                let x = rows.as_ptr().add(from);
                set.rest(x, dim - query.steps, rows.len() - from)
            };
            add::<S, N, SQUARES>(set, &mut sums, row, x, q);
        }
    }
    sums
}

/// Prefetches a line wherever a step of N rows, one after another, begins one.
#[inline(always)]
fn prefetch<S: DotProducts, const N: usize>(rows: &[i8], at: usize, row: usize) {
    if (row * S::STEP).is_multiple_of(LINE) {
        ask(rows.as_ptr().wrapping_add(N * at + row * S::STEP + AHEAD));
    }
}

/// Adds a step's products of a row and, if requested, its squares.
#[inline(always)]
fn add<S: DotProducts, const N: usize, const SQUARES: bool>(
    set: S,
    (sums, squares): &mut ([S::Sums; N], [S::Squares; N]),
    row: usize,
    x: S::Values,
    query: S::Values,
) {
    sums[row] = set.add_products(sums[row], x, query);
    if SQUARES {
        squares[row] = set.add_squares(squares[row], x);
    }
}

/// Defines the functions of a set for one query.
macro_rules! dots_kernels {
    ($set:ty, $features:literal) => {
        use $crate::simd::search::{Dots, Norms, dots};

        #[target_feature(enable = $features)]
        pub(in crate::simd) fn dots(query: &[i8], rows: &[i8], dots: &mut Dots) {
            dots::dots(<$set>::here(), query, rows, dots);
        }

        #[target_feature(enable = $features)]
        pub(in crate::simd) fn dots_and_norms(
            query: &[i8],
            rows: &[i8],
            dots: &mut Dots,
            norms: &mut Norms,
        ) {
            dots::dots_and_norms(<$set>::here(), query, rows, dots, norms);
        }
    };
}
pub(in crate::simd) use dots_kernels;
