//! TQ1_0 and TQ2_0 as in a file: two rows at a time, one in each half of a word; Q8_0 with the loop of int8.
//!
//! A 16-bit field collects Σ c·x of a row, with the code c = 0..=3, modulo 2¹⁶. It began with −Σx, so it ends as Σ (c
//! − 1)·x. That fits 16 signed bits over a TQ1_0 block (256·127) and over half a TQ2_0 block (128·254).

#[cfg(not(tercet_thumb1))]
use super::dot;
use crate::linear::{I8Sym, Matrix, Sums};

/// Values per block.
const VALUES: usize = 256;

/// Computes the sums of a matrix of blocks of `BYTES` bytes, with a function that returns the sums of one block of
/// two rows.
pub(super) fn sums<const BYTES: usize>(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    two_rows: impl Fn(&[u8; BYTES], &[u8; BYTES], &[i8; VALUES]) -> [i32; 2],
    out: &mut impl Sums,
) {
    let row_bytes = matrix.cols() / VALUES * BYTES;
    for rows in matrix.bytes().chunks((2 * row_bytes).max(1)) {
        let (first, second) = rows.split_at_checked(row_bytes).unwrap_or_default();
        // The last of an odd number of rows is paired with itself; receivers ignore sums after the last row.
        let second = if second.is_empty() { first } else { second };
        let mut sums = [0i64; 2];
        // Through arrays, since a zip of only two exact chunkings divides by sizes that it does not know at
        // `opt-level = "s"`.
        let blocks = |row| <[u8]>::chunks_exact(row, BYTES).filter_map(<[u8]>::first_chunk);
        let x = x.get().chunks_exact(VALUES);
        let x = x.filter_map(<[i8]>::first_chunk);
        for ((first, second), x) in blocks(first).zip(blocks(second)).zip(x) {
            let dots = two_rows(first, second, x);
            for ((sum, dot), block) in sums.iter_mut().zip(dots).zip([first, second]) {
                *sum += i64::from(dot) * scale(block);
            }
        }
        out.wide(&sums);
    }
}

/// Returns the f16 at a block's end times 2²⁴.
pub(super) fn scale(block: &[u8]) -> i64 {
    let bits = block
        .last_chunk()
        .map_or(0, |&bits| u16::from_le_bytes(bits));
    fixed(bits)
}

/// Returns an f16 times 2²⁴.
pub(crate) fn fixed(bits: u16) -> i64 {
    let exponent = (bits >> 10) & 31;
    let mantissa = i64::from(bits & 1023);
    let magnitude = match exponent {
        // Subnormal.
        0 => mantissa,
        _ => (mantissa | 1024) << (exponent - 1),
    };
    if bits >> 15 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

/// Computes the sums of a matrix in Q8_0, two rows at a time. If consecutive blocks have the same scale in each of
/// the two rows, they form one 32-bit sum (of at most 2¹⁶ columns), which is multiplied by the scale once.
pub(super) fn q8_0(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    const BYTES: usize = 34;
    let row_bytes = matrix.cols() / 32 * BYTES;
    for rows in matrix.bytes().chunks((2 * row_bytes).max(1)) {
        let (first, second) = rows.split_at_checked(row_bytes).unwrap_or_default();
        // The last of an odd number of rows is paired with itself; receivers ignore sums after the last row.
        let second = if second.is_empty() { first } else { second };
        let (mut totals, mut sums, mut before) = ([0i64; 2], [0i32; 2], [0u16; 2]);
        let blocks = |row| <[u8]>::as_chunks::<BYTES>(row).0.iter();
        let x = x.get().as_chunks::<32>().0;
        for ((a, b), x) in blocks(first).zip(blocks(second)).zip(x) {
            let (&[low_a, high_a, ref a @ ..], &[low_b, high_b, ref b @ ..]) = (a, b);
            let scales = [[low_a, high_a], [low_b, high_b]].map(u16::from_le_bytes);
            if scales != before {
                end(&mut totals, &mut sums, before);
                before = scales;
            }
            let [dot_a, dot_b] = two(a, b, x);
            sums = [sums[0] + dot_a, sums[1] + dot_b];
        }
        end(&mut totals, &mut sums, before);
        out.wide(&totals);
    }
}

/// Adds sums times scales to totals, and resets the sums.
fn end(totals: &mut [i64; 2], sums: &mut [i32; 2], scales: [u16; 2]) {
    for ((total, sum), scale) in totals.iter_mut().zip(sums).zip(scales) {
        *total += i64::from(*sum) * fixed(scale);
        *sum = 0;
    }
}

/// Returns the products of a block of two rows.
#[inline(always)]
fn two(a: &[u8; 32], b: &[u8; 32], x: &[i8; 32]) -> [i32; 2] {
    #[cfg(tercet_thumb1)]
    return crate::arch::thumb1::two(a, b, x).0;
    #[cfg(not(tercet_thumb1))]
    [dot(a, x), dot(b, x)]
}

/// Returns the start value of both fields: −Σx.
pub(super) fn begin(x: &[i8]) -> u32 {
    let sum = x.iter().fold(0i32, |sum, &x| sum + i32::from(x));
    (-sum as u32).wrapping_mul(0x1_0001)
}

/// Returns both fields, signed.
pub(super) fn fields(sum: u32) -> [i32; 2] {
    let low = i32::from(sum as i16);
    [low, i32::from((sum.wrapping_sub(low as u32) >> 16) as i16)]
}

/// Five bytes' columns at a time; see [`digits`].
#[inline(never)]
pub(super) fn tq1_0(first: &[u8; 54], second: &[u8; 54], x: &[i8; VALUES]) -> [i32; 2] {
    let (x0, x) = x.split_at(160);
    let (x1, x2) = x.split_at(80);
    let mut sum = begin(x0).wrapping_add(begin(x1)).wrapping_add(begin(x2));
    let rows = |from: usize| first.iter().zip(second).skip(from);
    sum = digits::<32>(sum, rows(0), x0);
    sum = digits::<16>(sum, rows(32), x1);
    sum = digits::<4>(sum, rows(48), x2);
    fields(sum)
}

/// Adds `STRIDE` bytes of each row. A byte is an 8-bit fraction in base 3: three times it is the first digit, and
/// below that the remaining fraction. Digit n of byte m belongs to column m + n·`STRIDE`.
#[inline(always)]
pub(super) fn digits<'a, const STRIDE: usize>(
    mut sum: u32,
    rows: impl Iterator<Item = (&'a u8, &'a u8)>,
    x: &[i8],
) -> u32 {
    for ((&a, &b), at) in rows.take(STRIDE).zip(0..) {
        let mut fractions = u32::from(a) | (u32::from(b) << 16);
        for x in x.chunks_exact(STRIDE) {
            let x = x.get(at).copied().unwrap_or_default();
            let digits = fractions * 3;
            sum = sum.wrapping_add(((digits >> 8) & 0x3_0003).wrapping_mul(x as u32));
            fractions = digits & 0xFF_00FF;
        }
    }
    sum
}

/// Eight codes of each row in a word; see [`crate::block::Format::Tq2_0`].
#[inline(never)]
pub(super) fn tq2_0(first: &[u8; 66], second: &[u8; 66], x: &[i8; VALUES]) -> [i32; 2] {
    let mut sums = [0; 2];
    let halves = |row| <[u8]>::chunks_exact(row, 32).filter_map(<[u8]>::first_chunk::<32>);
    let x = x.chunks_exact(128).filter_map(<[i8]>::first_chunk::<128>);
    for ((first, second), x) in halves(first).zip(halves(second)).zip(x) {
        let mut sum = begin(x);
        let (x0, x2) = x.split_at(64);
        let ((x0, x1), (x2, x3)) = (x0.split_at(32), x2.split_at(32));
        let columns = x0.iter().zip(x1).zip(x2).zip(x3);
        for ((&a, &b), (((&x0, &x1), &x2), &x3)) in first.iter().zip(second).zip(columns) {
            let codes = u32::from(a) | (u32::from(b) << 16);
            for (shift, x) in [(0, x0), (2, x1), (4, x2), (6, x3)] {
                let codes = (codes >> shift) & 0x3_0003;
                sum = sum.wrapping_add(codes.wrapping_mul(x as u32));
            }
        }
        let [a, b] = fields(sum);
        sums = [sums[0] + a, sums[1] + b];
    }
    sums
}
