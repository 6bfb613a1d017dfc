//! The loops of a tile of points, generic in the instruction set; each set compiles them in functions of its own.

use super::lanes::Lanes;
use super::packed::{Packed, blocks};
use super::{Found, TILE, Work};

/// What is done with the sums of a block.
trait Sink<S: Lanes> {
    /// Takes the sums of the points of `vector` for the next centroid, which is at `position`.
    unsafe fn take(&mut self, vector: usize, position: usize, at: S::Vector, sum: S::Vector);
}

/// Turns a tile: for `P` vectors of points at a time, for each group of four coordinates, its operands side by side.
///
/// # Safety
/// The processor runs the set. `rows` has [`TILE`] rows `stride` apart that can be read to whole 16s of coordinates.
#[inline(always)]
unsafe fn turn<S: Lanes, const P: usize>(
    rows: *const i8,
    stride: usize,
    dims: usize,
    out: &mut [i32],
) {
    let groups = dims.div_ceil(4);
    let words = S::FORMAT.words();
    let part = groups * words * P * S::WIDTH;
    assert!(out.len() >= part * (TILE / (P * S::WIDTH)));
    for index in 0..TILE / S::WIDTH {
        // SAFETY: rows of the tile.
        let rows = unsafe { rows.add(index * S::WIDTH * stride) };
        let to = index / P * part + index % P * S::WIDTH;
        for sixteen in 0..dims.div_ceil(16) {
            // SAFETY: the caller's promise about 16s.
            let vectors = unsafe { S::turn(rows.add(16 * sixteen), stride) };
            for (inner, vector) in vectors.into_iter().enumerate() {
                let group = 4 * sixteen + inner;
                if group < groups {
                    // SAFETY: the set runs here.
                    let operands = unsafe { S::operands(vector) };
                    for (word, operand) in operands.into_iter().take(words).enumerate() {
                        let to = to + (group * words + word) * P * S::WIDTH;
                        // SAFETY: `to` is inside the part of these points, which is inside `out`, as asserted.
                        unsafe { S::store(operand, out.as_mut_ptr().add(to)) };
                    }
                }
            }
        }
    }
}

/// The sums of `P` vectors of points with `C` centroids.
///
/// # Safety
/// The processor runs the set; `points` has `steps` · `P` vectors and `words` has `steps` · `C` words.
#[inline(always)]
unsafe fn block<S: Lanes, const P: usize, const C: usize>(
    points: *const i32,
    words: *const i32,
    steps: usize,
    starts: &[i32],
) -> [[S::Vector; P]; C] {
    let starts: &[i32; C] = starts.first_chunk().expect("a start a centroid");
    // SAFETY: the set runs here.
    let mut sums = starts.map(|start| [unsafe { S::splat(start) }; P]);
    let (mut points, mut words) = (points, words);
    for _ in 0..steps {
        let mut x = [sums[0][0]; P];
        for (vector, x) in x.iter_mut().enumerate() {
            // SAFETY: one of `steps` · `P` vectors.
            *x = unsafe { S::load(points.add(vector * S::WIDTH)) };
        }
        for (column, sums) in sums.iter_mut().enumerate() {
            // SAFETY: one of `steps` · `C` words.
            let centroid = unsafe { S::splat(words.add(column).read()) };
            for (sum, &x) in sums.iter_mut().zip(&x) {
                // SAFETY: the set runs here.
                *sum = unsafe { S::product(*sum, x, centroid) };
            }
        }
        // SAFETY: at most one past the last.
        (points, words) = unsafe { (points.add(P * S::WIDTH), words.add(C)) };
    }
    sums
}

/// Calls `sink` with every sum of `P` vectors of points, centroids in order of position.
///
/// # Safety
/// The processor runs the set; `points` has the packed dims of `P` vectors.
#[inline(always)]
unsafe fn products<S: Lanes, const P: usize>(
    points: *const i32,
    packed: &Packed,
    sink: &mut impl Sink<S>,
) {
    let steps = packed.dims().div_ceil(4) * S::FORMAT.words();
    assert!(packed.words().len() == packed.len() * steps && packed.starts().len() == packed.len());
    let mut position = 0;
    for size in blocks(packed.len()) {
        let starts = &packed.starts()[position..];
        macro_rules! run {
            ($columns:literal) => {{
                // SAFETY: the blocks before took `position` · `steps` words of those asserted; points as promised.
                let sums = unsafe {
                    let words = packed.words().as_ptr().add(position * steps);
                    block::<S, P, $columns>(points, words, steps, starts)
                };
                for (column, sums) in sums.into_iter().enumerate() {
                    let position = position + column;
                    // SAFETY: the set runs here; there are fewer than 2³² centroids.
                    let at = unsafe { S::splat(position as i32) };
                    for (vector, sum) in sums.into_iter().enumerate() {
                        // SAFETY: the set runs here.
                        unsafe { sink.take(vector, position, at, sum) };
                    }
                }
            }};
        }
        match size {
            6 => run!(6),
            5 => run!(5),
            4 => run!(4),
            3 => run!(3),
            2 => run!(2),
            _ => run!(1),
        }
        position += size;
    }
}

/// Keeps the greatest sums and the first positions that have them.
struct Greatest<S: Lanes, const P: usize>([(S::Vector, S::Vector); P]);

impl<S: Lanes, const P: usize> Sink<S> for Greatest<S, P> {
    #[inline(always)]
    unsafe fn take(&mut self, vector: usize, _: usize, at: S::Vector, sum: S::Vector) {
        // SAFETY: the set runs here.
        self.0[vector] = unsafe { S::better(self.0[vector], sum, at) };
    }
}

/// See [`super::Cluster::assign`].
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
pub(in crate::simd) unsafe fn assign<S: Lanes, const P: usize>(
    rows: &[i8],
    norms: &[u32],
    packed: &Packed,
    work: &mut Work,
    labels: &mut [u32],
    distances: &mut [u32],
) -> Found {
    let count = labels.len();
    // SAFETY: the set runs here.
    unsafe { turned::<S, P>(rows, packed.dims(), count, work) };
    let part = packed.dims().div_ceil(4) * S::FORMAT.words() * P * S::WIDTH;
    let Work {
        turned,
        old,
        new,
        near,
        lengths,
        ..
    } = work;
    // Lanes past the last point have an old label and a length too, of no matter.
    old[..count].copy_from_slice(labels);
    lengths[..count].copy_from_slice(norms);
    let points = super::flat(turned);
    let order = packed.order();
    let mut changed = 0;
    for (index, first) in (0..count).step_by(P * S::WIDTH).enumerate() {
        // SAFETY: the set runs here; parts of a tile that was turned; lanes of a tile, whose arrays have 64.
        unsafe {
            // No sum is as low as this start: v is at least −1.5 · 2¹⁴ · d.
            let none = (S::splat(i32::MIN), S::splat(0));
            let mut greatest = Greatest::<S, P>([none; P]);
            let points = points[index * part..][..part].as_ptr();
            products::<S, P>(points, packed, &mut greatest);
            let odd = S::splat(packed.evens() as i32);
            for (vector, (best, position)) in greatest.0.into_iter().enumerate() {
                let lane = first + vector * S::WIDTH;
                S::store(position, new.as_mut_ptr().add(lane).cast());
                for label in &mut new[lane..][..S::WIDTH] {
                    *label = order[*label as usize];
                }
                let length = S::load(lengths.as_ptr().add(lane).cast());
                let distance = S::distance(length, best, position, odd);
                S::store(distance, near.as_mut_ptr().add(lane).cast());
                let before = S::load(old.as_ptr().add(lane).cast());
                let now = S::load(new.as_ptr().add(lane).cast());
                changed |= S::differ(before, now) << lane;
            }
        }
    }
    labels.copy_from_slice(&new[..count]);
    distances.copy_from_slice(&near[..count]);
    Found {
        changed: changed & (u64::MAX >> (64 - count)),
        distances: distances.iter().map(|&distance| u64::from(distance)).sum(),
    }
}

/// Turns `count` points at the head of `rows`; copies them first where the rows end too soon to be read in whole 16s.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
unsafe fn turned<S: Lanes, const P: usize>(
    rows: &[i8],
    dims: usize,
    count: usize,
    work: &mut Work,
) {
    let whole = dims.next_multiple_of(16);
    let words = dims.div_ceil(4) * S::FORMAT.words() * TILE;
    work.turned.resize(words.div_ceil(16), super::Line([0; 16]));
    let out = super::flat_mut(&mut work.turned);
    if rows.len() >= (TILE - 1) * dims + whole {
        // SAFETY: the rows of a tile, the last to a whole 16.
        unsafe { turn::<S, P>(rows.as_ptr(), dims, dims, out) };
        return;
    }
    let staged = &mut work.staged;
    staged.clear();
    staged.resize(TILE * whole, 0);
    for (row, staged) in rows
        .chunks_exact(dims)
        .take(count)
        .zip(staged.chunks_exact_mut(whole))
    {
        staged[..dims].copy_from_slice(row);
    }
    // SAFETY: rows of whole 16s.
    unsafe { turn::<S, P>(staged.as_ptr(), whole, dims, out) };
}

/// Writes sums: those of a position to [`TILE`] values of `out`.
struct Write<'a, const P: usize> {
    out: &'a mut [i32],
    first: usize,
}

impl<S: Lanes, const P: usize> Sink<S> for Write<'_, P> {
    #[inline(always)]
    unsafe fn take(&mut self, vector: usize, position: usize, _: S::Vector, sum: S::Vector) {
        let at = position * TILE + self.first + vector * S::WIDTH;
        let out = &mut self.out[at..][..S::WIDTH];
        // SAFETY: the set runs here; a vector fits.
        unsafe { S::store(sum, out.as_mut_ptr()) };
    }
}

/// See [`super::Cluster::each`].
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
pub(in crate::simd) unsafe fn each<S: Lanes, const P: usize>(
    rows: &[i8],
    norms: &[u32],
    packed: &Packed,
    work: &mut Work,
    out: &mut [u32],
) {
    let count = norms.len();
    // SAFETY: the set runs here.
    unsafe { turned::<S, P>(rows, packed.dims(), count, work) };
    let part = packed.dims().div_ceil(4) * S::FORMAT.words() * P * S::WIDTH;
    work.sums.resize(packed.len() * TILE, 0);
    let points = super::flat(&work.turned);
    for (index, first) in (0..count).step_by(P * S::WIDTH).enumerate() {
        let mut write = Write::<'_, P> {
            out: &mut work.sums,
            first,
        };
        // SAFETY: the set runs here; a part of a tile that was turned.
        unsafe {
            let points = points[index * part..][..part].as_ptr();
            products::<S, P>(points, packed, &mut write);
        }
    }
    let sums = work.sums.chunks_exact(TILE).zip(packed.order());
    for (position, (sums, &label)) in sums.enumerate() {
        let odd = u32::from(position >= packed.evens());
        let out = &mut out[label as usize * TILE..][..count];
        for ((out, &sum), &norm) in out.iter_mut().zip(sums).zip(norms) {
            // ‖x‖² + score, between 0 and 65,025 · d, below 2³², whatever wraps on the way.
            *out = norm
                .wrapping_sub((sum as u32).wrapping_mul(2))
                .wrapping_add(odd);
        }
    }
}

/// See [`super::Cluster::nearer`].
#[inline(always)]
pub(in crate::simd) fn nearer(found: &[u32], distances: &[u32]) -> u64 {
    let pairs = found.iter().zip(distances);
    pairs.map(|(&a, &b)| u64::from(a.min(b))).sum()
}

/// See [`super::Cluster::shorten`].
#[inline(always)]
pub(in crate::simd) fn shorten(found: &[u32], distances: &mut [u32]) -> u64 {
    let mut total = 0;
    for (&found, distance) in found.iter().zip(distances) {
        *distance = found.min(*distance);
        total += u64::from(*distance);
    }
    total
}

/// Squared lengths of rows.
#[inline(always)]
pub(in crate::simd) fn norms(rows: &[i8], dims: usize, out: &mut [u32]) {
    for (row, out) in rows.chunks_exact(dims).zip(out) {
        // At most 2¹⁴ · 43,690.
        let squares = row.iter().map(|&x| i32::from(x) * i32::from(x));
        *out = squares.sum::<i32>() as u32;
    }
}

/// See [`super::Cluster::means`].
#[inline(always)]
pub(in crate::simd) fn means(sums: &[i64], count: u64, centroid: &mut [i8]) {
    // With |sum| + count / 2 below 2⁵² and a count below 2⁴⁴ both are exact in f64, and the quotient q is at most 128.5. Where
    // ⌊q⌋ = m, q ≤ m + 1 − 1/count. Below 256 floats lie at most 2⁻⁴⁵ apart, which is less than 1/count, so rounding cannot
    // reach m + 1, and the quotient cut to an integer is m.
    let half = count / 2;
    let (divisor, half) = (count as f64, half as f64);
    for (c, &sum) in centroid.iter_mut().zip(sums) {
        let sum = sum as f64;
        let magnitude = ((sum.abs() + half) / divisor) as i32;
        *c = (if sum < 0.0 { -magnitude } else { magnitude }) as i8;
    }
}
