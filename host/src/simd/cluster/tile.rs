//! The loops of a tile of points, generic in the instruction set; each set compiles them in functions of its own.

use super::lanes::Lanes;
use super::packed::{Packed, blocks};
use super::{TILE, Work};

/// What is done with the sums of a block.
pub(in crate::simd) trait Sink<S: Lanes> {
    /// Takes the sums of the points of `vector` for the centroid at `position`, which has `tag`.
    unsafe fn take(&mut self, vector: usize, position: usize, tag: S::Vector, sum: S::Vector);
}

/// Turns a tile: for `P` vectors of points at a time, for each group of four coordinates, its operands side by side.
///
/// # Safety
/// The processor runs the set. `rows` has [`TILE`] rows `stride` apart that can be read to whole 16s of coordinates.
#[inline(always)]
pub(in crate::simd) unsafe fn turn<S: Lanes, const P: usize>(
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
        // The tile after the next, while this one's products give memory time.
        let ahead = rows.wrapping_add((2 * TILE + index * S::WIDTH) * stride);
        for line in (0..S::WIDTH * stride).step_by(64) {
            // SAFETY: the set runs here.
            unsafe { S::prefetch(ahead.wrapping_add(line)) };
        }
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

/// The sums of `P` vectors of points with `C` centroids; where sides are `SWAPPED`, points are what products take for centroids.
///
/// # Safety
/// The processor runs the set; `points` has `steps` · `P` vectors and `words` has `steps` · `C` words.
#[inline(always)]
#[expect(
    clippy::needless_range_loop,
    reason = "iterators would be compiled anew for every set and shape"
)]
pub(in crate::simd) unsafe fn block<
    S: Lanes,
    const P: usize,
    const C: usize,
    const SWAPPED: bool,
>(
    points: *const i32,
    words: *const i32,
    steps: usize,
    starts: &[i32],
) -> [[S::Vector; P]; C] {
    let starts: &[i32; C] = starts.first_chunk().expect("a start a centroid");
    // SAFETY: the set runs here.
    let mut sums = [[unsafe { S::splat(starts[0]) }; P]; C];
    for column in 1..C {
        // SAFETY: the set runs here.
        sums[column] = [unsafe { S::splat(starts[column]) }; P];
    }
    let (mut points, mut words) = (points, words);
    for _ in 0..steps {
        let mut x = [sums[0][0]; P];
        for vector in 0..P {
            // SAFETY: one of `steps` · `P` vectors.
            x[vector] = unsafe { S::load(points.add(vector * S::WIDTH)) };
        }
        for column in 0..C {
            // SAFETY: one of `steps` · `C` words.
            let centroid = unsafe { S::splat(words.add(column).read()) };
            for vector in 0..P {
                let (sum, x) = (sums[column][vector], x[vector]);
                // SAFETY: the set runs here.
                sums[column][vector] = unsafe {
                    if SWAPPED {
                        S::product(sum, centroid, x)
                    } else {
                        S::product(sum, x, centroid)
                    }
                };
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
pub(super) unsafe fn products<S: Lanes, const P: usize>(
    points: *const i32,
    packed: &Packed,
    sink: &mut impl Sink<S>,
) {
    let steps = packed.dims().div_ceil(4) * S::FORMAT.words();
    assert!(packed.words().len() == packed.len() * steps && packed.starts().len() == packed.len());
    let tags = &packed.tags()[..packed.len()];
    let mut position = 0;
    for size in blocks(packed.len()) {
        let starts = &packed.starts()[position..];
        macro_rules! run {
            ($columns:literal) => {{
                // SAFETY: the blocks before took `position` · `steps` words of those asserted; points as promised.
                let sums = unsafe {
                    let words = packed.words().as_ptr().add(position * steps);
                    block::<S, P, $columns, false>(points, words, steps, starts)
                };
                for column in 0..$columns {
                    let position = position + column;
                    // SAFETY: the set runs here.
                    let tag = unsafe { S::splat(tags[position]) };
                    for vector in 0..P {
                        // SAFETY: the set runs here.
                        unsafe { sink.take(vector, position, tag, sums[column][vector]) };
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

/// Keeps the greatest sums and the tags of the first positions that have them.
struct Greatest<S: Lanes, const P: usize>([(S::Vector, S::Vector); P]);

impl<S: Lanes, const P: usize> Sink<S> for Greatest<S, P> {
    #[inline(always)]
    unsafe fn take(&mut self, vector: usize, _: usize, tag: S::Vector, sum: S::Vector) {
        // SAFETY: the set runs here.
        self.0[vector] = unsafe { S::better(self.0[vector], sum, tag) };
    }
}

/// See [`super::Cluster::assign`].
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
pub(in crate::simd) unsafe fn assign<S: Lanes, const P: usize>(
    rows: &[i8],
    lengths: &[u32],
    packed: &Packed,
    work: &mut Work,
    labels: &mut [u32],
    distances: &mut [u32],
) -> u64 {
    let count = labels.len();
    work.begin(labels);
    // SAFETY: the set runs here.
    unsafe { turned::<S, P>(rows, packed.dims(), count, work) };
    let points = super::flat(&work.turned);
    // A part of a tile, with what of it is written and read; what its other lanes hold is of no matter.
    let mut part = None;
    let (tile, written) = match labels.first_chunk_mut() {
        Some(labels) => match (lengths.first_chunk(), distances.first_chunk_mut()) {
            (Some(lengths), Some(distances)) => (labels, Some((lengths, distances))),
            _ => (labels, None),
        },
        None => {
            let (all, near, lengths) =
                part.insert((filled_up(labels), [0; TILE], filled_up(lengths)));
            let written = (!distances.is_empty()).then_some((&*lengths, near));
            (all, written)
        }
    };
    // The one call, since all of it is compiled where it is called.
    // SAFETY: the set runs here.
    let (changed, total) = unsafe { nearest::<S, P>(points, packed, count, tile, written) };
    work.found(changed);
    if let Some((all, near, _)) = &part {
        labels.copy_from_slice(&all[..count]);
        distances.copy_from_slice(&near[..distances.len()]);
    }
    total
}

/// A tile that begins with these values.
fn filled_up(values: &[u32]) -> [u32; TILE] {
    let mut tile = [0; TILE];
    tile[..values.len()].copy_from_slice(values);
    tile
}

/// The nearest centroids of a turned tile of which `count` points exist: a bit for each that changed, and Σ D² as
/// [`super::Cluster::assign`] has it. Distances are written where there are lengths for them.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
unsafe fn nearest<S: Lanes, const P: usize>(
    points: &[i32],
    packed: &Packed,
    count: usize,
    labels: &mut [u32; TILE],
    mut distances: Option<(&[u32; TILE], &mut [u32; TILE])>,
) -> (u64, u64) {
    let part = packed.dims().div_ceil(4) * S::FORMAT.words() * P * S::WIDTH;
    let (mut sums, mut tags) = ([0i32; TILE], [0i32; TILE]);
    let mut changed = 0;
    for (index, first) in (0..TILE).step_by(P * S::WIDTH).enumerate() {
        let points = points[index * part..][..part].as_ptr();
        // SAFETY: the set runs here; the points are a part of a tile that was turned.
        let greatest = unsafe {
            // No sum is as low: v is at least −1.5 · 2¹⁴ · d, with unsigned centroids −2.5 · 2¹⁴ · d; and at most 2 · 2¹⁴ · d.
            let none = (S::splat(i32::MIN), S::splat(0));
            let mut greatest = Greatest::<S, P>([none; P]);
            products::<S, P>(points, packed, &mut greatest);
            greatest.0
        };
        for (vector, (best, tag)) in greatest.into_iter().enumerate() {
            let lane = first + vector * S::WIDTH;
            // SAFETY: the set runs here; lanes of a tile.
            unsafe {
                let before = S::load(labels.as_ptr().add(lane).cast());
                let label = if let Some((lengths, distances)) = &mut distances {
                    let length = S::load(lengths.as_ptr().add(lane).cast());
                    let (label, distance) = S::found(length, best, tag);
                    S::store(distance, distances.as_mut_ptr().add(lane).cast());
                    label
                } else {
                    S::store(best, sums.as_mut_ptr().add(lane));
                    S::store(tag, tags.as_mut_ptr().add(lane));
                    S::found(best, best, tag).0
                };
                S::store(label, labels.as_mut_ptr().add(lane).cast());
                changed |= S::differ(before, label) << lane;
            }
        }
    }
    let distances = if let Some((_, distances)) = distances {
        let distances = distances[..count].iter();
        distances.map(|&distance| u64::from(distance)).sum()
    } else {
        // D² is ‖x‖² − 2·best + tag mod 2, and none of the three wraps.
        let pairs = sums[..count].iter().zip(&tags);
        let scores = pairs.map(|(&sum, tag)| i64::from(tag & 1) - 2 * i64::from(sum));
        scores.sum::<i64>() as u64
    };
    (changed & (u64::MAX >> (TILE - count)), distances)
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
    lengths: &[u32],
    packed: &Packed,
    work: &mut Work,
    out: &mut [u32],
) {
    let count = lengths.len();
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
    for (sums, &tag) in work.sums.chunks_exact(TILE).zip(packed.tags()) {
        let (label, odd) = (tag as usize >> 1, tag as u32 & 1);
        let out = &mut out[label * TILE..][..count];
        for ((out, &sum), &length) in out.iter_mut().zip(sums).zip(lengths) {
            // ‖x‖² + score, between 0 and 65,025 · d, below 2³², whatever wraps on the way.
            let twice = (sum as u32).wrapping_mul(2);
            *out = length.wrapping_sub(twice).wrapping_add(odd);
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

/// See [`super::Cluster::lengths`]: Σ x·(x + `shift`), modulo 2³².
#[inline(always)]
pub(in crate::simd) fn lengths(rows: &[i8], dims: usize, shift: i16, out: &mut [u32]) {
    for (row, out) in rows.chunks_exact(dims).zip(out) {
        // Of 16 bits each: at most 127 · 383.
        let terms = row
            .iter()
            .map(|&x| i32::from(x) * i32::from(i16::from(x) + shift));
        *out = terms.fold(0, i32::wrapping_add) as u32;
    }
}

/// See [`super::Cluster::means`].
#[inline(always)]
pub(in crate::simd) fn means(sums: &[i64], count: u64, centroid: &mut [i8]) {
    // The quotient q = (|sum| + ⌊count / 2⌋) / count is at most 128.5. Where ⌊q⌋ = m, q ≤ m + 1 − 1/count. Below 256, f64 lie at
    // most 2⁻⁴⁵ and f32 at most 2⁻¹⁶ apart, which is no more than 1/count for counts of at most 2⁴⁴ and 2¹⁶: then rounding
    // cannot reach m + 1, and the quotient cut to an integer is m. Dividends, at most 128.5 · count, are exact.
    macro_rules! divide {
        ($float:ty, $integer:ty) => {{
            let (divisor, half) = (count as $float, (count / 2) as $integer);
            for (c, &sum) in centroid.iter_mut().zip(sums) {
                // Sums that are none of `count` coordinates may wrap.
                let sum = sum as $integer;
                let dividend = sum.wrapping_abs().wrapping_add(half);
                let magnitude = (dividend as $float / divisor) as i32;
                *c = (if sum < 0 {
                    magnitude.wrapping_neg()
                } else {
                    magnitude
                }) as i8;
            }
        }};
    }
    if count <= 1 << 16 {
        divide!(f32, i32);
    } else {
        divide!(f64, i64);
    }
}
