//! The launches of products: which kernel serves how many rows of activations.

use super::packed::CHUNK;
use super::{DeviceActivations, DeviceLayer};
use crate::engine::{Argument, Cuda, CudaError, DeviceBuffer, Grid};

/// Threads of a block.
const THREADS: u32 = 256;
/// Rows of activations that one pass over the weights serves.
const MOST: usize = 8;

impl Cuda {
    /// Queues a product: exact sums into `sums`, or outputs in f32 into `out`.
    ///
    /// The caller has checked the lengths.
    pub(super) fn launch_product(
        &mut self,
        layer: &DeviceLayer,
        x: &DeviceActivations,
        scales: Option<&DeviceBuffer<f32>>,
        mut sums: Option<&mut DeviceBuffer<i64>>,
        mut out: Option<&mut DeviceBuffer<f32>>,
    ) -> Result<(), CudaError> {
        if layer.rows == 0 {
            return Ok(());
        }
        for first in (0..x.count).step_by(MOST) {
            let count = MOST.min(x.count - first);
            let (kernel, rows) = kernel(layer, count);
            let blocks = layer.rows.div_ceil(rows * THREADS as usize / 32);
            let packing = &layer.packing;
            let block_chunks = packing
                .block
                .map_or(1, |block| block / packing.chunk_cols());
            // What `Cuda::layer` and core's bound on columns make sure of.
            let narrow = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
            let place = first * layer.rows;
            let arguments = [
                Argument::from(&layer.weights),
                packing.row_bytes().into(),
                layer.block_scales.as_ref().into(),
                narrow(packing.blocks()).into(),
                narrow(block_chunks).into(),
                narrow(layer.rows).into(),
                x.values.at(first * x.stride),
                x.stride.into(),
                narrow(count).into(),
                layer.bias.as_ref().into(),
                layer.row_scales.as_ref().into(),
                layer.scale.into(),
                layer.unit.into(),
                scales.map_or_else(Argument::none, |scales| scales.at(first)),
                (sums.as_deref_mut()).map_or_else(Argument::none, |sums| sums.at(place)),
                (out.as_deref_mut()).map_or_else(Argument::none, |out| out.at(place)),
            ];
            let grid = Grid::new(narrow(blocks), THREADS);
            debug_assert!(packing.row_bytes().is_multiple_of(CHUNK));
            // SAFETY: rows of weights and of activations begin at multiples of 16 bytes and have whole chunks, a scale for each block
            // and one for each row; there are outputs for `count` rows from `place` on.
            unsafe { self.launch("linear", kernel, grid, &arguments) }?;
        }
        Ok(())
    }
}

/// The kernel for a layer and a number of rows of activations, and how many rows of weights a warp of it takes.
fn kernel(layer: &DeviceLayer, count: usize) -> (&'static str, usize) {
    macro_rules! of {
        ($name:literal) => {
            match count {
                1 => (concat!($name, "_1"), 4),
                2..=4 => (concat!($name, "_4"), 2),
                _ => (concat!($name, "_8"), 2),
            }
        };
    }
    match (layer.packing.bits, layer.packing.block.is_some()) {
        (2, false) => of!("linear_2"),
        (2, true) => of!("linear_2_blocks"),
        (4, false) => of!("linear_4"),
        (4, true) => of!("linear_4_blocks"),
        (_, false) => of!("linear_8"),
        (_, true) => of!("linear_8_blocks"),
    }
}
