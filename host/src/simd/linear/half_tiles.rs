//! Many rows of 16-bit activations as a whole: a panel of rows of weights is multiplied with a strip of them at a time.
//!
//! Rows of weights are in parallel lanes, with two columns per lane, so that an instruction multiplies both and adds.
//! Weights are multiplied by their part's factor when they are packed, so that a block has one scale; it is divided into
//! runs of columns whose sums surely fit 31 bits. The sums of runs, and those of activations for the minima, are
//! multiplied by scales in f64; see [`super::halves`] for why that is exact. A panel has so few columns that it stays in the first
//! cache while all strips pass, and the activations of a strip lie in the order in which they are read.

use tercet_core::block::Format;

use super::half_product::Strips;
use crate::simd::blocks::codes::{Codes, fixed, offset_of};
use crate::simd::stores::ask;

/// Columns that are brought into order at a time, and that share a minimum.
pub(in crate::simd) const GROUP: usize = 32;
/// Pairs of columns in these.
pub(in crate::simd) const PAIRS: usize = GROUP / 2;
/// Rows of [`Sixteen`].
pub(in crate::simd) const LANES: usize = 16;
/// Bytes per cache line.
const LINE: usize = 64;
/// Columns per panel: whole blocks of every format. Sixteen rows take 16 KiB.
const COLUMNS: usize = 512;

/// Two columns of a row of activations.
pub(crate) type Pair = [i16; 2];

/// Two columns of sixteen rows of weights.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(in crate::simd) struct Sixteen(pub(in crate::simd) [Pair; LANES]);

/// A panel, and its results.
#[derive(Debug, Default)]
pub(crate) struct Panel {
    /// Pair after pair of columns, all rows.
    pairs: Vec<Sixteen>,
    /// The pairs of each run, and its block.
    runs: Vec<(usize, usize)>,
    /// Scales of a block's rows times 2²⁴, block after block, and minima, group after group, if the format has them.
    scales: Vec<f64>,
    minima: Vec<f64>,
    /// Sums in units of 2⁻²⁴: those of all rows with a row of activations, then with the next.
    totals: Vec<f64>,
}

/// The functions of one instruction set for a format.
#[derive(Clone, Copy, Debug)]
pub(in crate::simd) struct HalfTiles {
    /// Rows per panel.
    rows: usize,
    /// Rows of activations per strip.
    strip: usize,
    /// Multiplies rows of weights, at most as many as a panel has, by all rows of activations.
    multiply: unsafe fn(&[u8], &Strips, &mut Panel),
}

/// A panel of `ROWS` rows of weights, and a strip of `STRIP` rows of activations for its columns.
#[derive(Clone, Copy)]
pub(in crate::simd) struct PanelStrip<'a, const ROWS: usize, const STRIP: usize> {
    panel: &'a [Sixteen],
    x: &'a [[Pair; STRIP]],
    runs: &'a [(usize, usize)],
    scales: &'a [[f64; ROWS]],
}

impl<'a, const ROWS: usize, const STRIP: usize> PanelStrip<'a, ROWS, STRIP> {
    /// Iterates over the runs of columns: their part of the panel, with `ROWS / 16` for each pair of activations; these;
    /// and the scales of the rows.
    #[inline(always)]
    pub(in crate::simd) fn runs(
        mut self,
    ) -> impl Iterator<Item = (&'a [Sixteen], &'a [[Pair; STRIP]], &'a [f64; ROWS])> {
        self.runs.iter().map(move |&(pairs, block)| {
            let (panel, x);
            (panel, self.panel) = self.panel.split_at(pairs * ROWS / LANES);
            (x, self.x) = self.x.split_at(pairs);
            (panel, x, &self.scales[block])
        })
    }
}

/// How a detected instruction set multiplies a panel with `ROWS` rows by `STRIP` rows of activations.
pub(in crate::simd) trait HalfTile<const ROWS: usize, const STRIP: usize>:
    Copy
{
    /// Writes [`GROUP`] columns of `ROWS` rows in a panel's order. The rows begin `apart` weights from each other.
    ///
    /// # Safety
    /// All these weights can be read; the panel has `ROWS / 16` for each of [`PAIRS`].
    #[inline(always)]
    unsafe fn spread(self, weights: *const i16, apart: usize, panel: &mut [Sixteen]) {
        for row in 0..ROWS {
            for pair in 0..PAIRS {
                // SAFETY: as the caller promises.
                let two = unsafe { weights.add(row * apart + 2 * pair).cast::<Pair>().read() };
                panel[pair * (ROWS / LANES) + row / LANES].0[row % LANES] = two;
            }
        }
    }

    /// Adds to `totals` the sums of each run, times the scales of the weights' rows.
    fn multiply(self, strip: PanelStrip<'_, ROWS, STRIP>, totals: &mut [[f64; ROWS]; STRIP]);
}

/// As [`HalfTiles::multiply`].
#[inline(always)]
pub(in crate::simd) fn multiply<
    S,
    C,
    const ROWS: usize,
    const STRIP: usize,
    const LEN: usize,
    const BYTES: usize,
>(
    set: S,
    bytes: &[u8],
    x: &Strips,
    room: &mut Panel,
) where
    S: HalfTile<ROWS, STRIP>,
    C: Codes<LEN, BYTES>,
{
    let has_minima = const { C::FORMAT.min_offset().is_some() };
    let of_x = x.pairs.as_chunks::<STRIP>().0;
    let sums = x.sums.as_chunks::<STRIP>().0;
    let strips = of_x.len() / (x.cols / 2);
    room.totals.clear();
    room.totals.resize(strips * STRIP * ROWS, 0.0);
    for first in (0..x.cols).step_by(COLUMNS) {
        let cols = COLUMNS.min(x.cols - first);
        pack::<S, C, ROWS, STRIP, LEN, BYTES>(set, bytes, (first, cols), x.cols, room);
        let scales = room.scales.as_chunks::<ROWS>().0;
        let minima = room.minima.as_chunks::<ROWS>().0;
        let totals = room.totals.as_chunks_mut::<ROWS>().0;
        for (strip, totals) in totals.as_chunks_mut::<STRIP>().0.iter_mut().enumerate() {
            let from = strip * x.cols + first;
            let both = PanelStrip {
                panel: &room.pairs,
                x: &of_x[from / 2..],
                runs: &room.runs,
                scales,
            };
            set.multiply(both, totals);
            if has_minima {
                let sums = &sums[from / GROUP..][..cols / GROUP];
                add_minima(minima, sums, totals);
            }
        }
    }
}

/// Adds to `totals` the minima of each group times its sums of activations. All of this is exact.
#[inline(always)]
fn add_minima<const ROWS: usize, const STRIP: usize>(
    minima: &[[f64; ROWS]],
    sums: &[[f64; STRIP]],
    totals: &mut [[f64; ROWS]; STRIP],
) {
    for (row, totals) in totals.iter_mut().enumerate() {
        let mut own = *totals;
        for (minima, sums) in minima.iter().zip(sums) {
            for (total, &min) in own.iter_mut().zip(minima) {
                *total = min.mul_add(sums[row], *total);
            }
        }
        *totals = own;
    }
}

/// Returns the code that stands for a weight of 0 in a panel: the middle one, where a part's factor makes weights long.
const fn middle_of(format: Format) -> i32 {
    let (lowest, highest) = format.codes();
    match format.parts() {
        1 => offset_of(format),
        _ => (highest as i32 - lowest as i32 + 1) / 2,
    }
}

/// Largest Σ|w| of a row in a run: times 32,512 it is below 2³¹.
const MOST: u32 = i32::MAX as u32 / 32_512;

/// Adds the runs of a block, given the pairs of columns per part.
#[inline(always)]
fn add_runs<const ROWS: usize>(
    (block, part): (usize, usize),
    panel: &[Sixteen],
    runs: &mut Vec<(usize, usize)>,
) {
    let mut pairs = 0;
    // Σ|w| of each row in the run.
    let mut all = [0; ROWS];
    for weights in panel.chunks_exact(part * ROWS / LANES) {
        let mut own = [0; ROWS];
        for pair in weights.chunks_exact(ROWS / LANES) {
            for (own, pairs) in own.as_chunks_mut::<LANES>().0.iter_mut().zip(pair) {
                for (sum, [a, b]) in own.iter_mut().zip(&pairs.0) {
                    *sum += u32::from(a.unsigned_abs()) + u32::from(b.unsigned_abs());
                }
            }
        }
        let mut most = 0;
        for (all, &own) in all.iter_mut().zip(&own) {
            *all += own;
            most = most.max(*all);
        }
        if most > MOST && pairs > 0 {
            runs.push((pairs, block));
            (pairs, all) = (0, own);
        }
        pairs += part;
    }
    runs.push((pairs, block));
}

/// Brings some columns of rows into a panel's order; missing rows are zeros.
#[inline(always)]
fn pack<S, C, const ROWS: usize, const STRIP: usize, const LEN: usize, const BYTES: usize>(
    set: S,
    bytes: &[u8],
    (first, cols): (usize, usize),
    all_cols: usize,
    room: &mut Panel,
) where
    S: HalfTile<ROWS, STRIP>,
    C: Codes<LEN, BYTES>,
{
    let middle = const { middle_of(C::FORMAT) };
    let parts = const { C::FORMAT.parts() };
    let part_len = const { C::FORMAT.part_len() };
    let has_minima = const { C::FORMAT.min_offset().is_some() };
    // Otherwise a group would have several minima.
    const { assert!(C::FORMAT.min_offset().is_none() || C::FORMAT.part_len() == GROUP) };
    let group = PAIRS * ROWS / LANES;
    room.pairs
        .resize(cols / GROUP * group, Sixteen([[0; 2]; LANES]));
    room.scales.clear();
    room.scales.resize(cols / LEN * ROWS, 0.0);
    room.runs.clear();
    room.minima.clear();
    let groups = if has_minima { cols / GROUP } else { 0 };
    room.minima.resize(groups * ROWS, 0.0);
    let mut weights = [[0; LEN]; ROWS];
    let panels = room.pairs.chunks_exact_mut(LEN / GROUP * group);
    for (at, panel) in panels.enumerate() {
        let rows = bytes.chunks_exact(all_cols / LEN * BYTES);
        for (number, (weights, row)) in weights.iter_mut().zip(rows).enumerate() {
            let block = &row.as_chunks::<BYTES>().0[first / LEN + at];
            // Of the next panel's row.
            for line in (0..BYTES).step_by(LINE) {
                ask(block.as_ptr().wrapping_add(ROWS * row.len() + line));
            }
            let mut codes = [0; LEN];
            C::unpack(block, &mut codes);
            let (of_scale, of_min) = C::factors(block);
            let codes = codes.chunks_exact(part_len);
            for (part, (weights, codes)) in
                weights.chunks_exact_mut(part_len).zip(codes).enumerate()
            {
                for (weight, &code) in weights.iter_mut().zip(codes) {
                    *weight = i16::from(code) - middle as i16;
                    if parts > 1 {
                        *weight *= of_scale[part];
                    }
                }
            }
            let scale = fixed(C::FORMAT.scale(block));
            room.scales[at * ROWS + number] = scale as f64;
            if has_minima {
                let min = fixed(C::FORMAT.min(block));
                // The middle code stands for 0 here. What its weight is above 0 goes to the minimum.
                let more = i64::from(middle - offset_of(C::FORMAT)) * scale;
                let minima = room.minima[at * (LEN / GROUP) * ROWS..]
                    .as_chunks_mut::<ROWS>()
                    .0;
                for ((minima, &of_scale), &of_min) in minima
                    .iter_mut()
                    .zip(&of_scale)
                    .zip(&of_min)
                    .take(LEN / GROUP)
                {
                    minima[number] = (i64::from(of_scale) * more + i64::from(of_min) * min) as f64;
                }
            }
        }
        for (columns, panel) in panel.chunks_exact_mut(group).enumerate() {
            // SAFETY: rows of `LEN` weights lie one after another.
            unsafe {
                let from = weights.as_ptr().cast::<i16>().add(GROUP * columns);
                set.spread(from, LEN, panel);
            }
        }
        match parts {
            // 32 columns, whose sums are below 2²⁷.
            1 => room.runs.push((LEN / 2, at)),
            _ => add_runs::<ROWS>((at, part_len / 2), panel, &mut room.runs),
        }
    }
}

impl HalfTiles {
    /// Returns the functions for panels of so many rows, and strips of so many activations.
    pub(in crate::simd) const fn new(
        rows: usize,
        strip: usize,
        multiply: unsafe fn(&[u8], &Strips, &mut Panel),
    ) -> Self {
        Self {
            rows,
            strip,
            multiply,
        }
    }

    /// Returns the rows of activations per strip.
    pub(super) const fn strip(self) -> usize {
        self.strip
    }

    /// Multiplies rows of weights by all rows of activations, and calls `give` with the number of a row of
    /// activations, the first of some rows, and the sums of these, in units of 2⁻²⁴.
    ///
    /// # Safety
    /// The set must run here. `row` is the bytes per row, and there are only whole rows.
    pub(super) unsafe fn each(
        self,
        bytes: &[u8],
        row: usize,
        x: &Strips,
        room: &mut Panel,
        mut give: impl FnMut(usize, usize, &[f64]),
    ) {
        for (panel, bytes) in bytes.chunks(self.rows * row).enumerate() {
            // SAFETY: as the caller promises.
            unsafe { (self.multiply)(bytes, x, room) };
            let count = bytes.len() / row;
            let totals = room.totals.chunks_exact(self.rows);
            for (number, totals) in totals.take(x.rows).enumerate() {
                give(number, panel * self.rows, &totals[..count]);
            }
        }
    }
}

/// Defines the tiles of a set, compiled for its features. The numbers are those of rows per panel, and of rows of
/// activations per strip.
macro_rules! by_half_tiles {
    ($set:ty, $panel:literal, $strip:literal, $features:literal) => {
        /// Returns the tiles of a format.
        pub(in crate::simd) fn half_tiles(
            format: tercet_core::block::Format,
        ) -> Option<$crate::simd::linear::half_tiles::HalfTiles> {
            use tercet_core::block::Format;

            use $crate::simd::blocks::codes::{self, Codes};
            use $crate::simd::linear::half_product::Strips;
            use $crate::simd::linear::half_tiles::{self, HalfTiles, Panel};

            #[target_feature(enable = $features)]
            fn multiply<C: Codes<LEN, BYTES>, const LEN: usize, const BYTES: usize>(
                bytes: &[u8],
                x: &Strips,
                room: &mut Panel,
            ) {
                let set = <$set>::here();
                half_tiles::multiply::<_, C, $panel, $strip, LEN, BYTES>(set, bytes, x, room);
            }
            let multiply: unsafe fn(&[u8], &Strips, &mut Panel) = match format {
                Format::Q8_0 => multiply::<codes::Q8_0, 32, 34>,
                Format::Q4_0 => multiply::<codes::Q4_0, 32, 18>,
                Format::Q4_1 => multiply::<codes::Q4_1, 32, 20>,
                Format::Q5_0 => multiply::<codes::Q5_0, 32, 22>,
                Format::Q5_1 => multiply::<codes::Q5_1, 32, 24>,
                Format::Q4K => multiply::<codes::Q4K, 256, 144>,
                Format::Q6K => multiply::<codes::Q6K, 256, 210>,
                Format::Tq1_0 => multiply::<codes::Tq1_0, 256, 54>,
                Format::Tq2_0 => multiply::<codes::Tq2_0, 256, 66>,
                Format::Q2_0 => multiply::<codes::Q2_0, 64, 18>,
            };
            Some(HalfTiles::new($panel, $strip, multiply))
        }
    };
}
pub(in crate::simd) use by_half_tiles;

/// For sets without these kernels.
pub(in crate::simd) fn none(_: Format) -> Option<HalfTiles> {
    None
}
