//! Layers of blocks times 16-bit activations, with the kernels of a set that process these as a whole.

use tercet_core::linear::{I8Sym, Layer, Layout};

use super::CHUNK;
use super::activations::Activations;
use super::half_tiles::{GROUP, HalfTiles, PAIRS, Pair, Panel};
use super::halves::{HalfRows, LineRows, PlaneRows, ValueRows};
use crate::simd::Backend;
use crate::simd::blocks::codes::MOST_PARTS;

/// Values per block of [`Planes`].
pub(in crate::simd) const BLOCK: usize = 256;

/// 32 activations.
pub(in crate::simd) type Values = [i16; GROUP];

/// Activations of a block of 256 values: their planes, and the sums of every sixteen of their values.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(in crate::simd) struct Planes {
    pub(in crate::simd) high: [i8; BLOCK],
    pub(in crate::simd) low: [i8; BLOCK],
    pub(in crate::simd) sums: [i32; MOST_PARTS],
}

/// Rows of activations in strips: each pair of columns for all rows of a strip, then the next pair.
#[derive(Debug)]
pub(in crate::simd) struct Strips {
    pub(super) pairs: Vec<Pair>,
    /// Σx of every [`GROUP`] of columns, in the same order.
    pub(super) sums: Vec<f64>,
    /// Rows of activations, and their columns.
    pub(super) rows: usize,
    pub(super) cols: usize,
}

/// Fills a strip, given its number.
pub(crate) type Fill<'f> = dyn Fn(usize, &mut [Pair], &mut [f64]) + Sync + 'f;

/// A kernel, and the activations in its order.
enum Way {
    /// Rows, and Σx of every 32 values.
    Values(ValueRows, Vec<Values>, Vec<f64>),
    /// Rows in blocks.
    Planes(PlaneRows, Vec<Planes>),
    /// Rows in a kernel's order.
    Lines(LineRows, Vec<Activations>),
    /// Many rows.
    Tiles(HalfTiles, Strips),
}

/// The inverse of the unit of a sum: sums of blocks are whole numbers of 2⁻²⁴.
const UNITS: f64 = 16_777_216.0;

/// The product of rows of blocks with rows of 16-bit activations.
pub(crate) struct HalfProduct {
    way: Way,
    /// Rows of activations, and their columns.
    rows: usize,
    cols: usize,
}

impl Backend {
    /// Prepares a product of rows in a layer's layout with rows of 16-bit activations, given as the high planes and
    /// then the low ones ([`planes`](tercet_core::quant::activations::planes)). `None` if the set has no kernel for it,
    /// sums may need more bits than f64 has, or there is a bias. O(rows · cols).
    ///
    /// `each` calls [`Fill`] with the number of each strip of the two slices, which have the given lengths, and the
    /// strips.
    pub(crate) fn half_product(
        self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        each: impl FnOnce((&mut [Pair], usize), (&mut [f64], usize), &Fill<'_>),
    ) -> Option<HalfProduct> {
        let matrix = layer.weights();
        let Layout::Block(format) = matrix.layout() else {
            return None;
        };
        // A bit less, as the parts of a sum can be up to twice as large.
        if layer.has_bias() || matrix.wide_sum_bits() >= f64::MANTISSA_DIGITS {
            return None;
        }
        let linear = self.kernels().linear();
        let (high, low) = x.get().split_at(x.len() / 2);
        let cols = matrix.cols();
        let rows = high.len() / cols;
        let tiles = (linear.half_tiles)(format).filter(|_| rows >= FEW);
        let way = match tiles {
            Some(tiles) => Way::Tiles(tiles, strips((high, low), tiles.strip(), cols, each)),
            None => match (linear.halves)(format)? {
                HalfRows::Values(kernel) => {
                    let mut values = vec![[0; GROUP]; high.len() / GROUP];
                    whole(high, low, values.as_flattened_mut());
                    let sums = values.iter().map(sum).collect();
                    Way::Values(kernel, values, sums)
                }
                HalfRows::Planes(kernel) => Way::Planes(kernel, planes(high, low)),
                HalfRows::Lines(kernel) => {
                    let rows = high.chunks_exact(cols).zip(low.chunks_exact(cols));
                    let lines = rows.map(|(high, low)| {
                        let mut lines = Activations::new();
                        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
                        unsafe { (kernel.prepare)([high, low], &mut lines) };
                        lines
                    });
                    Way::Lines(kernel, lines.collect())
                }
            },
        };
        Some(HalfProduct { way, rows, cols })
    }
}

/// Writes whole activations.
#[inline(always)]
fn whole(high: &[i8], low: &[i8], values: &mut [i16]) {
    for ((x, &high), &low) in values.iter_mut().zip(high).zip(low) {
        *x = 255 * i16::from(high) + i16::from(low);
    }
}

/// Returns Σx.
fn sum(x: &Values) -> f64 {
    f64::from(x.iter().map(|&x| i32::from(x)).sum::<i32>())
}

/// Brings activations into blocks.
fn planes(high: &[i8], low: &[i8]) -> Vec<Planes> {
    let blocks = high.as_chunks().0.iter().zip(low.as_chunks().0);
    let planes = blocks.map(|(&high, &low)| {
        let mut values = [0; BLOCK];
        whole(&high, &low, &mut values);
        let mut sums = [0; MOST_PARTS];
        for (sum, values) in sums.iter_mut().zip(values.as_chunks::<16>().0) {
            *sum = values.iter().map(|&x| i32::from(x)).sum();
        }
        Planes { high, low, sums }
    });
    planes.collect()
}

/// Brings activations into strips of so many rows; missing rows are zeros.
fn strips(
    (high, low): (&[i8], &[i8]),
    strip: usize,
    cols: usize,
    each: impl FnOnce((&mut [Pair], usize), (&mut [f64], usize), &Fill<'_>),
) -> Strips {
    let rows = high.len() / cols;
    let count = rows.next_multiple_of(strip);
    let mut pairs = vec![[0; 2]; count * cols / 2];
    let mut sums = vec![0.0; count * cols / GROUP];
    let fill = |number: usize, pairs: &mut [Pair], sums: &mut [f64]| {
        let rows = high.chunks_exact(cols).zip(low.chunks_exact(cols));
        for (lane, (high, low)) in rows.skip(number * strip).take(strip).enumerate() {
            let groups = high.as_chunks::<GROUP>().0.iter().zip(low.as_chunks().0);
            let places = pairs
                .chunks_exact_mut(strip * PAIRS)
                .zip(sums.chunks_exact_mut(strip));
            for ((high, low), (pairs, sums)) in groups.zip(places) {
                let mut values: Values = [0; GROUP];
                let low: &[i8; GROUP] = low;
                whole(high, low, &mut values);
                sums[lane] = sum(&values);
                let places = pairs.iter_mut().skip(lane).step_by(strip);
                for (place, &pair) in places.zip(values.as_chunks::<2>().0) {
                    *place = pair;
                }
            }
        }
    };
    each(
        (&mut pairs, strip * cols / 2),
        (&mut sums, strip * cols / GROUP),
        &fill,
    );
    Strips {
        pairs,
        sums,
        rows,
        cols,
    }
}

impl HalfProduct {
    /// Returns the number of rows of activations.
    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    /// True if the product is computed by [`HalfProduct::tiles`], else by [`HalfProduct::row`].
    pub(crate) const fn has_tiles(&self) -> bool {
        matches!(self.way, Way::Tiles(..))
    }

    /// Writes to `out` the values of a layer's rows times a row of activations, as in [`Layer::value`]. The layer has
    /// the columns and the layout that the product was made for. It writes nothing if there are tiles.
    pub(crate) fn row(&self, layer: &Layer<'_>, x: usize, x_scale: f32, out: &mut [f32]) {
        let weights = layer.weights();
        let row = weights.layout().group_bytes(weights.cols()).unwrap_or(1);
        let parts = weights.bytes().chunks(CHUNK * row);
        for (part, (bytes, out)) in parts.zip(out.chunks_mut(CHUNK)).enumerate() {
            let mut sums = [0.0; CHUNK];
            let sums = &mut sums[..out.len()];
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { self.sums(bytes, x, sums) };
            for (row, (out, &mut sum)) in out.iter_mut().zip(sums).enumerate() {
                *out = layer.value_of_rounded(CHUNK * part + row, (sum * UNITS) as f32, x_scale);
            }
        }
    }

    /// Computes the sums of rows with a row of activations; none if there are tiles.
    ///
    /// # Safety
    /// The kernel's set must run here.
    unsafe fn sums(&self, bytes: &[u8], x: usize, sums: &mut [f64]) {
        match &self.way {
            Way::Values(rows, values, of_x) => {
                let blocks = self.cols / GROUP;
                let part = x * blocks..(x + 1) * blocks;
                // SAFETY: as the caller promises.
                unsafe { rows(bytes, &values[part.clone()], &of_x[part], sums) }
            }
            Way::Planes(rows, planes) => {
                let blocks = self.cols / BLOCK;
                // SAFETY: as above.
                unsafe { rows(bytes, &planes[x * blocks..][..blocks], sums) }
            }
            // SAFETY: as above.
            Way::Lines(kernel, lines) => unsafe { (kernel.rows)(bytes, &lines[x], sums) },
            Way::Tiles(..) => {}
        }
    }

    /// Calls `give` with the number of each row of activations, the first of some rows of a layer, and the sums of
    /// these, in units of 2⁻²⁴; the layer is as in [`HalfProduct::row`]. It is not called if there are no tiles.
    pub(crate) fn tiles(
        &self,
        layer: &Layer<'_>,
        room: &mut Panel,
        give: impl FnMut(usize, usize, &[f64]),
    ) {
        let Way::Tiles(tiles, strips) = &self.way else {
            return;
        };
        let weights = layer.weights();
        let row = weights.layout().group_bytes(weights.cols()).unwrap_or(1);
        // SAFETY: as in `row`.
        unsafe { tiles.each(weights.bytes(), row, strips, room, give) };
    }
}

/// Minimum number of rows of activations for which packing weights pays off.
const FEW: usize = 16;
