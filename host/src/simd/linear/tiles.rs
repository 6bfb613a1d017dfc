//! Products of many rows of weights and many of activations, in tiles.
//!
//! Weights are packed in **panels** of [`ROWS`] rows: for every four columns a [`Group`], with four adjacent codes of
//! every row, a 32-bit lane per row. Activations are packed in **strips** with as many rows as a kernel processes at
//! once, in words of four columns; the kernel's [`Order`] is the number of adjacent words of a row before those of the
//! next row. A tile's kernel computes an exact sum of codes · activations for each row of both; the offset of codes
//! over weights is subtracted afterwards, using the sums of activations.

use half::f16;
use tercet_core::block::Format;
use tercet_core::linear::{I8Sym, Layout, Matrix};

use super::activations::Line;
use super::batch::{BATCH, Batch};
use super::codes;
use crate::parallel::each::{chunks, chunks_mut};
use crate::simd::blocks::codes::fixed;

/// Rows of weights in a panel.
pub(crate) const ROWS: usize = 32;
/// Rows of activations in a strip for vectors.
pub(in crate::simd) const STRIP: usize = 12;
/// Maximum number of rows of activations in a strip.
pub(super) const MOST: usize = 32;
/// Rows that are packed at a time.
const HALF: usize = 16;
/// Activations per line.
const LINE: usize = 64;

/// Four columns of a panel's rows.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(in crate::simd) struct Group(pub(in crate::simd) [[u8; 4]; ROWS]);

/// Four columns of a row of activations.
pub(in crate::simd) type Word = [i8; 4];

/// Returns four columns as one number. Not by `map`, which may stay a call of the innermost loop.
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
#[inline(always)]
pub(in crate::simd) fn word(&[a, b, c, d]: &Word) -> i32 {
    i32::from_le_bytes([a as u8, b as u8, c as u8, d as u8])
}

/// The sums of a row of activations with every row of weights.
pub(in crate::simd) type Sums<T> = [T; ROWS];

/// The order of the words of a strip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simd) struct Order {
    /// Rows per strip, at most [`MOST`].
    pub(in crate::simd) rows: usize,
    /// Maximum number of adjacent words of a row: a span with fewer words (see [`span`]) has all of them together. A
    /// power of two.
    pub(in crate::simd) words: usize,
}

impl Order {
    /// For vectors, which process one word of each row at a time.
    pub(in crate::simd) const COLUMNS: Self = Self {
        rows: STRIP,
        words: 1,
    };

    /// Returns the order for a layout.
    fn of(self, layout: Layout) -> Self {
        Self {
            words: match layout {
                Layout::Block(format) => self.words.min(format.part_len() / 4),
                _ => self.words,
            },
            ..self
        }
    }

    /// Copies a row of activations to its place in a strip.
    fn place(self, x: &[i8], strip: &mut [Word], row: usize) {
        let (fours, rest) = x.as_chunks();
        if self.words == 1 {
            let places = strip.iter_mut().skip(row).step_by(self.rows);
            places.zip(fours).for_each(|(word, four)| *word = *four);
        } else {
            let places = strip.chunks_mut(self.words).skip(row).step_by(self.rows);
            for (words, fours) in places.zip(fours.chunks(self.words)) {
                words[..fours.len()].copy_from_slice(fours);
            }
        }
        if !rest.is_empty() {
            let (step, word) = (fours.len() / self.words, fours.len() % self.words);
            let place = (step * self.rows + row) * self.words + word;
            strip[place][..rest.len()].copy_from_slice(rest);
        }
    }
}

/// The scales of each row of weights, times 2²⁴.
pub(in crate::simd) type Scales = [i64; ROWS];

/// The tile functions of one instruction set.
///
/// The functions may use that set, so they are called through [`Panels`] and [`Strips`], which a
/// [`Backend`](crate::simd::Backend) gives access to.
#[derive(Clone, Copy, Debug)]
pub(in crate::simd) struct Tiles {
    /// The order of activations for `multiply`.
    pub(in crate::simd) order: Order,
    /// [`codes::unpack`].
    pub(in crate::simd) unpack: Unpack,
    /// Packs half a panel, from codes of 16 rows that are a stride apart: its first rows, or those after them.
    pub(in crate::simd) pack: unsafe fn(&[u8], &mut [Group], bool),
    /// The products.
    pub(in crate::simd) multiply: Multiply,
    /// Products with blocks of a format as they are stored, if these have one scale.
    pub(in crate::simd) in_place: Option<(Format, MultiplyInPlace)>,
    /// Adds (sum − less) · scale, with one `less` per row of activations and one scale per row of weights.
    pub(in crate::simd) add: Add,
}

/// [`codes::unpack`].
pub(super) type Unpack = unsafe fn(Layout, &[u8], usize, &mut [u8], usize);

/// How Σ code · activation is computed, modulo 2³².
#[derive(Clone, Copy, Debug)]
pub(in crate::simd) enum Multiply {
    /// Strip by strip.
    Strips {
        /// For any codes.
        any: MultiplyStrip,
        /// For codes of 0 to 15.
        nibbles: MultiplyStrip,
        /// For codes of 0 to 3.
        two_bits: MultiplyStrip,
    },
    /// All strips of a batch at once.
    All(MultiplyAll),
}

/// Adds to the sums of as many rows of the strip as are wanted.
pub(super) type MultiplyStrip = unsafe fn(&[Group], &[Word], &mut [Sums<i32>]);

/// The arguments are a panel's piece; the words of strips from those for the piece in the first one on; the distance in
/// words from a strip to the next; and the sums of all rows. It adds to them if requested, otherwise it begins with 0.
pub(super) type MultiplyAll = unsafe fn(&[Group], &[Word], usize, &mut [Sums<i32>], bool);

/// The arguments are the bytes of up to [`ROWS`] rows of weights; the lines per row of activations; these rows; and their
/// sums, to which it adds Σ code · activation.
pub(super) type MultiplyInPlace = unsafe fn(&[u8], usize, &[Line], &mut [Sums<i32>]);

type Add = unsafe fn(&[Sums<i32>], &[i32], &Scales, &mut [Sums<i64>]);

/// [`Multiply`] for the codes of a layout.
#[derive(Clone, Copy, Debug)]
pub(super) enum MultiplyCodes {
    Strip(MultiplyStrip),
    All(MultiplyAll),
}

impl Multiply {
    /// Returns the products for the codes of a layout, which may all be ternary.
    const fn of(self, layout: Layout, are_ternary: bool) -> MultiplyCodes {
        match self {
            Self::All(all) => MultiplyCodes::All(all),
            Self::Strips {
                any,
                nibbles,
                two_bits,
            } => {
                let (lowest, highest) = if are_ternary { (-1, 1) } else { layout.codes() };
                MultiplyCodes::Strip(match highest as i32 - lowest as i32 {
                    0..=3 => two_bits,
                    4..=15 => nibbles,
                    _ => any,
                })
            }
        }
    }
}

/// Adds (sum − less) · scale; see [`Tiles`].
#[inline(always)]
pub(in crate::simd) fn add(
    sums: &[Sums<i32>],
    less: &[i32],
    scales: &Scales,
    totals: &mut [Sums<i64>],
) {
    for ((totals, sums), &less) in totals.iter_mut().zip(sums).zip(less) {
        for ((total, &sum), &scale) in totals.iter_mut().zip(sums).zip(scales) {
            // Below 2⁶² in magnitude, as the matrix has checked.
            *total += i64::from(sum.wrapping_sub(less)) * scale;
        }
    }
}

/// True if a matrix of bytes has only ternary weights, such as one by columns for gradients: these are multiplied as
/// fast as in two bits. Ends soon if it has not.
fn are_ternary(matrix: &Matrix<'_>) -> bool {
    const PIECE: usize = 1 << 10;
    let most = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |most, byte| byte.wrapping_add(1).max(most))
    };
    matrix.layout() == Layout::Int8 && matrix.bytes().chunks(PIECE).all(|bytes| most(bytes) <= 2)
}

/// Returns the number of columns after which sums are scaled: those of a block's part, or all.
fn span(layout: Layout, cols: usize) -> usize {
    match layout {
        Layout::Block(format) => format.part_len(),
        _ => cols,
    }
}

/// Many rows of activations, packed for tiles.
pub(crate) struct Strips {
    /// As they were, for products in place.
    lines: Vec<Line>,
    /// Number of rows.
    rows: usize,
    /// Words per row, padded with zeros.
    groups: usize,
    order: Order,
    words: Vec<Word>,
    /// offset · Σx of each row over each span of columns, strip by strip.
    less: Vec<i32>,
    /// Σx, in the same order; empty if blocks have no minima.
    sums: Vec<i32>,
}

impl Strips {
    /// Returns the number of rows of activations.
    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    /// Packs rows with as many activations as the matrix has columns: up to `alone` of them on the calling thread,
    /// otherwise strips in parallel on the pool. O(rows · cols).
    pub(super) fn new(matrix: &Matrix<'_>, x: I8Sym<'_>, tiles: Tiles, alone: usize) -> Self {
        let (layout, cols) = (matrix.layout(), matrix.cols());
        let order = tiles.order.of(layout);
        let span = span(layout, cols);
        let groups = cols.div_ceil(4).next_multiple_of(order.words);
        let rows = x.len() / cols;
        let strips = rows.div_ceil(order.rows);
        let mut words = vec![[0; 4]; strips * order.rows * groups];
        let spans = strips * order.rows * cols.div_ceil(span);
        let has_minima = matches!(layout, Layout::Block(format) if format.min_offset().is_some());
        let mut less = vec![0; spans];
        // Codes of blocks with minima are as large as their weights.
        let worth = if has_minima { 1 } else { codes::offset(layout) };
        let pack = |_, ((words, less), x): ((&mut [Word], &mut [i32]), &[i8])| {
            for (row, x) in x.chunks_exact(cols).enumerate() {
                order.place(x, words, row);
                for (less, x) in less.chunks_mut(order.rows).zip(x.chunks(span)) {
                    let sum: i32 = x.iter().map(|&x| i32::from(x)).sum();
                    less[row] = worth * sum;
                }
            }
        };
        let (of_words, of_less) = (order.rows * groups, order.rows * cols.div_ceil(span));
        let of_x = order.rows * cols;
        let strips = chunks_mut(&mut words, of_words).zip(chunks_mut(&mut less, of_less));
        let least = if x.len() <= alone { usize::MAX } else { 1 };
        strips.zip(chunks(x.get(), of_x)).at_least(least).each(pack);
        let mut lines = Vec::new();
        if matches!(tiles.in_place, Some((format, _)) if layout == Layout::Block(format)) {
            // Whole lines, as each block is.
            lines.resize(x.len() / LINE, Line([0; LINE]));
            let rows = chunks_mut(&mut lines, of_x / LINE).zip(chunks(x.get(), of_x));
            rows.at_least(least).each(|_, (lines, x)| {
                for (line, &x) in lines.iter_mut().zip(x.as_chunks().0) {
                    line.0 = x;
                }
            });
        }
        // The sums replace the offsets, which are 0.
        let (less, sums) = if has_minima {
            (vec![0; spans], less)
        } else {
            (less, Vec::new())
        };
        Self {
            lines,
            rows,
            groups,
            order,
            words,
            less,
            sums,
        }
    }
}

/// Rows of weights, packed for tiles, and their memory.
pub(crate) struct Panels {
    tiles: Tiles,
    codes: Vec<u8>,
    groups: Vec<Group>,
    /// The scales of blocks' parts times 2²⁴, by panels and parts, and their minima, if they have them.
    scales: Vec<Scales>,
    mins: Vec<Scales>,
}

/// The sums of a matrix's rows with a row of activations.
#[derive(Clone, Copy)]
pub(crate) struct PanelSums<'a> {
    sums: Totals<'a>,
    /// Rows of the matrix.
    rows: usize,
    /// The row of activations, and their number: a panel's sums follow those of the panel before.
    row: usize,
    count: usize,
}

/// Sums of every row of activations with a panel's rows, panel after panel.
#[derive(Clone, Copy)]
enum Totals<'a> {
    Narrow(&'a [Sums<i32>]),
    Wide(&'a [Sums<i64>]),
}

impl PanelSums<'_> {
    /// Passes them to the code that makes outputs of them.
    pub(crate) fn give(self, out: &mut impl tercet_core::linear::Sums) {
        for (panel, first) in (0..self.rows).step_by(ROWS).enumerate() {
            let (at, rows) = (panel * self.count + self.row, ROWS.min(self.rows - first));
            match self.sums {
                Totals::Narrow(sums) => out.narrow(&sums[at][..rows]),
                Totals::Wide(sums) => out.wide(&sums[at][..rows]),
            }
        }
    }
}

impl Panels {
    /// Returns room for rows.
    pub(super) const fn new(tiles: Tiles) -> Self {
        Self {
            tiles,
            codes: Vec::new(),
            groups: Vec::new(),
            scales: Vec::new(),
            mins: Vec::new(),
        }
    }

    /// Multiplies a matrix by all rows of activations, and calls `found` with the number of each of them and its sums.
    /// The strips must be made for this layout and the same number of columns.
    ///
    /// A piece of a panel stays in the first-level cache while those of [`BATCH`] rows of activations pass.
    pub(crate) fn multiply(
        &mut self,
        matrix: &Matrix<'_>,
        x: &Strips,
        mut found: impl FnMut(usize, PanelSums<'_>),
    ) {
        let (layout, cols) = (matrix.layout(), matrix.cols());
        let is_ternary =
            matches!(self.tiles.multiply, Multiply::Strips { .. }) && are_ternary(matrix);
        let spans = cols.div_ceil(span(layout, cols));
        let in_place = self.in_place(matrix);
        // With one scale for all blocks, sums of whole rows are scaled once; in strips whose order is that of whole rows.
        let scale = if let Some((_, scale)) = in_place {
            self.scales.clear();
            self.mins.clear();
            Some(scale)
        } else {
            self.pack(matrix, x.groups, is_ternary);
            self.one_scale(matrix.rows(), spans)
                .filter(|_| spans > 1 && x.order.words == self.tiles.order.words)
        };
        let mut own_less = Vec::new();
        let panels = matrix.rows().div_ceil(ROWS);
        let batch_rows = BATCH.next_multiple_of(x.order.rows);
        let words = x.words.chunks(batch_rows * x.groups);
        let batches = words.zip(x.less.chunks(batch_rows * spans));
        let (mut narrow, mut wide) = (Vec::new(), Vec::new());
        for (number, (words, less)) in batches.enumerate() {
            let first = number * batch_rows;
            let height = x.order.rows;
            let less = if is_ternary {
                own_less.clear();
                let offset = codes::offset(Layout::Int8);
                own_less.extend(less.iter().map(|less| less / offset));
                &own_less
            } else if scale.is_some() {
                own_less.clear();
                for less in less.chunks(height * spans) {
                    let row = |row: usize| less.iter().skip(row).step_by(height).sum::<i32>();
                    own_less.extend((0..height).map(row));
                }
                &own_less
            } else {
                less
            };
            let batch = Batch {
                tiles: self.tiles,
                multiply: self.tiles.multiply.of(layout, is_ternary),
                height,
                words,
                less,
            };
            let count = batch_rows.min(x.rows - first);
            let panel_groups = self.groups.chunks(x.groups);
            let is_block = matches!(layout, Layout::Block(_));
            if !is_block || scale.is_some() {
                narrow.resize(panels * count, [0; ROWS]);
                let panels = narrow.chunks_mut(count);
                if let Some((multiply, _)) = in_place {
                    let of_row = cols / LINE;
                    let lines = &x.lines[first * of_row..][..count * of_row];
                    let rows = matrix
                        .bytes()
                        .chunks(matrix.bytes().len() / matrix.rows() * ROWS);
                    for (sums, rows) in panels.zip(rows) {
                        batch.begin(sums);
                        // SAFETY: as in `Batch::plain`.
                        unsafe { multiply(rows, of_row, lines, sums) };
                    }
                } else {
                    for (sums, groups) in panels.zip(panel_groups.clone()) {
                        batch.plain(groups, sums);
                    }
                }
            }
            let sums = if let Layout::Block(format) = layout {
                wide.clear();
                wide.resize(panels * count, [0; ROWS]);
                if let Some(scale) = scale {
                    batch.once(&narrow, scale, &mut wide);
                } else {
                    let scales = self.scales.chunks(spans);
                    for ((totals, groups), scales) in
                        wide.chunks_mut(count).zip(panel_groups).zip(scales)
                    {
                        batch.scaled(format.part_len() / 4, groups, scales, totals);
                    }
                }
                for (totals, mins) in wide.chunks_mut(count).zip(self.mins.chunks(spans)) {
                    let sums = &x.sums[number * batch_rows * spans..];
                    batch.minima(sums, mins, totals);
                }
                Totals::Wide(&wide)
            } else {
                Totals::Narrow(&narrow)
            };
            for row in 0..count {
                let rows = matrix.rows();
                let sums = PanelSums {
                    sums,
                    rows,
                    row,
                    count,
                };
                found(first + row, sums);
            }
        }
    }

    /// Returns how to multiply a matrix as it is stored, and the scale of all of its blocks, if there is a way.
    fn in_place(&self, matrix: &Matrix<'_>) -> Option<(MultiplyInPlace, i64)> {
        let (format, multiply) = self.tiles.in_place?;
        if matrix.layout() != Layout::Block(format) {
            return None;
        }
        let scale = |block: &[u8]| {
            let at = format.scale_offset();
            [block[at], block[at + 1]]
        };
        let mut blocks = matrix.bytes().chunks_exact(format.bytes());
        let first = blocks.next()?;
        // Ends at the second block where each has a scale of its own.
        let alike = blocks.all(|block| scale(block) == scale(first));
        alike.then(|| (multiply, fixed(format.scale(first))))
    }

    /// Returns the scale of all blocks of so many rows, if they have the same; `None` for blocks with minima.
    fn one_scale(&self, rows: usize, spans: usize) -> Option<i64> {
        let [first, ..] = *self.scales.first()?;
        let mut left = rows;
        let alike = self.scales.chunks(spans).all(|scales| {
            let own = left.min(ROWS);
            left -= own;
            let mut all = scales.iter().flat_map(|scales| &scales[..own]);
            all.all(|&scale| scale == first)
        });
        (alike && self.mins.is_empty()).then_some(first)
    }

    /// Unpacks and packs all rows; ternary ones of bytes with codes of 0 to 2.
    fn pack(&mut self, matrix: &Matrix<'_>, groups: usize, is_ternary: bool) {
        let (layout, cols) = (matrix.layout(), matrix.cols());
        let panels = matrix.rows().div_ceil(ROWS);
        // Whole vectors of columns, because those that contain the last columns are packed too.
        let stride = cols.next_multiple_of(64);
        self.codes.clear();
        self.codes.resize(HALF * stride, 0);
        self.groups.resize(panels * groups, Group([[0; 4]; ROWS]));
        let group_rows = layout.group_rows();
        let group_bytes = layout.group_bytes(cols).unwrap_or(1);
        let mut row_groups = matrix.bytes().chunks_exact(group_bytes);
        for panel in self.groups.chunks_mut(groups) {
            for second in [false, true] {
                for codes in self.codes.chunks_mut(group_rows * stride) {
                    match row_groups.next() {
                        Some(bytes) if is_ternary => {
                            for (code, &byte) in codes.iter_mut().zip(bytes) {
                                *code = byte.wrapping_add(1);
                            }
                        }
                        // SAFETY: as in `multiply`.
                        Some(bytes) => unsafe {
                            (self.tiles.unpack)(layout, bytes, cols, codes, stride)
                        },
                        None => codes.fill(0),
                    }
                }
                // SAFETY: as in `multiply`.
                unsafe { (self.tiles.pack)(&self.codes, panel, second) };
            }
        }
        self.scales.clear();
        self.mins.clear();
        if let Layout::Block(format) = layout {
            self.read_scales(format, matrix, panels);
        }
    }

    fn read_scales(&mut self, format: Format, matrix: &Matrix<'_>, panels: usize) {
        let (blocks, parts) = (matrix.cols() / format.len(), format.parts());
        let (row_bytes, spans) = (blocks * format.bytes(), blocks * parts);
        let rows = matrix.bytes().chunks_exact(row_bytes);
        let read =
            |into: &mut Vec<Scales>, of: fn(Format, &[u8]) -> f16, which: fn((i8, i8)) -> i8| {
                into.clear();
                into.resize(panels * spans, [0; ROWS]);
                for (row, bytes) in rows.clone().enumerate() {
                    let into = &mut into[row / ROWS * spans..][..spans];
                    let blocks = bytes.chunks_exact(format.bytes());
                    if parts == 1 {
                        for (into, block) in into.iter_mut().zip(blocks) {
                            into[row % ROWS] = fixed(of(format, block));
                        }
                        continue;
                    }
                    for (into, block) in into.chunks_exact_mut(parts).zip(blocks) {
                        let whole = fixed(of(format, block));
                        for (part, into) in into.iter_mut().enumerate() {
                            let factor = which(format.factors(block, part));
                            into[row % ROWS] = whole * i64::from(factor);
                        }
                    }
                }
            };
        read(&mut self.scales, Format::scale, |(scale, _)| scale);
        self.mins.clear();
        if format.min_offset().is_some() {
            read(&mut self.mins, Format::min, |(_, min)| min);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_a_row_has_a_place_of_its_own() {
        for (rows, words) in [(12, 1), (32, 16), (32, 8)] {
            let order = Order { rows, words };
            let mut strip = vec![[0; 4]; rows * 48];
            for row in 0..rows {
                // Two bytes less than 47 words.
                let x: Vec<i8> = (0..47 * 4 - 2).map(|at| (at / 4 + row + 1) as i8).collect();
                order.place(&x, &mut strip, row);
            }
            for (row, word) in (0..rows).flat_map(|row| (0..48).map(move |word| (row, word))) {
                let found = strip[(word / words * rows + row) * words + word % words];
                let value = (word + row + 1) as i8;
                let last = if word == 46 { 0 } else { value };
                let expected = [value, value, last, last];
                assert_eq!(found, if word < 47 { expected } else { [0; 4] });
            }
        }
    }

    #[test]
    fn a_block_of_few_words_has_them_side_by_side() {
        let order = Order {
            rows: 32,
            words: 16,
        };
        let words = |layout| order.of(layout).words;
        assert_eq!(words(Layout::Int8), 16);
        assert_eq!(words(Layout::Block(Format::Tq2_0)), 16);
        assert_eq!(words(Layout::Block(Format::Q8_0)), 8);
        assert_eq!(words(Layout::Block(Format::Q6K)), 4);
    }
}
