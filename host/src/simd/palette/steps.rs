//! The loops over packed indices, generic in the instruction set; each set compiles them in functions of its own.
//!
//! Vectors reach beyond the indices of a step. The last steps of a row, which would reach beyond it, are read from a
//! copy with room after it, and values of a partial step are padded with zeros.

use super::lanes::{LookUps, STEP};

/// Room for the last steps of a row: they begin less than a vector of 64 bytes before its end, and reach another one.
const ROOM: usize = 192;

/// Rows that are multiplied in parallel.
const ROWS: usize = 4;

/// A row's end, with room after it.
type Rest = [u8; ROOM];

/// Returns how many of `steps` whole steps stay within `len` bytes.
#[inline(always)]
fn inside<S: LookUps>(set: S, bits: usize, steps: usize, len: usize) -> usize {
    match len.checked_sub(set.reach(bits)) {
        Some(room) => (room / (8 * bits) + 1).min(steps),
        None => 0,
    }
}

/// Returns a copy of the bytes after `done` steps of a row.
#[inline(always)]
fn rest(row: &[u8], bits: usize, done: usize) -> Rest {
    let mut rest = [0; ROOM];
    let row = &row[done * 8 * bits..];
    rest[..row.len()].copy_from_slice(row);
    rest
}

/// Writes the values of a row: `fl(entry · scale)`. `row` has the indices of as many values as `out`.
#[inline(always)]
pub(in crate::simd) fn decode<S: LookUps, const BITS: usize>(
    set: S,
    row: &[u8],
    book: &[u8; 256],
    scale: f32,
    out: &mut [f32],
) {
    let book = set.book(book);
    let (steps, last) = out.as_chunks_mut::<STEP>();
    let near = inside::<S>(set, BITS, steps.len(), row.len());
    let (near_steps, far_steps) = steps.split_at_mut(near);
    for (index, out) in near_steps.iter_mut().enumerate() {
        let from = row[index * 8 * BITS..].as_ptr();
        // SAFETY: a step that reaches no further than the row.
        unsafe { decode_step::<S, BITS>(set, &book, from, scale, out) };
    }
    let rest = rest(row, BITS, near);
    for (index, out) in far_steps.iter_mut().enumerate() {
        let from = rest[index * 8 * BITS..][..set.reach(BITS)].as_ptr();
        // SAFETY: a step of the copied end, which has room for its reach.
        unsafe { decode_step::<S, BITS>(set, &book, from, scale, out) };
    }
    if !last.is_empty() {
        let mut whole = [0.0; STEP];
        let from = rest[far_steps.len() * 8 * BITS..][..set.reach(BITS)].as_ptr();
        // SAFETY: as above.
        unsafe { decode_step::<S, BITS>(set, &book, from, scale, &mut whole) };
        last.copy_from_slice(&whole[..last.len()]);
    }
}

/// Writes the values of a step. This is no closure: those are compiled for the set only if they happen to be inlined.
///
/// # Safety
/// The reach of a step can be read.
#[inline(always)]
unsafe fn decode_step<S: LookUps, const BITS: usize>(
    set: S,
    book: &S::Book,
    from: *const u8,
    scale: f32,
    out: &mut [f32; STEP],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let entries = set.look_up::<BITS>(book, set.unpack::<BITS>(from));
        set.scaled(entries, scale, out);
    }
}

/// Writes the indices of codes, looked up by a code's bits as an unsigned number; the last byte is padded with zeros.
/// `out` has the bytes of as many indices as there are codes, and the indices are below 2^`BITS`.
#[inline(always)]
pub(in crate::simd) fn pack<S: LookUps, const BITS: usize>(
    set: S,
    codes: &[i8],
    indices: &[u8; 256],
    out: &mut [u8],
) {
    let book = set.book(indices);
    let (steps, last) = codes.as_chunks::<STEP>();
    let near = inside::<S>(set, BITS, steps.len(), out.len());
    let (near_steps, far_steps) = steps.split_at(near);
    for (index, codes) in near_steps.iter().enumerate() {
        let to = out[index * 8 * BITS..].as_mut_ptr();
        // SAFETY: a step that reaches no further than the output.
        unsafe { pack_step::<S, BITS>(set, &book, codes, to) };
    }
    let mut rest = [0; ROOM];
    for (index, codes) in far_steps.iter().enumerate() {
        let to = rest[index * 8 * BITS..][..set.reach(BITS)].as_mut_ptr();
        // SAFETY: a step of the copy of the end, which has room for its reach.
        unsafe { pack_step::<S, BITS>(set, &book, codes, to) };
    }
    if !last.is_empty() {
        let mut whole = [0; STEP];
        whole[..last.len()].copy_from_slice(last);
        let at = far_steps.len() * 8 * BITS;
        // SAFETY: as above.
        unsafe {
            pack_step::<S, BITS>(
                set,
                &book,
                &whole,
                rest[at..][..set.reach(BITS)].as_mut_ptr(),
            )
        };
        // The padding of the last byte is zeros, not the index of the code 0.
        let bits = last.len() * BITS;
        if !bits.is_multiple_of(8) {
            rest[at + bits / 8] &= (1 << (bits % 8)) - 1;
        }
    }
    let out = &mut out[near * 8 * BITS..];
    out.copy_from_slice(&rest[..out.len()]);
}

/// Writes the indices of a step of codes.
///
/// # Safety
/// The reach of a step can be written.
#[inline(always)]
unsafe fn pack_step<S: LookUps, const BITS: usize>(
    set: S,
    book: &S::Book,
    codes: &[i8; STEP],
    to: *mut u8,
) {
    // SAFETY: the caller's promise; 64 codes are read.
    unsafe {
        let indices = set.look_up::<8>(book, set.load(codes));
        set.pack::<BITS>(indices, to);
    }
}

/// Activations in the form for the loops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Activations<'a> {
    steps: &'a [[i8; STEP]],
    /// The values of a partial step, padded with zeros; `None` if there are none.
    last: Option<[i8; STEP]>,
    /// Σx, modulo 2³².
    sum: i32,
    all: &'a [i8],
}

impl<'a> Activations<'a> {
    pub(crate) fn new(x: &'a [i8]) -> Self {
        let (steps, rest) = x.as_chunks();
        let last = (!rest.is_empty()).then(|| {
            let mut last = [0; STEP];
            last[..rest.len()].copy_from_slice(rest);
            last
        });
        let sum = x
            .iter()
            .fold(0i32, |sum, &x| sum.wrapping_add(i32::from(x)));
        Self {
            steps,
            last,
            sum,
            all: x,
        }
    }

    /// Returns all of them.
    pub(crate) const fn all(&self) -> &'a [i8] {
        self.all
    }
}

/// Computes the product of each row with the activations. There is one row per sum, of `stride` bytes, which have the
/// indices of as many values as there are activations.
#[inline(always)]
pub(in crate::simd) fn products<S: LookUps, const BITS: usize>(
    set: S,
    rows: &[u8],
    stride: usize,
    book: &[u8; 256],
    x: &Activations<'_>,
    out: &mut [i32],
) {
    let mut flipped = *book;
    if S::UNSIGNED {
        for entry in &mut flipped {
            *entry ^= 0x80;
        }
    }
    let book = set.book(&flipped);
    let above = if S::UNSIGNED {
        x.sum.wrapping_mul(128)
    } else {
        0
    };
    let (fours, ones) = out.as_chunks_mut::<ROWS>();
    let (rows, last) = rows.split_at(fours.len() * ROWS * stride);
    for (rows, out) in rows.chunks_exact(ROWS * stride).zip(fours) {
        let sums = sums::<S, BITS, ROWS>(set, rows, stride, &book, x);
        *out = sums.map(|sum| sum.wrapping_sub(above));
    }
    for (row, out) in last.chunks_exact(stride).zip(ones) {
        let [sum] = sums::<S, BITS, 1>(set, row, stride, &book, x);
        *out = sum.wrapping_sub(above);
    }
}

/// Returns the products of `R` rows of `stride` bytes.
#[inline(always)]
fn sums<S: LookUps, const BITS: usize, const R: usize>(
    set: S,
    rows: &[u8],
    stride: usize,
    book: &S::Book,
    x: &Activations<'_>,
) -> [i32; R] {
    let mut sums = [set.zero(); R];
    let rows: [&[u8]; R] = std::array::from_fn(|row| &rows[row * stride..][..stride]);
    let near = inside::<S>(set, BITS, x.steps.len(), stride);
    let (near_steps, far_steps) = x.steps.split_at(near);
    for (index, x) in near_steps.iter().enumerate() {
        for (sums, row) in sums.iter_mut().zip(&rows) {
            let from = row.as_ptr().wrapping_add(index * 8 * BITS);
            // SAFETY: a step that reaches no further than the row, as `near` says.
            *sums = unsafe { product_step::<S, BITS>(set, *sums, book, from, x) };
        }
    }
    let far = far_steps.len() + x.last.iter().len();
    assert!(far == 0 || (far - 1) * 8 * BITS + set.reach(BITS) <= ROOM);
    for (sums, row) in sums.iter_mut().zip(rows) {
        let rest = rest(row, BITS, near);
        for (index, x) in far_steps.iter().chain(&x.last).enumerate() {
            // SAFETY: a step of the copied end, which has room for its reach, as asserted.
            *sums = unsafe {
                let from = rest.as_ptr().add(index * 8 * BITS);
                product_step::<S, BITS>(set, *sums, book, from, x)
            };
        }
    }
    let mut totals = [0; R];
    for (total, sums) in totals.iter_mut().zip(sums) {
        *total = set.total(sums);
    }
    totals
}

/// Adds the products of a step.
///
/// # Safety
/// The reach of a step can be read.
#[inline(always)]
unsafe fn product_step<S: LookUps, const BITS: usize>(
    set: S,
    sums: S::Sums,
    book: &S::Book,
    from: *const u8,
    x: &[i8; STEP],
) -> S::Sums {
    // SAFETY: the caller's promise; 64 activations are read.
    unsafe {
        let entries = set.look_up::<BITS>(book, set.unpack::<BITS>(from));
        set.product(sums, entries, x)
    }
}

/// Defines the kernels of a set: functions in which the loops are compiled for every width.
macro_rules! palette_kernels {
    ($set:ty, $features:literal) => {
        use tercet_core::palette::Width;

        use $crate::simd::palette::{Palettes, steps};

        /// The kernels of palettes.
        pub(in crate::simd) const KERNELS: Palettes = Palettes {
            decode,
            pack,
            products,
        };

        #[target_feature(enable = $features)]
        fn decode(width: Width, row: &[u8], book: &[u8; 256], scale: f32, out: &mut [f32]) {
            assert_eq!(row.len(), width.bytes(out.len()));
            let set = <$set>::here();
            match width.bits() {
                1 => steps::decode::<$set, 1>(set, row, book, scale, out),
                2 => steps::decode::<$set, 2>(set, row, book, scale, out),
                3 => steps::decode::<$set, 3>(set, row, book, scale, out),
                4 => steps::decode::<$set, 4>(set, row, book, scale, out),
                5 => steps::decode::<$set, 5>(set, row, book, scale, out),
                6 => steps::decode::<$set, 6>(set, row, book, scale, out),
                7 => steps::decode::<$set, 7>(set, row, book, scale, out),
                _ => steps::decode::<$set, 8>(set, row, book, scale, out),
            }
        }

        #[target_feature(enable = $features)]
        fn pack(width: Width, codes: &[i8], indices: &[u8; 256], out: &mut [u8]) {
            assert_eq!(out.len(), width.bytes(codes.len()));
            let set = <$set>::here();
            match width.bits() {
                1 => steps::pack::<$set, 1>(set, codes, indices, out),
                2 => steps::pack::<$set, 2>(set, codes, indices, out),
                3 => steps::pack::<$set, 3>(set, codes, indices, out),
                4 => steps::pack::<$set, 4>(set, codes, indices, out),
                5 => steps::pack::<$set, 5>(set, codes, indices, out),
                6 => steps::pack::<$set, 6>(set, codes, indices, out),
                7 => steps::pack::<$set, 7>(set, codes, indices, out),
                _ => steps::pack::<$set, 8>(set, codes, indices, out),
            }
        }

        #[target_feature(enable = $features)]
        fn products(
            width: Width,
            rows: &[u8],
            book: &[u8; 256],
            x: &steps::Activations<'_>,
            out: &mut [i32],
        ) {
            let stride = width.bytes(x.all().len());
            assert_eq!(rows.len(), stride * out.len());
            let set = <$set>::here();
            match width.bits() {
                1 => steps::products::<$set, 1>(set, rows, stride, book, x, out),
                2 => steps::products::<$set, 2>(set, rows, stride, book, x, out),
                3 => steps::products::<$set, 3>(set, rows, stride, book, x, out),
                4 => steps::products::<$set, 4>(set, rows, stride, book, x, out),
                5 => steps::products::<$set, 5>(set, rows, stride, book, x, out),
                6 => steps::products::<$set, 6>(set, rows, stride, book, x, out),
                7 => steps::products::<$set, 7>(set, rows, stride, book, x, out),
                _ => steps::products::<$set, 8>(set, rows, stride, book, x, out),
            }
        }
    };
}
pub(in crate::simd) use palette_kernels;
