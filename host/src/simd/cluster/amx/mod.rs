//! Clustering: points are rows of one side's tiles, in place in memory, and centroids columns of the other's.
//!
//! The sums of 32 points with two or four tiles of 16 centroids go through memory, at most 8 KiB of the nearest cache,
//! to the comparisons of [`nearest`]. These are one piece behind the products, so that the tile unit and the vector
//! units work at the same time.

mod nearest;

use std::arch::x86_64::*;

use self::nearest::{Exact, POINTS, Sums, greatest, greatest_of, keep};
use crate::simd::amx::tile::{HEIGHT, Left, Panel, Shape, Tiles};
use crate::simd::avx512_vnni::cluster::KERNELS as VECTORS;
use crate::simd::cluster::keys::Keys;
use crate::simd::cluster::panels::Panels;
use crate::simd::cluster::products::Format;
use crate::simd::cluster::{Cluster, Line, Packed, Scratch, TILE};

/// The kernels of clustering.
pub(in crate::simd) const KERNELS: Cluster = Cluster {
    format: Some(Format::Tiles),
    // Tiles are configured once per call, which takes as long as the products of 64 points with 16 centroids.
    span: 32 * TILE,
    assign,
    each,
    ..VECTORS
};

/// Tiles of centroids whose sums are compared together.
const PIECE: usize = 4;

/// Minimum number of tiles of centroids for which points are copied to whole cache lines: they are read once for every
/// two tiles.
const STAGED: usize = 5;

/// Sums of two pieces.
type Pieces = [[Sums; PIECE]; 2];

/// Points of a tile, and the products with them.
struct Products<'a> {
    tiles: Tiles,
    panels: &'a Panels,
    /// Address of the points.
    at: *const i8,
    /// Bytes from a point to the next.
    row: usize,
    /// Bytes from a step to the next.
    step: usize,
    /// Points of later tiles, for prefetching.
    ahead: *const i8,
    /// Lines of them to prefetch per block.
    lines: usize,
}

impl<'a> Products<'a> {
    /// Returns products without points.
    ///
    /// # Safety
    /// The set runs here.
    #[inline]
    unsafe fn new(panels: &'a Panels) -> Self {
        let shape = Shape {
            first: HEIGHT,
            second: HEIGHT,
            words: panels.words,
        };
        Self {
            // SAFETY: the caller's promise.
            tiles: unsafe { Tiles::new(shape) },
            panels,
            at: std::ptr::null(),
            row: 0,
            step: 0,
            ahead: std::ptr::null(),
            lines: 0,
        }
    }

    /// Prefetches a part of the tile after the next, while this one's products give memory time. It prefetches few
    /// lines at once, because a core waits if it has requested more lines than it can.
    #[inline]
    fn fetch(&mut self) {
        for _ in 0..self.lines {
            // SAFETY: a prefetch faults nowhere.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(self.ahead) };
            self.ahead = self.ahead.wrapping_add(64);
        }
    }

    /// Uses the first `count` points of `rows`, with `dims` coordinates each: in place, or copied to `staged` in whole
    /// lines, padded with zeros.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn take(&mut self, rows: &[i8], dims: usize, count: usize, staged: &mut Vec<Line>) {
        let &Panels {
            steps,
            words,
            tiles,
            ..
        } = self.panels;
        let width = 4 * words;
        self.ahead = rows.as_ptr().wrapping_add(2 * TILE * dims);
        let blocks = 2 * tiles.div_ceil(PIECE);
        self.lines = dims.div_ceil(blocks);
        if tiles < STAGED && rows.len() >= (TILE - 1) * dims + steps * width {
            (self.at, self.row, self.step) = (rows.as_ptr(), dims, width);
            return;
        }
        staged.resize(steps * TILE, Line::ZERO);
        for (step, lines) in staged.chunks_exact_mut(TILE).enumerate() {
            let first = step * width;
            let mask = u64::MAX >> (64 - width.min(dims - first));
            for (row, line) in rows.chunks_exact(dims).take(count).zip(lines) {
                // SAFETY: as many bytes are read as the row has from `first` on, and a line is written.
                unsafe {
                    let part = _mm512_maskz_loadu_epi8(mask, row.as_ptr().add(first));
                    _mm512_store_si512((&raw mut line.0).cast(), part);
                }
            }
        }
        (self.at, self.row, self.step) = (staged.as_ptr().cast(), 64, 64 * TILE);
    }

    /// Computes the sums of 32 points from `first` on with `out.len()` tiles of centroids from `tile` on, an even
    /// number.
    ///
    /// # Safety
    /// The set runs here; there are such points and tiles.
    #[inline]
    unsafe fn sums(&self, first: usize, tile: usize, out: &mut [Sums]) {
        let &Panels { steps, words, .. } = self.panels;
        // SAFETY: points as promised, whose rows of 4 · `words` bytes can be read for every step. A panel has a line
        // for each of its tiles, steps and words, and a line of starts for each tile; as many tiles of sums are written
        // as `out` has.
        unsafe {
            let at = self.at.add(first * self.row);
            let a = Left {
                at,
                second: Some(at.add(HEIGHT * self.row)),
                row: self.row,
                step: self.step,
            };
            for (tile, out) in (tile..).step_by(2).zip(out.chunks_mut(2)) {
                let b = Panel {
                    at: self.panels.lines[tile * steps * words..].as_ptr().cast(),
                    starts: self.panels.starts[tile..].as_ptr().cast(),
                    step: 64 * words * out.len(),
                };
                let out_at = out.as_mut_ptr().cast();
                if out.len() == 2 {
                    self.tiles.panel::<true>(a, b, steps, out_at);
                } else {
                    self.tiles.panel::<false>(a, b, steps, out_at);
                }
            }
        }
    }

    /// Returns labels and scores of the nearest of up to two tiles of centroids.
    ///
    /// # Safety
    /// The set runs here.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
    unsafe fn few<const T: usize>(&mut self, blocks: usize, pieces: &mut Pieces) -> Nearest {
        let panels = self.panels;
        let (keys, tags) = (panels.keys, &panels.tags);
        for (block, sums) in pieces.iter_mut().take(blocks).enumerate() {
            self.fetch();
            // SAFETY: the set runs here; a block of a tile of points.
            unsafe { self.sums(POINTS * block, 0, &mut sums[..T]) };
        }
        let mut nearest = [(_mm512_setzero_si512(), _mm512_setzero_si512()); 4];
        for (lanes, nearest) in nearest.iter_mut().enumerate().take(2 * blocks) {
            let sums = &pieces[lanes / 2][..T];
            *nearest = parts(keys, greatest_of::<T>(sums, tags, keys, lanes % 2 * 16));
        }
        nearest
    }

    /// Returns labels and scores of the nearest of any number of tiles of centroids.
    ///
    /// # Safety
    /// The set runs here.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
    unsafe fn many(&mut self, blocks: usize, pieces: &mut Pieces) -> Nearest {
        let Panels {
            tiles, keys, tags, ..
        } = self.panels;
        let mut best = [[Line::ZERO; POINTS]; 2];
        let count = tiles.div_ceil(PIECE) * blocks;
        for piece in 0..=count {
            if piece < count {
                self.fetch();
                let (first, block) = (piece / blocks * PIECE, piece % blocks);
                let width = (tiles - first).min(PIECE);
                // SAFETY: the set runs here; a block of a tile of points, and tiles that are there.
                unsafe { self.sums(POINTS * block, first, &mut pieces[piece % 2][..width]) };
            }
            if let Some(piece) = piece.checked_sub(1) {
                let (first, block) = (piece / blocks * PIECE, piece % blocks);
                let (sums, tags, best) = (&pieces[piece % 2], &tags[first..], &mut best[block]);
                match tags.len() {
                    1 => keep::<1>(sums, tags, *keys, best),
                    2 => keep::<2>(sums, tags, *keys, best),
                    3 => keep::<3>(sums, tags, *keys, best),
                    _ => keep::<4>(sums, tags, *keys, best),
                }
            }
        }
        let mut nearest = [(_mm512_setzero_si512(), _mm512_setzero_si512()); 4];
        for (lanes, nearest) in nearest.iter_mut().enumerate().take(2 * blocks) {
            *nearest = parts(*keys, greatest(&best[lanes / 2][lanes % 2 * 16..]));
        }
        nearest
    }

    /// Does [`Products::many`] if keys are only scores.
    ///
    /// # Safety
    /// The set runs here.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2")]
    unsafe fn exact(&self, blocks: usize, pieces: &mut Pieces) -> Nearest {
        let mut nearest = [(_mm512_setzero_si512(), _mm512_setzero_si512()); 4];
        let (tiles, tags) = (self.panels.tiles, &self.panels.tags);
        for (block, nearest) in nearest.chunks_mut(2).enumerate().take(blocks) {
            let mut best = Exact::NONE;
            for first in (0..tiles).step_by(PIECE) {
                let sums = &mut pieces[0][..(tiles - first).min(PIECE)];
                // SAFETY: the set runs here; a block of a tile of points, and tiles that are there.
                unsafe { self.sums(POINTS * block, first, sums) };
                for (tile, sums) in (first..).zip(sums) {
                    best.keep(sums, &tags[tile], 16 * tile);
                }
            }
            for (half, nearest) in nearest.iter_mut().enumerate() {
                *nearest = best.greatest(16 * half);
            }
        }
        nearest
    }
}

/// Labels and scores, each of 16 points.
type Nearest = [(__m512i, __m512i); 4];

/// Returns the labels and the scores of keys.
#[inline]
#[target_feature(enable = "avx512f")]
fn parts(keys: Keys, key: __m512i) -> (__m512i, __m512i) {
    let label = _mm512_andnot_si512(key, _mm512_set1_epi32(keys.mask() as i32));
    let score = _mm512_srl_epi32(key, _mm_cvtsi32_si128(keys.bits as i32));
    let score = _mm512_sub_epi32(score, _mm512_set1_epi32(2 * keys.offset));
    (label, score)
}

/// See [`Cluster::assign`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi2")]
fn assign(
    rows: &[i8],
    lengths: &[u32],
    packed: &Packed,
    scratch: &mut Scratch,
    labels: &mut [u32],
    distances: &mut [u32],
) -> u64 {
    let (dims, panels) = (packed.dims(), packed.panels());
    scratch.begin(labels);
    let mut pieces: Pieces = [[[Line::ZERO; POINTS]; PIECE]; 2];
    // SAFETY: a table is only reached through a backend that was found to run its set.
    let mut products = unsafe { Products::new(panels) };
    let mut total = _mm512_setzero_si512();
    let mut lengths = lengths.chunks(TILE);
    let mut distances = distances.chunks_mut(TILE);
    for (tile, labels) in labels.chunks_mut(TILE).enumerate() {
        let rows = &rows[tile * TILE * dims..];
        let count = labels.len();
        products.take(rows, dims, count, &mut scratch.tiles);
        let blocks = count.div_ceil(POINTS);
        // SAFETY: the set runs here.
        let nearest = unsafe {
            match panels.tiles {
                _ if panels.keys.bits == 0 => products.exact(blocks, &mut pieces),
                1 => products.few::<1>(blocks, &mut pieces),
                2 => products.few::<2>(blocks, &mut pieces),
                _ => products.many(blocks, &mut pieces),
            }
        };
        let written = lengths.next().zip(distances.next());
        let (changed, sum) = found(&nearest, labels, written);
        total = _mm512_add_epi64(total, sum);
        scratch.found(changed);
    }
    _mm512_reduce_add_epi64(total) as u64
}

/// Writes the nearest centroids of a tile's points. Returns a bit for each point with a changed label, and the sum of
/// distances in eight parts; if there are none to write, that of points of length 0.
#[inline]
#[target_feature(enable = "avx512f")]
fn found(
    nearest: &Nearest,
    labels: &mut [u32],
    mut written: Option<(&[u32], &mut [u32])>,
) -> (u64, __m512i) {
    let (mut changed, mut total) = (0, _mm512_setzero_si512());
    let count = labels.len();
    for (index, labels) in labels.chunks_mut(16).enumerate() {
        let (label, score) = nearest[index];
        let first = 16 * index;
        let lanes = u16::MAX >> (16 - labels.len());
        // SAFETY: as many lanes are read and written as there are labels, and as lengths and distances from `first` on.
        unsafe {
            let before = _mm512_maskz_loadu_epi32(lanes, labels.as_ptr().cast());
            let differ = _mm512_mask_cmpneq_epi32_mask(lanes, before, label);
            changed |= u64::from(differ) << first;
            _mm512_mask_storeu_epi32(labels.as_mut_ptr().cast(), lanes, label);
            // Halves of 32 bits: squared distances are unsigned, scores are signed.
            if let Some((lengths, distances)) = &mut written {
                assert!(lengths.len() == count && distances.len() == count);
                let length = _mm512_maskz_loadu_epi32(lanes, lengths.as_ptr().add(first).cast());
                let distance = _mm512_maskz_sub_epi32(lanes, length, score);
                let to = distances.as_mut_ptr().add(first).cast();
                _mm512_mask_storeu_epi32(to, lanes, distance);
                let low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(distance));
                let high = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64::<1>(distance));
                total = _mm512_add_epi64(total, _mm512_add_epi64(low, high));
            } else {
                let score = _mm512_maskz_mov_epi32(lanes, score);
                let low = _mm512_cvtepi32_epi64(_mm512_castsi512_si256(score));
                let high = _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64::<1>(score));
                total = _mm512_sub_epi64(total, _mm512_add_epi64(low, high));
            }
        }
    }
    (changed, total)
}

/// See [`Cluster::each`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi2")]
fn each(rows: &[i8], lengths: &[u32], packed: &Packed, scratch: &mut Scratch, out: &mut [u32]) {
    let (dims, panels, count) = (packed.dims(), packed.panels(), lengths.len());
    let (_, norms) = packed.plain();
    let mut sums: [Sums; 2] = [[Line::ZERO; POINTS]; 2];
    // SAFETY: a table is only reached through a backend that was found to run its set.
    let mut products = unsafe { Products::new(panels) };
    products.take(rows, dims, count, &mut scratch.tiles);
    let places = _mm512_mullo_epi32(
        _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
        _mm512_set1_epi32(16),
    );
    for tile in (0..panels.tiles).step_by(2) {
        let sums = &mut sums[..panels.together(tile)];
        for first in (0..count).step_by(POINTS) {
            // SAFETY: the set runs here; a block of a tile of points, and tiles that are there.
            unsafe { products.sums(first, tile, sums) };
            let norms = norms.iter().enumerate().skip(16 * tile).take(32);
            for (label, norm) in norms {
                let (column, odd) = (label - 16 * tile, norm % 2);
                let plus = _mm512_set1_epi32(2 * panels.keys.offset - odd);
                let out = &mut out[label * TILE..][..count];
                for (first, half) in (first..count).step_by(16).zip([0, 16]) {
                    let lanes = u16::MAX >> (16 - (count - first).min(16));
                    let rows = &sums[column / 16][half..][..16];
                    // SAFETY: 16 values, a line from one another; as many lanes as there are points.
                    unsafe {
                        let column = rows.as_ptr().cast::<i32>().add(column % 16);
                        let sum = _mm512_i32gather_epi32::<4>(places, column);
                        let length = lengths.as_ptr().add(first).cast();
                        let length = _mm512_maskz_loadu_epi32(lanes, length);
                        let less = _mm512_sub_epi32(_mm512_add_epi32(sum, sum), plus);
                        let distance = _mm512_sub_epi32(length, less);
                        let to = out.as_mut_ptr().add(first).cast();
                        _mm512_mask_storeu_epi32(to, lanes, distance);
                    }
                }
            }
        }
    }
}
