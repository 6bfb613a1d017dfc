//! Palettes on a device: decoding, products, encoding.

mod cudas;
mod encode;

use std::ops::Range;

use tercet_core::engine::PaletteEngine;
use tercet_core::number::Element;
use tercet_core::palette::{Encoded, IndexMatrix, MAX_DOT, Output, Palette, PaletteError};

use super::{Argument, Chunks, Cuda, CudaError, DeviceBuffer, LaunchGrid};

pub use self::cudas::CudasPalette;

/// Threads of a block.
const THREADS: u32 = 256;
/// Warps of a block.
const WARPS: usize = 8;
/// Blocks of a launch per multiprocessor.
const WAVES: u32 = 8;

/// An encoded matrix on a device.
///
/// ```
/// use tercet_core::palette::{IndexMatrix, Palette, Width};
/// use tercet_gpu::engine::{Cuda, CudaError};
///
/// fn restore(palette: &Palette<'_>) -> Result<Vec<f32>, CudaError> {
///     let mut cuda = Cuda::first()?;
///     let palette = cuda.palette(palette)?;
///     let mut out = cuda.zeros::<f32>(palette.layout().values())?;
///     cuda.decode_resident_palette(&palette, &mut out)?;
///     let mut values = vec![0.0; out.len()];
///     cuda.read(&out, &mut values)?;
///     Ok(values)
/// }
///
/// // Indices 0, 3, 2, 1 in two bits each, the first in the lowest.
/// let layout = IndexMatrix::new(Width::new(2)?, 1, 4, 1)?;
/// let palette = Palette { layout, indices: &[0b01_10_11_00], codebooks: &[-90, -20, 15, 100], scales: &[0.5] };
/// match restore(&palette) {
///     Ok(values) => assert_eq!(values, [-45.0, 50.0, 7.5, -10.0]),
///     Err(error) => println!("not on a GPU: {error}"),
/// }
/// # Ok::<(), tercet_core::palette::PaletteError>(())
/// ```
#[derive(Debug)]
pub struct DevicePalette {
    layout: IndexMatrix,
    indices: DeviceBuffer<u8>,
    codebooks: DeviceBuffer<i8>,
    scales: DeviceBuffer<f32>,
}

impl DevicePalette {
    /// Returns rows, columns, groups and bits.
    pub const fn layout(&self) -> IndexMatrix {
        self.layout
    }
}

impl Cuda {
    /// Copies a palette to the device.
    ///
    /// # Errors
    /// Those of [`Palette::check`]; [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn palette(&mut self, palette: &Palette<'_>) -> Result<DevicePalette, CudaError> {
        palette.check()?;
        Ok(DevicePalette {
            layout: palette.layout,
            indices: self.upload(palette.indices)?,
            codebooks: self.upload(palette.codebooks)?,
            scales: self.upload(palette.scales)?,
        })
    }

    /// Writes `fl(entry · scale)` for every value, row-major, as [`tercet_core::palette::decode`].
    ///
    /// # Errors
    /// [`CudaError::Length`] unless `out` has one element per value; [`CudaError::Lost`], [`CudaError::Launch`],
    /// [`CudaError::Driver`].
    pub fn decode_resident_palette(
        &mut self,
        palette: &DevicePalette,
        out: &mut DeviceBuffer<f32>,
    ) -> Result<(), CudaError> {
        let layout = palette.layout;
        out.check(&self.pool, layout.values())?;
        let parts = layout.rows() * layout.cols().div_ceil(256);
        let grid = LaunchGrid::strided(parts, WARPS, THREADS, self.multiprocessors * WAVES);
        let [a, b, c, d, e, f, g, h] = shape(palette);
        let arguments = [a, b, c, d, e, f, g, h, out.into()];
        // SAFETY: the palette was checked, so each row has its bytes and each group its entries and scale; `out` has a
        // value for each.
        unsafe { self.launch("palette", "palette_decode", grid, &arguments) }
    }

    /// Multiplies a palette with int8 activations that share one scale; the result has one number per row, as
    /// [`tercet_core::palette::matvec`].
    ///
    /// `x` is padded with zeros to a multiple of eight columns: [`Cuda::palette_activations`] does this.
    ///
    /// # Errors
    /// [`CudaError::Length`] unless `x` and `out` fit; [`PaletteError::DotLength`]; [`CudaError::Lost`],
    /// [`CudaError::Launch`], [`CudaError::Driver`].
    pub fn multiply_resident_palette(
        &mut self,
        palette: &DevicePalette,
        x: &DeviceBuffer<i8>,
        x_scale: f32,
        out: &mut DeviceBuffer<f32>,
    ) -> Result<(), CudaError> {
        let layout = palette.layout;
        check_dot(layout.cols())?;
        x.check(&self.pool, layout.cols().next_multiple_of(8))?;
        out.check(&self.pool, layout.rows())?;
        let grid = LaunchGrid::strided(layout.rows(), WARPS, THREADS, self.multiprocessors * WAVES);
        let [a, b, c, d, e, f, g, h] = shape(palette);
        let arguments = [a, b, c, d, e, f, g, h, x.into(), x_scale.into(), out.into()];
        // SAFETY: as in `decode_palette`; `x` has whole runs of eight, `out` a value for each row.
        unsafe { self.launch("palette", "palette_product", grid, &arguments) }
    }

    /// Copies activations to the device in the form that [`Cuda::multiply_resident_palette`] expects.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Driver`].
    pub fn palette_activations(&mut self, x: &[i8]) -> Result<DeviceBuffer<i8>, CudaError> {
        let mut padded = x.to_vec();
        padded.resize(x.len().next_multiple_of(8), 0);
        self.upload(&padded)
    }
}

/// Returns the first arguments of every kernel on an encoded matrix.
fn shape(palette: &DevicePalette) -> [Argument<'_>; 8] {
    let layout = palette.layout;
    [
        Argument::from(&palette.indices),
        Argument::from(&palette.codebooks),
        Argument::from(&palette.scales),
        u32::from(layout.width().bits()).into(),
        layout.rows().into(),
        layout.cols().into(),
        layout.group_rows().into(),
        layout.row_bytes().into(),
    ]
}

const fn check_dot(len: usize) -> Result<(), PaletteError> {
    let max = MAX_DOT;
    if len > max {
        return Err(PaletteError::DotLength { len, max });
    }
    Ok(())
}

const fn expect(expected: usize, found: usize) -> Result<(), PaletteError> {
    if expected == found {
        return Ok(());
    }
    Err(PaletteError::Length { expected, found })
}

/// Returns the rows of some groups of a matrix.
fn rows_of(layout: &IndexMatrix, groups: &Range<usize>) -> Range<usize> {
    let end = groups.end.saturating_mul(layout.group_rows());
    groups.start * layout.group_rows()..end.min(layout.rows())
}

/// Returns the layout of only some groups.
fn layout_of(layout: &IndexMatrix, groups: &Range<usize>) -> Result<IndexMatrix, PaletteError> {
    let rows = rows_of(layout, groups).len();
    IndexMatrix::new(layout.width(), rows, layout.cols(), groups.len())
}

/// Returns some groups of an encoded matrix.
fn part<'a>(palette: &Palette<'a>, groups: &Range<usize>) -> Result<Palette<'a>, PaletteError> {
    let layout = &palette.layout;
    let rows = rows_of(layout, groups);
    let bytes = rows.start * layout.row_bytes()..rows.end * layout.row_bytes();
    let entries = layout.width().entries();
    Ok(Palette {
        layout: layout_of(layout, groups)?,
        indices: &palette.indices[bytes],
        codebooks: &palette.codebooks[groups.start * entries..groups.end * entries],
        scales: &palette.scales[groups.clone()],
    })
}

/// First all groups, at least one.
const fn by_groups(layout: &IndexMatrix) -> Chunks {
    Chunks {
        most: layout.groups(),
        least: 1,
    }
}

/// Each call copies palettes to the device; [`Cuda::palette`] keeps them there.
impl PaletteEngine for Cuda {
    type Error = CudaError;

    fn encode_palette<T: Element>(
        &mut self,
        layout: &IndexMatrix,
        values: &[T],
        importances: &[u32],
        out: Output<'_>,
        scratch: &mut [u64],
    ) -> Result<Encoded, CudaError> {
        encode::encode(self, layout, values, importances, out, scratch)
    }

    fn decode_palette(&mut self, palette: &Palette<'_>, out: &mut [f32]) -> Result<(), CudaError> {
        palette.check()?;
        let layout = palette.layout;
        expect(layout.values(), out.len())?;
        self.in_chunks(layout.groups(), by_groups(&layout), |cuda, groups| {
            let rows = rows_of(&layout, &groups);
            let there = cuda.palette(&part(palette, &groups)?)?;
            let mut values = cuda.room(there.layout.values())?;
            cuda.decode_resident_palette(&there, &mut values)?;
            let out = &mut out[rows.start * layout.cols()..rows.end * layout.cols()];
            cuda.read(&values, out)
        })
    }

    fn multiply_palette(
        &mut self,
        palette: &Palette<'_>,
        x: &[i8],
        x_scale: f32,
        out: &mut [f32],
    ) -> Result<(), CudaError> {
        palette.check()?;
        let layout = palette.layout;
        expect(layout.cols(), x.len())?;
        expect(layout.rows(), out.len())?;
        check_dot(x.len())?;
        self.in_chunks(layout.groups(), by_groups(&layout), |cuda, groups| {
            let rows = rows_of(&layout, &groups);
            let there = cuda.palette(&part(palette, &groups)?)?;
            let x = cuda.palette_activations(x)?;
            let mut values = cuda.room(rows.len())?;
            cuda.multiply_resident_palette(&there, &x, x_scale, &mut values)?;
            cuda.read(&values, &mut out[rows])
        })
    }
}
