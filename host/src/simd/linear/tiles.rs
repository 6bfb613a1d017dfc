//! Products of many rows of weights and many of activations, in tiles.
//!
//! Weights are packed in **panels** of [`ROWS`] rows: for each four columns a [`Group`], four codes of every row side by side, a 32-bit
//! lane a row. Activations are packed in strips of [`STRIP`] rows: for each four columns four activations of every row. A tile's
//! kernel meets them four columns at a time and leaves ROWS × STRIP exact sums of codes · activations; what codes are larger by than
//! weights is taken off afterwards, by the sums of activations.

use tercet_core::block::Format;
use tercet_core::linear::{I8Sym, Layout, Matrix};

use super::codes;

/// Rows of weights in a panel.
pub(crate) const ROWS: usize = 32;
/// Rows of activations in a strip.
pub(crate) const STRIP: usize = 12;
/// Rows that are packed at a time.
const HALF: usize = 16;

/// Four columns of a panel's rows.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(in crate::simd) struct Group(pub(in crate::simd) [[u8; 4]; ROWS]);

/// Four columns of a strip's rows.
pub(in crate::simd) type Column = [[i8; 4]; STRIP];

/// The sums of a tile: for each row of activations, of every row of weights.
pub(in crate::simd) type Sums<T> = [[T; ROWS]; STRIP];

/// What one instruction set works on tiles with.
///
/// The functions may use that set, so they are called through [`Panels`] and [`Strips`], which a [`Backend`](crate::simd::Backend)
/// leads to.
#[derive(Clone, Copy, Debug)]
pub(in crate::simd) struct Tiles {
    /// [`codes::unpack`].
    pub(in crate::simd) unpack: Unpack,
    /// Half a panel, from codes of 16 rows that lie a stride apart: its first rows, or those after them.
    pub(in crate::simd) pack: unsafe fn(&[u8], &mut [Group], bool),
    /// Sums of code · activation, modulo 2³².
    pub(in crate::simd) multiply: Multiply,
    /// The same for codes of 0 to 15.
    pub(in crate::simd) multiply_nibbles: Multiply,
    /// The same for codes of 0 to 3.
    pub(in crate::simd) multiply_two_bits: Multiply,
    /// Adds (sum − less) · scale, a `less` a row of activations, a scale a row of weights.
    pub(in crate::simd) add: unsafe fn(&Sums<i32>, &[i32; STRIP], &[i64; ROWS], &mut Sums<i64>),
}

/// [`codes::unpack`].
pub(super) type Unpack = unsafe fn(Layout, &[u8], usize, &mut [u8], usize);

type Multiply = unsafe fn(&[Group], &[Column], &mut Sums<i32>);

impl Tiles {
    /// For the codes of a layout.
    const fn multiply(&self, layout: Layout) -> Multiply {
        match codes::offset(layout) {
            1 => self.multiply_two_bits,
            8 => self.multiply_nibbles,
            _ => self.multiply,
        }
    }
}

/// Half a panel, word by word; see [`Tiles`].
#[inline(always)]
pub(in crate::simd) fn pack(codes: &[u8], panel: &mut [Group], second: bool) {
    let stride = codes.len() / HALF;
    let first = if second { HALF } else { 0 };
    for (row, codes) in codes.chunks_exact(stride).enumerate() {
        for (group, &four) in panel.iter_mut().zip(codes.as_chunks::<4>().0) {
            group.0[first + row] = four;
        }
    }
}

/// Adds (sum − less) · scale; see [`Tiles`].
#[inline(always)]
pub(in crate::simd) fn add(
    sums: &Sums<i32>,
    less: &[i32; STRIP],
    scales: &[i64; ROWS],
    totals: &mut Sums<i64>,
) {
    for ((totals, sums), &less) in totals.iter_mut().zip(sums).zip(less) {
        for ((total, &sum), &scale) in totals.iter_mut().zip(sums).zip(scales) {
            // Below 2⁶² in magnitude, as the matrix has checked.
            *total += i64::from(sum.wrapping_sub(less)) * scale;
        }
    }
}

/// Columns after which sums are given their scale: those of a block, or all.
fn span(layout: Layout, cols: usize) -> usize {
    match layout {
        Layout::Block(format) => format.len(),
        _ => cols,
    }
}

/// Many rows of activations, packed for tiles.
pub(crate) struct Strips {
    /// How many rows there are.
    rows: usize,
    /// Groups of four columns.
    groups: usize,
    columns: Vec<Column>,
    /// offset · Σx over each span of columns, strip by strip.
    less: Vec<[i32; STRIP]>,
}

impl Strips {
    /// Packs rows of as many activations as the matrix has columns. O(rows · cols).
    pub(super) fn new(matrix: &Matrix<'_>, x: I8Sym<'_>) -> Self {
        let (layout, cols) = (matrix.layout(), matrix.cols());
        let span = span(layout, cols);
        let groups = cols.div_ceil(4);
        let rows = x.len() / cols;
        let strips = rows.div_ceil(STRIP);
        let mut columns = vec![[[0; 4]; STRIP]; strips * groups];
        let mut less = vec![[0; STRIP]; strips * cols.div_ceil(span)];
        let of_strips = columns
            .chunks_mut(groups)
            .zip(less.chunks_mut(cols.div_ceil(span)));
        for ((columns, less), x) in of_strips.zip(x.get().chunks(STRIP * cols)) {
            for (row, x) in x.chunks_exact(cols).enumerate() {
                let (fours, rest) = x.as_chunks::<4>();
                for (column, four) in columns.iter_mut().zip(fours) {
                    column[row] = *four;
                }
                if let Some(last) = columns.last_mut().filter(|_| !rest.is_empty()) {
                    last[row][..rest.len()].copy_from_slice(rest);
                }
                for (less, x) in less.iter_mut().zip(x.chunks(span)) {
                    let sum: i32 = x.iter().map(|&x| i32::from(x)).sum();
                    less[row] = codes::offset(layout) * sum;
                }
            }
        }
        Self {
            rows,
            groups,
            columns,
            less,
        }
    }
}

/// Rows of weights, packed for tiles, and the room for it.
pub(crate) struct Panels {
    tiles: Tiles,
    codes: Vec<u8>,
    groups: Vec<Group>,
    /// The scales of blocks times 2²⁴, by panels and blocks.
    scales: Vec<[i64; ROWS]>,
}

/// The sums of some rows of weights with a row of activations.
pub(crate) enum Found<'a> {
    Narrow(&'a [i32]),
    Wide(&'a [i64]),
}

impl Found<'_> {
    /// How many sums there are.
    pub(crate) const fn len(&self) -> usize {
        match self {
            Self::Narrow(sums) => sums.len(),
            Self::Wide(sums) => sums.len(),
        }
    }

    /// Gives them to what makes outputs of them.
    pub(crate) fn give(&self, out: &mut impl tercet_core::linear::Sums) {
        match self {
            Self::Narrow(sums) => out.narrow(sums),
            Self::Wide(sums) => out.wide(sums),
        }
    }
}

impl Panels {
    /// Room for rows.
    pub(super) const fn new(tiles: Tiles) -> Self {
        Self {
            tiles,
            codes: Vec::new(),
            groups: Vec::new(),
            scales: Vec::new(),
        }
    }

    /// Multiplies a matrix by all rows of activations, and calls `found` with the number of each of them, the first of some rows of
    /// weights, and their sums. The strips were made for this layout and as many columns.
    pub(crate) fn multiply(
        &mut self,
        matrix: &Matrix<'_>,
        x: &Strips,
        mut found: impl FnMut(usize, usize, Found<'_>),
    ) {
        self.pack(matrix, x.groups);
        let layout = matrix.layout();
        let multiply = self.tiles.multiply(layout);
        let span = span(layout, matrix.cols());
        let spans = matrix.cols().div_ceil(span);
        let span_groups = span.div_ceil(4);
        let strips = x.columns.chunks(x.groups).zip(x.less.chunks(spans));
        for (strip, (columns, less)) in strips.enumerate() {
            let first_x = strip * STRIP;
            let rows_x = STRIP.min(x.rows - first_x);
            for (panel, groups) in self.groups.chunks(x.groups).enumerate() {
                let first = panel * ROWS;
                let rows = ROWS.min(matrix.rows() - first);
                let mut sums = [[0; ROWS]; STRIP];
                if let Layout::Block(_) = layout {
                    let mut totals = [[0; ROWS]; STRIP];
                    let scales = &self.scales[panel * spans..];
                    let spans = groups.chunks(span_groups).zip(columns.chunks(span_groups));
                    for (((groups, columns), less), scales) in spans.zip(less).zip(scales) {
                        // SAFETY: tiles are only reached through a `Backend` that was found to run their set.
                        unsafe {
                            multiply(groups, columns, &mut sums);
                            (self.tiles.add)(&sums, less, scales, &mut totals);
                        }
                    }
                    for (row, totals) in totals[..rows_x].iter().enumerate() {
                        found(first_x + row, first, Found::Wide(&totals[..rows]));
                    }
                } else {
                    // SAFETY: as before.
                    unsafe { multiply(groups, columns, &mut sums) };
                    for (row, (sums, less)) in sums[..rows_x].iter_mut().zip(less[0]).enumerate() {
                        // Exact modulo 2³², which the sum fits.
                        sums.iter_mut()
                            .for_each(|sum| *sum = sum.wrapping_sub(less));
                        found(first_x + row, first, Found::Narrow(&sums[..rows]));
                    }
                }
            }
        }
    }

    /// Unpacks and packs all rows.
    fn pack(&mut self, matrix: &Matrix<'_>, groups: usize) {
        let (layout, cols) = (matrix.layout(), matrix.cols());
        let panels = matrix.rows().div_ceil(ROWS);
        // Whole vectors of columns, so that those are packed which hold the last.
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
        if let Layout::Block(format) = layout {
            self.read_scales(format, matrix, panels);
        }
    }

    fn read_scales(&mut self, format: Format, matrix: &Matrix<'_>, panels: usize) {
        let blocks = matrix.cols() / format.len();
        self.scales.clear();
        self.scales.resize(panels * blocks, [0; ROWS]);
        let rows = matrix.bytes().chunks_exact(blocks * format.bytes());
        for (row, bytes) in rows.enumerate() {
            let scales = &mut self.scales[row / ROWS * blocks..][..blocks];
            for (scales, block) in scales.iter_mut().zip(bytes.chunks_exact(format.bytes())) {
                scales[row % ROWS] = codes::scale(format, block);
            }
        }
    }
}
