//! Dot products of one int8 query with a block of rows, four rows at a time, so that the query is loaded once for them.
//!
//! What of a row is less than a vector is read whole, into the rows behind it, where a set has no loads of less; the last rows of
//! a block, behind which nothing may lie, are copied.

use super::{Dots, Norms};

/// Rows at a time.
const ROWS: usize = 4;
/// Bytes in a line of the caches.
const LINE: usize = 64;
/// Bytes that lines are fetched ahead: in the order in which they lie, while loads go to and fro between rows. Without it a scan
/// takes 1.3 times as long from memory and 1.5 times from the last cache (AVX-512 VNNI, Zen 5).
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

/// 32 bytes, of which the first `count` are ones and the others zeros.
#[inline(always)]
pub(in crate::simd) fn ones(count: usize) -> *const u8 {
    ONES[32 - count..][..32].as_ptr()
}

/// What products of rows ask of an instruction set.
///
/// # Safety
/// Every function may be called only where the processor runs the implementor's set; what loads read must lie there, at any
/// alignment.
pub(in crate::simd) trait Lanes {
    /// [`Lanes::STEP`] values.
    type Values: Copy;
    /// Lanes of 32 bits whose total is a sum of products, modulo 2³².
    type Sums: Copy;
    /// What is kept of a sum of squares.
    type Squares: Copy;

    /// Values of a step: a divisor of 64.
    const STEP: usize;
    /// Whether [`Lanes::load`] reads less than a step; otherwise [`Lanes::rest`] does.
    const PARTIAL: bool;
    /// By how much [`Lanes::add_products`] takes a row's values too large.
    const ABOVE: i32;

    /// Reads the values of a step; where [`Lanes::PARTIAL`], and fewer are left, those and zeros.
    unsafe fn load(from: *const i8, left: usize) -> Self::Values;
    /// The first `count` values, fewer than a step's, and zeros; of all that follow, `readable` can be read.
    #[inline(always)]
    unsafe fn rest(from: *const i8, count: usize, readable: usize) -> Self::Values {
        let _ = readable;
        // SAFETY: the caller's promise.
        unsafe { Self::load(from, count) }
    }
    /// Lanes whose total is `value`.
    unsafe fn start(value: i32) -> Self::Sums;
    /// Adds (row + [`Lanes::ABOVE`]) · query.
    unsafe fn add_products(sums: Self::Sums, row: Self::Values, query: Self::Values) -> Self::Sums;
    /// Squares of nothing.
    unsafe fn no_squares() -> Self::Squares;
    /// Adds row².
    unsafe fn add_squares(squares: Self::Squares, row: Self::Values) -> Self::Squares;
    /// The sums of squares.
    unsafe fn squares(squares: Self::Squares) -> Self::Sums;
    /// The total of each.
    unsafe fn totals(sums: [Self::Sums; ROWS]) -> [i32; ROWS];
    /// Asks for the line of cache around an address, which need not be readable.
    unsafe fn prefetch(at: *const i8);
}

/// A query as it meets rows.
struct Query<'a, S: Lanes> {
    values: &'a [i8],
    /// Values that are loaded.
    steps: usize,
    /// The others, if there are any, and zeros.
    rest: Option<S::Values>,
    /// What products begin with, so that they end as they are.
    start: S::Sums,
}

impl<'a, S: Lanes> Query<'a, S> {
    /// # Safety
    /// The processor runs the set.
    #[inline(always)]
    unsafe fn new(values: &'a [i8]) -> Self {
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
        // SAFETY: the set runs here.
        unsafe {
            Self {
                values,
                steps,
                rest: match rest.len() {
                    0 => None,
                    count => Some(S::rest(rest.as_ptr(), count, count)),
                },
                start: S::start(above.wrapping_neg()),
            }
        }
    }
}

/// Where `readable` values begin with `count`: at `from`, or, if they are fewer than a copy's, in the copy.
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

/// See [`super::Search::dots`].
///
/// # Safety
/// The processor runs the set; whole rows of the query's length, which is not 0, and as many places.
#[inline(always)]
pub(in crate::simd) unsafe fn dots<S: Lanes>(query: &[i8], rows: &[i8], dots: &mut Dots) {
    let dim = query.len();
    let mut rows = rows;
    let (fours, rest) = dots[..rows.len() / dim].as_chunks_mut::<ROWS>();
    // SAFETY: the caller's promises; there are as many rows as places are left.
    unsafe {
        let query = Query::<S>::new(query);
        for dots in fours {
            let (sums, _) = sums::<S, ROWS, false>(&query, rows);
            *dots = S::totals(sums);
            rows = &rows[ROWS * dim..];
        }
        for dot in rest {
            let ([sum], _) = sums::<S, 1, false>(&query, rows);
            [*dot, ..] = S::totals([sum; ROWS]);
            rows = &rows[dim..];
        }
    }
}

/// See [`super::Search::dots_and_norms`].
///
/// # Safety
/// As for [`dots`].
#[inline(always)]
pub(in crate::simd) unsafe fn dots_and_norms<S: Lanes>(
    query: &[i8],
    rows: &[i8],
    dots: &mut Dots,
    norms: &mut Norms,
) {
    let dim = query.len();
    let mut rows = rows;
    let (fours, rest) = dots[..rows.len() / dim].as_chunks_mut::<ROWS>();
    let (norms, rest_norms) = norms[..rows.len() / dim].as_chunks_mut::<ROWS>();
    // SAFETY: as in `dots`.
    unsafe {
        let query = Query::<S>::new(query);
        for (dots, norms) in fours.iter_mut().zip(norms) {
            let (sums, [a, b, c, d]) = sums::<S, ROWS, true>(&query, rows);
            *dots = S::totals(sums);
            let squares = [S::squares(a), S::squares(b), S::squares(c), S::squares(d)];
            *norms = S::totals(squares).map(i32::cast_unsigned);
            rows = &rows[ROWS * dim..];
        }
        for (dot, norm) in rest.iter_mut().zip(rest_norms) {
            let ([sum], [squares]) = sums::<S, 1, true>(&query, rows);
            let squares = S::squares(squares);
            let [dot_of, norm_of, ..] = S::totals([sum, squares, sum, squares]);
            (*dot, *norm) = (dot_of, norm_of.cast_unsigned());
            rows = &rows[dim..];
        }
    }
}

/// The products of the first N of some rows with a query and, where they are asked for, their squares.
///
/// # Safety
/// The processor runs the set; there are N rows or more.
#[inline(always)]
unsafe fn sums<S: Lanes, const N: usize, const SQUARES: bool>(
    query: &Query<'_, S>,
    rows: &[i8],
) -> ([S::Sums; N], [S::Squares; N]) {
    let dim = query.values.len();
    // SAFETY: the set runs here; what is read lies within the query or the rows, and a prefetch may name any address.
    unsafe {
        let mut sums = ([query.start; N], [S::no_squares(); N]);
        for at in (0..query.steps).step_by(S::STEP) {
            let q = S::load(query.values.as_ptr().add(at), dim - at);
            for row in 0..N {
                prefetch::<S, N>(rows, at, row);
                let x = S::load(rows.as_ptr().add(row * dim + at), dim - at);
                add::<S, N, SQUARES>(&mut sums, row, x, q);
            }
        }
        if let Some(q) = query.rest {
            for row in 0..N {
                prefetch::<S, N>(rows, query.steps, row);
                let from = row * dim + query.steps;
                let x = rows.as_ptr().add(from);
                let x = S::rest(x, dim - query.steps, rows.len() - from);
                add::<S, N, SQUARES>(&mut sums, row, x, q);
            }
        }
        sums
    }
}

/// Asks for a line wherever a step of N rows, one after the other, begins one.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
unsafe fn prefetch<S: Lanes, const N: usize>(rows: &[i8], at: usize, row: usize) {
    if (row * S::STEP).is_multiple_of(LINE) {
        let ahead = N * at + row * S::STEP + AHEAD;
        // SAFETY: the set runs here, and a prefetch may name any address.
        unsafe { S::prefetch(rows.as_ptr().wrapping_add(ahead)) };
    }
}

/// Adds a step's products of a row and, where they are asked for, its squares.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
unsafe fn add<S: Lanes, const N: usize, const SQUARES: bool>(
    (sums, squares): &mut ([S::Sums; N], [S::Squares; N]),
    row: usize,
    x: S::Values,
    query: S::Values,
) {
    // SAFETY: the set runs here.
    unsafe {
        sums[row] = S::add_products(sums[row], x, query);
        if SQUARES {
            squares[row] = S::add_squares(squares[row], x);
        }
    }
}

/// The functions of a set for one query.
macro_rules! dots_kernels {
    ($lanes:ty, $features:literal) => {
        use $crate::simd::search::{Dots, Norms, dots};

        #[target_feature(enable = $features)]
        pub(in crate::simd) fn dots(query: &[i8], rows: &[i8], dots: &mut Dots) {
            // SAFETY: the set runs where this function may be called, and the table's methods check lengths.
            unsafe { dots::dots::<$lanes>(query, rows, dots) }
        }

        #[target_feature(enable = $features)]
        pub(in crate::simd) fn dots_and_norms(
            query: &[i8],
            rows: &[i8],
            dots: &mut Dots,
            norms: &mut Norms,
        ) {
            // SAFETY: as in `dots`.
            unsafe { dots::dots_and_norms::<$lanes>(query, rows, dots, norms) }
        }
    };
}
pub(in crate::simd) use dots_kernels;
