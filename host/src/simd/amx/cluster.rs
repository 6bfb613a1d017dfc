//! Clustering: centroids are rows of one side's tiles, points lanes of the other's and of the sums.
//!
//! A turned tile of 64 points is what products take as it is: a group of four coordinates of 16 points is a row of 64 bytes. The sums
//! of 32 centroids and 64 points go through memory, 8 KiB of the nearest cache, to the comparisons of [`Avx512Vnni`].

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::tile::{HEIGHT, Left, Right, Shape, Tiles, WORDS};
use crate::simd::avx512_vnni::cluster::Avx512Vnni;
use crate::simd::cluster::TILE;
use crate::simd::cluster::lanes::{Format, Grid, Lanes};
use crate::simd::cluster::tile::Sink;

/// 16 lanes, with products of tiles.
pub(in crate::simd) struct Amx;

/// The sums of two tiles of centroids with 64 points.
#[repr(align(64))]
struct Block(#[expect(dead_code, reason = "reached by pointers")] [[i32; TILE]; 2 * HEIGHT]);

impl Lanes for Amx {
    type Vector = __m512i;
    const WIDTH: usize = 16;
    const FORMAT: Format = Format::Tiles;

    #[inline(always)]
    unsafe fn products<const P: usize>(
        points: *const i32,
        packed: &Packed,
        sink: &mut impl Sink<Self>,
    ) {
        const { assert!(P * 16 == TILE) };
        let grid = Grid::new(packed.len(), packed.dims());
        let step = grid.rows * grid.words;
        assert!(packed.words().len() == grid.tiles * grid.steps * step);
        let (starts, tags) = (packed.starts(), &packed.tags()[..packed.len()]);
        assert!(starts.len() == tags.len());
        let mut block = MaybeUninit::<Block>::uninit();
        let sums: *mut i32 = block.as_mut_ptr().cast();
        let row = size_of::<[i32; TILE]>();
        // SAFETY: the set runs here.
        let tiles = unsafe {
            Tiles::new(Shape {
                first: grid.rows,
                second: if grid.tiles > 1 { grid.rows } else { 0 },
                words: grid.words,
            })
        };
        for pair in (0..grid.tiles).step_by(2) {
            let pairs = (grid.tiles - pair).min(2);
            // SAFETY: the tiles of this pair lie in the words whose length was asserted, and the points of all steps as promised; 64
            // sums of each of 32 centroids fit.
            unsafe {
                let at = packed.words().as_ptr().add(pair * grid.steps * step);
                let a = Left {
                    at: at.cast(),
                    second: (pairs == 2).then(|| at.add(grid.steps * step).cast()),
                    row: 4 * grid.words,
                    step: 4 * step,
                };
                for lanes in [0, 2 * WORDS] {
                    let b = Right {
                        at: points.add(lanes).cast(),
                        signed: true,
                        row,
                        step: grid.words * row,
                    };
                    tiles.multiply::<false>(a, b, grid.steps, sums.add(lanes), row);
                }
            }
            for tile in 0..pairs {
                let first = (pair + tile) * grid.rows;
                let last = tags.len().min(first + grid.rows);
                for position in first..last {
                    // SAFETY: the set runs here. The row of this centroid, `HEIGHT` after the first of the tile before, was written: 64
                    // sums, four vectors.
                    unsafe {
                        let sums = sums.add((HEIGHT * tile + position - first) * TILE);
                        let start = Self::splat(starts[position]);
                        let tag = Self::splat(tags[position]);
                        for vector in 0..P {
                            let sum = Self::load(sums.add(Self::WIDTH * vector));
                            sink.take(vector, position, tag, _mm512_add_epi32(sum, start));
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn splat(value: i32) -> __m512i {
        // SAFETY: the set runs here.
        unsafe { Avx512Vnni::splat(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const i32) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { Avx512Vnni::load(from) }
    }

    #[inline(always)]
    unsafe fn store(vector: __m512i, to: *mut i32) {
        // SAFETY: the caller's promise.
        unsafe { Avx512Vnni::store(vector, to) }
    }

    #[inline(always)]
    unsafe fn turn(rows: *const i8, stride: usize) -> [__m512i; 4] {
        // SAFETY: the caller's promise.
        unsafe { Avx512Vnni::turn(rows, stride) }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const i8) {
        // SAFETY: a prefetch faults nowhere.
        unsafe { Avx512Vnni::prefetch(at) }
    }

    #[inline(always)]
    unsafe fn operands(coordinates: __m512i) -> [__m512i; 2] {
        [coordinates; 2]
    }

    /// Of no product here: [`Amx::products`] has its own.
    #[inline(always)]
    unsafe fn product(sum: __m512i, points: __m512i, centroid: __m512i) -> __m512i {
        // SAFETY: the set runs here.
        unsafe { Avx512Vnni::product(sum, points, centroid) }
    }

    #[inline(always)]
    unsafe fn better(best: (__m512i, __m512i), sum: __m512i, tag: __m512i) -> (__m512i, __m512i) {
        // SAFETY: the set runs here.
        unsafe { Avx512Vnni::better(best, sum, tag) }
    }

    #[inline(always)]
    unsafe fn differ(a: __m512i, b: __m512i) -> u64 {
        // SAFETY: the set runs here.
        unsafe { Avx512Vnni::differ(a, b) }
    }

    #[inline(always)]
    unsafe fn found(length: __m512i, best: __m512i, tag: __m512i) -> (__m512i, __m512i) {
        // SAFETY: the set runs here.
        unsafe { Avx512Vnni::found(length, best, tag) }
    }

    #[inline(always)]
    unsafe fn add(sums: &mut [i16; 32], row: *const i8) {
        // SAFETY: the caller's promise.
        unsafe { Avx512Vnni::add(sums, row) }
    }

    #[inline(always)]
    unsafe fn subtract(sums: &mut [i16; 32], row: *const i8) {
        // SAFETY: the caller's promise.
        unsafe { Avx512Vnni::subtract(sums, row) }
    }
}

crate::simd::cluster::cluster_kernels!(Amx, 4, "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni");
