//! The loops of a tile of points, generic in the instruction set; each set compiles them in functions of its own.

use super::packed::{Packed, blocks};
use super::products::{Products, Words};
use super::{Scratch, TILE};
use crate::simd::stores::ask;
use crate::simd::vectors::Vectors;

/// Processes the sums of a block.
pub(in crate::simd) trait Sink<S: Products> {
    /// Processes the sums of the points of `vector` for the centroid at `position`, which has `tag`.
    fn take(&mut self, set: S, vector: usize, position: usize, tag: Words<S>, sum: Words<S>);
}

/// Returns the words of a part of a transposed tile, `P` vectors of points with `dims` coordinates.
#[inline(always)]
pub(in crate::simd) fn part_len<S: Products, const P: usize>(set: S, dims: usize) -> usize {
    dims.div_ceil(4) * S::FORMAT.words() * P * set.vectors().lanes()
}

/// Transposes a tile: for `P` vectors of points at a time, for each group of four coordinates, its operands side by
/// side. `rows` has [`TILE`] rows `stride` apart, the last up to a whole 16 of coordinates.
#[inline(always)]
pub(in crate::simd) fn turn<S: Products, const P: usize>(
    set: S,
    rows: &[i8],
    stride: usize,
    dims: usize,
    out: &mut [i32],
) {
    let vectors = set.vectors();
    let lanes = set.vectors().lanes();
    let groups = dims.div_ceil(4);
    let words = S::FORMAT.words();
    let part = part_len::<S, P>(set, dims);
    assert!(rows.len() >= (TILE - 1) * stride + dims.next_multiple_of(16));
    assert!(out.len() >= part * (TILE / (P * lanes)));
    for index in 0..TILE / lanes {
        // Prefetches the tile after the next, while this one's products give memory time.
        let ahead = (rows.as_ptr()).wrapping_add((2 * TILE + index * lanes) * stride);
        for line in (0..lanes * stride).step_by(64) {
            ask(ahead.wrapping_add(line));
        }
        let first = index * lanes * stride;
        let to = index / P * part + index % P * lanes;
        for sixteen in 0..dims.div_ceil(16) {
            // SAFETY: rows of the tile, each with this 16, as asserted.
            let turned = unsafe { vectors.turn(rows.as_ptr().add(first + 16 * sixteen), stride) };
            for (inner, coordinates) in turned.into_iter().enumerate() {
                let group = 4 * sixteen + inner;
                if group < groups {
                    let operands = set.operands(coordinates);
                    for (word, operand) in operands.into_iter().take(words).enumerate() {
                        let to = to + (group * words + word) * P * lanes;
                        // SAFETY: `to` is inside the part of these points, which is inside `out`, as asserted.
                        unsafe { vectors.store(operand, out.as_mut_ptr().add(to)) };
                    }
                }
            }
        }
    }
}

/// Returns the sums of `P` vectors of points, with as many steps of them as `points` has, with `C` centroids; `words`
/// has one word of each per step. If sides are `SWAPPED`, points take the place of centroids in products.
#[inline(always)]
#[expect(
    clippy::needless_range_loop,
    reason = "iterators would be compiled anew for every set and shape"
)]
pub(in crate::simd) fn block<S: Products, const P: usize, const C: usize, const SWAPPED: bool>(
    set: S,
    points: &[i32],
    words: &[i32],
    starts: &[i32],
) -> [[Words<S>; P]; C] {
    let vectors = set.vectors();
    let lanes = set.vectors().lanes();
    let steps = points.len() / (P * lanes);
    assert!(words.len() >= steps * C);
    let starts: &[i32; C] = starts.first_chunk().expect("a start a centroid");
    let mut sums = [[vectors.splat(starts[0]); P]; C];
    for column in 1..C {
        sums[column] = [vectors.splat(starts[column]); P];
    }
    let (mut points, mut words) = (points.as_ptr(), words.as_ptr());
    for _ in 0..steps {
        let mut x = [sums[0][0]; P];
        for vector in 0..P {
            // SAFETY: one of `steps` · `P` vectors.
            x[vector] = unsafe { vectors.load(points.add(vector * lanes)) };
        }
        for column in 0..C {
            // SAFETY: one of `steps` · `C` words, as asserted.
            let centroid = vectors.splat(unsafe { words.add(column).read() });
            for vector in 0..P {
                let (sum, x) = (sums[column][vector], x[vector]);
                sums[column][vector] = if SWAPPED {
                    set.product(sum, centroid, x)
                } else {
                    set.product(sum, x, centroid)
                };
            }
        }
        // SAFETY: at most one past the last.
        (points, words) = unsafe { (points.add(P * lanes), words.add(C)) };
    }
    sums
}

/// Calls `sink` with every sum of `P` vectors of points, a part of a transposed tile, with centroids in order of
/// position.
#[inline(always)]
pub(super) fn products<S: Products, const P: usize>(
    set: S,
    points: &[i32],
    packed: &Packed,
    sink: &mut impl Sink<S>,
) {
    let steps = packed.dims().div_ceil(4) * S::FORMAT.words();
    let tags = &packed.tags()[..packed.len()];
    let mut position = 0;
    for size in blocks(packed.len()) {
        let starts = &packed.starts()[position..];
        let words = &packed.words()[position * steps..];
        macro_rules! run {
            ($columns:literal) => {{
                let sums = block::<S, P, $columns, false>(set, points, words, starts);
                for column in 0..$columns {
                    let position = position + column;
                    let tag = set.vectors().splat(tags[position]);
                    for vector in 0..P {
                        sink.take(set, vector, position, tag, sums[column][vector]);
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
struct Greatest<S: Products, const P: usize>([(Words<S>, Words<S>); P]);

impl<S: Products, const P: usize> Sink<S> for Greatest<S, P> {
    #[inline(always)]
    fn take(&mut self, set: S, vector: usize, _: usize, tag: Words<S>, sum: Words<S>) {
        let (set, (best, kept)) = (set.vectors(), self.0[vector]);
        let greater = set.exceeds(sum, best);
        self.0[vector] = (set.max(sum, best), set.select(greater, tag, kept));
    }
}

/// See [`super::Cluster::assign`].
#[inline(always)]
pub(in crate::simd) fn assign<S: Products, const P: usize>(
    set: S,
    rows: &[i8],
    lengths: &[u32],
    packed: &Packed,
    scratch: &mut Scratch,
    labels: &mut [u32],
    distances: &mut [u32],
) -> u64 {
    let count = labels.len();
    scratch.begin(labels);
    turned::<S, P>(set, rows, packed.dims(), count, scratch);
    let points = super::flat(&scratch.turned);
    // A part of a tile, and the values of it that are written and read; the content of its other lanes does not matter.
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
    // The only call, because all of it is compiled where it is called.
    let (changed, total) = nearest::<S, P>(set, points, packed, count, tile, written);
    scratch.found(changed);
    if let Some((all, near, _)) = &part {
        labels.copy_from_slice(&all[..count]);
        distances.copy_from_slice(&near[..distances.len()]);
    }
    total
}

/// Returns a tile that begins with these values.
fn filled_up(values: &[u32]) -> [u32; TILE] {
    let mut tile = [0; TILE];
    tile[..values.len()].copy_from_slice(values);
    tile
}

/// Finds the nearest centroids of a transposed tile with `count` points: returns a bit for each that changed, and Σ D²
/// as in [`super::Cluster::assign`]. Distances are written if there are lengths for them.
#[inline(always)]
fn nearest<S: Products, const P: usize>(
    set: S,
    points: &[i32],
    packed: &Packed,
    count: usize,
    labels: &mut [u32; TILE],
    mut distances: Option<(&[u32; TILE], &mut [u32; TILE])>,
) -> (u64, u64) {
    let vectors = set.vectors();
    let lanes = set.vectors().lanes();
    let part = part_len::<S, P>(set, packed.dims());
    let (mut sums, mut tags) = ([0i32; TILE], [0i32; TILE]);
    let mut changed = 0;
    for (index, first) in (0..TILE).step_by(P * lanes).enumerate() {
        let points = &points[index * part..][..part];
        // No sum is so low: v is at least −1.5 · 2¹⁴ · d, or with unsigned centroids −2.5 · 2¹⁴ · d; and at most 2 ·
        // 2¹⁴ · d.
        let none = (vectors.splat(i32::MIN), vectors.splat(0));
        let mut greatest = Greatest::<S, P>([none; P]);
        products::<S, P>(set, points, packed, &mut greatest);
        for (vector, (best, tag)) in greatest.0.into_iter().enumerate() {
            let lane = first + vector * lanes;
            let label = vectors.half(tag);
            if let Some((lengths, distances)) = &mut distances {
                // ‖x‖² − 2·best + tag mod 2.
                let odd = vectors.and(tag, vectors.splat(1));
                let length = vectors.read(&lengths[lane..]);
                let even = vectors.subtract(length, vectors.add(best, best));
                vectors.write(vectors.add(even, odd), &mut distances[lane..]);
            } else {
                vectors.write(best, &mut sums[lane..]);
                vectors.write(tag, &mut tags[lane..]);
            }
            let same = vectors.equals(vectors.read(&labels[lane..]), label);
            vectors.write(label, &mut labels[lane..]);
            changed |= (vectors.bits(same) ^ vectors.all()) << lane;
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

/// Transposes `count` points at the head of `rows`; copies them first if the rows end too early to be read in whole
/// 16s.
#[inline(always)]
fn turned<S: Products, const P: usize>(
    set: S,
    rows: &[i8],
    dims: usize,
    count: usize,
    scratch: &mut Scratch,
) {
    let whole = dims.next_multiple_of(16);
    let words = dims.div_ceil(4) * S::FORMAT.words() * TILE;
    scratch
        .turned
        .resize(words.div_ceil(16), super::Line([0; 16]));
    let out = super::flat_mut(&mut scratch.turned);
    if rows.len() >= (TILE - 1) * dims + whole {
        return turn::<S, P>(set, rows, dims, dims, out);
    }
    let staged = &mut scratch.staged;
    staged.clear();
    staged.resize(TILE * whole, 0);
    for (row, staged) in rows
        .chunks_exact(dims)
        .take(count)
        .zip(staged.chunks_exact_mut(whole))
    {
        staged[..dims].copy_from_slice(row);
    }
    turn::<S, P>(set, staged, whole, dims, out);
}

/// Writes sums: those of a position to [`TILE`] values of `out`.
struct Write<'a, const P: usize> {
    out: &'a mut [i32],
    first: usize,
}

impl<S: Products, const P: usize> Sink<S> for Write<'_, P> {
    #[inline(always)]
    fn take(&mut self, set: S, vector: usize, position: usize, _: Words<S>, sum: Words<S>) {
        let set = set.vectors();
        let at = position * TILE + self.first + vector * set.lanes();
        set.write(sum, &mut self.out[at..]);
    }
}

/// See [`super::Cluster::each`].
#[inline(always)]
pub(in crate::simd) fn each<S: Products, const P: usize>(
    set: S,
    rows: &[i8],
    lengths: &[u32],
    packed: &Packed,
    scratch: &mut Scratch,
    out: &mut [u32],
) {
    let count = lengths.len();
    turned::<S, P>(set, rows, packed.dims(), count, scratch);
    let part = part_len::<S, P>(set, packed.dims());
    scratch.sums.resize(packed.len() * TILE, 0);
    let points = super::flat(&scratch.turned);
    for (index, first) in (0..count).step_by(P * set.vectors().lanes()).enumerate() {
        let mut write = Write::<'_, P> {
            out: &mut scratch.sums,
            first,
        };
        products::<S, P>(set, &points[index * part..][..part], packed, &mut write);
    }
    for (sums, &tag) in scratch.sums.chunks_exact(TILE).zip(packed.tags()) {
        let (label, odd) = (tag as usize >> 1, tag as u32 & 1);
        let out = &mut out[label * TILE..][..count];
        for ((out, &sum), &length) in out.iter_mut().zip(sums).zip(lengths) {
            // ‖x‖² + score, between 0 and 65,025 · d, below 2³², even if intermediate results wrap.
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
    // The quotient q = (|sum| + ⌊count / 2⌋) / count is at most 128.5. If ⌊q⌋ = m, q ≤ m + 1 − 1/count. Below 256, f64
    // are at most 2⁻⁴⁵ and f32 at most 2⁻¹⁶ apart, which is at most 1/count for counts of at most 2⁴⁴ and 2¹⁶: then
    // rounding cannot reach m + 1, and the quotient truncated to an integer is m. Dividends, at most 128.5 · count, are
    // exact.
    macro_rules! divide {
        ($float:ty, $integer:ty) => {{
            let (divisor, half) = (count as $float, (count / 2) as $integer);
            for (c, &sum) in centroid.iter_mut().zip(sums) {
                // Sums that do not come from `count` coordinates may wrap.
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
