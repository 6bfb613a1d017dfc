//! Encoding: the device counts codes and packs indices, and the host chooses codebooks from the counts, as core does.

use std::ops::Range;

use tercet_core::number::{Element, Kind};
use tercet_core::palette::{self, Coder, Counts, Encoded, IndexMatrix, Output, PaletteError};
use tercet_core::quant::{Grid, int8};

use super::{by_groups, layout_of, rows_of};
use crate::engine::quantize::kernel;
use crate::engine::{Cuda, CudaError, DeviceBuffer, LaunchGrid};

/// Threads of a block.
const THREADS: u32 = 256;
/// Blocks of a launch per multiprocessor.
const WAVES: usize = 8;
/// Minimum number of values of a group per block.
const PART: usize = 16 << 10;
/// Codes of the grid, and counts of a group.
const CODES: usize = 256;

/// As [`palette::encode`], in as many parts as the memory requires.
pub(super) fn encode<T: Element>(
    cuda: &mut Cuda,
    layout: &IndexMatrix,
    values: &[T],
    importances: &[u32],
    out: Output<'_>,
    scratch: &mut [u64],
) -> Result<Encoded, CudaError> {
    palette::check(layout, values, importances, &out)?;
    // The host chooses the codebooks.
    let needed = layout.scratch_len();
    if scratch.len() < needed {
        return Err(PaletteError::Scratch { needed }.into());
    }
    // Sums of importances on the device must not wrap.
    if u32::try_from(layout.group_len()).is_err() {
        return Ok(palette::encode(layout, values, importances, out, scratch)?);
    }
    let mut done = Encoded::default();
    let entries = layout.width().entries();
    let Output {
        indices,
        codebooks,
        scales,
    } = out;
    cuda.in_chunks(layout.groups(), by_groups(layout), |cuda, groups| {
        let rows = rows_of(layout, &groups);
        let among = rows.start * layout.cols()..rows.end * layout.cols();
        let part = MatrixGroups {
            layout: layout_of(layout, &groups)?,
            values: &values[among.clone()],
            importances: importances.get(among.clone()).unwrap_or_default(),
            first: among.start,
        };
        let bytes = rows.start * layout.row_bytes()..rows.end * layout.row_bytes();
        let out = Output {
            indices: &mut indices[bytes],
            codebooks: &mut codebooks[groups.start * entries..groups.end * entries],
            scales: &mut scales[groups],
        };
        done.merge(&part.encode(cuda, out, scratch)?);
        Ok(())
    })?;
    Ok(done)
}

/// Some groups of a matrix, and the index of their first value.
struct MatrixGroups<'a, T> {
    layout: IndexMatrix,
    values: &'a [T],
    importances: &'a [u32],
    first: usize,
}

impl<T: Element> MatrixGroups<'_, T> {
    fn encode(
        &self,
        cuda: &mut Cuda,
        out: Output<'_>,
        scratch: &mut [u64],
    ) -> Result<Encoded, CudaError> {
        let groups = self.layout.groups();
        let values = cuda.upload(self.values)?;
        let (done, bad) = self.grids(cuda, &values, out.scales)?;
        // A group before the first bad value may be refused for another reason, which is then the error.
        let good = bad.map_or(groups, |(group, _)| group);
        let scales = cuda.upload(out.scales)?;
        let counts = self.counts(cuda, &values, &scales, self.importances, 0..good)?;
        let mut plain = Vec::new();
        let mut tables = vec![0; groups * CODES];
        let books = out
            .codebooks
            .chunks_exact_mut(self.layout.width().entries());
        for (group, (book, table)) in books.zip(tables.chunks_exact_mut(CODES)).enumerate() {
            if group == good {
                break;
            }
            let mut weights = counts_of(&counts, group);
            if weights.is_empty() {
                // Without any importance all values count the same.
                if plain.is_empty() {
                    plain = self.counts(cuda, &values, &scales, &[], 0..good)?;
                }
                weights = counts_of(&plain, group);
            }
            weights.choose(book, scratch)?;
            table.copy_from_slice(Coder::new(self.layout.width(), book)?.indices());
        }
        if let Some((_, index)) = bad {
            let index = index + self.first as u64;
            return Err(PaletteError::NotFinite { index }.into());
        }
        self.pack(cuda, &values, &scales, &tables, out.indices)?;
        Ok(done)
    }

    /// Returns the scale of each group, and the first group with a value that is not finite and the index of that
    /// value.
    fn grids(
        &self,
        cuda: &mut Cuda,
        values: &DeviceBuffer<T>,
        scales: &mut [f32],
    ) -> Result<(Encoded, Option<(usize, u64)>), CudaError> {
        let groups = self.layout.groups();
        let mut largest = cuda.zeros::<u32>(groups)?;
        let mut not_bad = cuda.zeros::<u64>(groups)?;
        let (blocks, parts) = self.blocks(cuda, groups);
        let arguments = [
            values.into(),
            self.values.len().into(),
            self.layout.group_len().into(),
            parts.into(),
            (&mut largest).into(),
            (&mut not_bad).into(),
        ];
        let kernel = kernel!("palette_range", T);
        // SAFETY: the groups are of these values, and there is a word of each kind for each group.
        unsafe { cuda.launch("palette_encode", kernel, blocks, &arguments) }?;
        let (mut patterns, mut complements) = (vec![0; groups], vec![0; groups]);
        cuda.read(&largest, &mut patterns)?;
        cuda.read(&not_bad, &mut complements)?;
        let bad = complements.iter().position(|&complement| complement != 0);
        let mut done = Encoded::default();
        for (scale, pattern) in scales.iter_mut().zip(patterns) {
            let abs_max = f32::from_bits(pattern);
            let grid = Grid::symmetric(abs_max, int8::LIMIT)?;
            *scale = grid.scale;
            done.merge(&Encoded {
                groups: 1,
                zero: u64::from(abs_max == 0.0),
                flushed: u64::from(grid.scale == 0.0 && abs_max > 0.0),
            });
        }
        Ok((done, bad.map(|group| (group, !complements[group]))))
    }

    /// Returns the weight of each code in the first groups.
    fn counts(
        &self,
        cuda: &mut Cuda,
        values: &DeviceBuffer<T>,
        scales: &DeviceBuffer<f32>,
        importances: &[u32],
        groups: Range<usize>,
    ) -> Result<Vec<u64>, CudaError> {
        let mut counts = cuda.zeros::<u64>(groups.len() * CODES)?;
        let weighted = !importances.is_empty();
        let importances = weighted.then(|| cuda.upload(importances)).transpose()?;
        let (blocks, parts) = self.blocks(cuda, groups.len());
        let arguments = [
            values.into(),
            importances.as_ref().into(),
            self.values.len().into(),
            self.layout.group_len().into(),
            parts.into(),
            scales.into(),
            (&mut counts).into(),
        ];
        let kernel = kernel!("palette_count", T);
        // SAFETY: as in `grids`; an importance for each value, a scale and 256 counts for each group.
        unsafe { cuda.launch("palette_encode", kernel, blocks, &arguments) }?;
        let mut found = vec![0; counts.len()];
        cuda.read(&counts, &mut found)?;
        Ok(found)
    }

    fn pack(
        &self,
        cuda: &mut Cuda,
        values: &DeviceBuffer<T>,
        scales: &DeviceBuffer<f32>,
        tables: &[u8],
        indices: &mut [u8],
    ) -> Result<(), CudaError> {
        let layout = &self.layout;
        let tables = cuda.upload(tables)?;
        let mut packed = cuda.room::<u8>(indices.len())?;
        let (blocks, parts) = self.blocks(cuda, layout.groups());
        let arguments = [
            values.into(),
            u32::from(layout.width().bits()).into(),
            layout.rows().into(),
            layout.cols().into(),
            layout.group_rows().into(),
            layout.row_bytes().into(),
            parts.into(),
            scales.into(),
            (&tables).into(),
            (&mut packed).into(),
        ];
        let kernel = kernel!("palette_pack", T);
        // SAFETY: as in `grids`; a scale and a table for each group, and the bytes of each row, all of which are
        // written.
        unsafe { cuda.launch("palette_encode", kernel, blocks, &arguments) }?;
        cuda.read(&packed, indices)
    }

    /// Returns the blocks for `groups` groups, and how many blocks share one group.
    fn blocks(&self, cuda: &Cuda, groups: usize) -> (LaunchGrid, u32) {
        let wanted = (cuda.multiprocessors() as usize * WAVES).div_ceil(groups.max(1));
        let parts = wanted.min(self.layout.group_len().div_ceil(PART)).max(1);
        let narrow = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
        (
            LaunchGrid::new(narrow(groups * parts), THREADS),
            narrow(parts),
        )
    }
}

/// Returns the counts of one group.
fn counts_of(counts: &[u64], group: usize) -> Counts {
    let mut weights = [0; CODES];
    for (weight, &count) in weights.iter_mut().zip(&counts[group * CODES..]) {
        *weight = count;
    }
    Counts::of(weights)
}
