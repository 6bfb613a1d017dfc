//! The launches of products, and the choice of kernel by the number of rows of activations.

use tercet_core::block::Format;

use super::{DeviceActivations, DeviceLayer};
use crate::engine::{Argument, Cuda, CudaError, DeviceBuffer, LaunchGrid};

/// Rows of activations per pass over the weights: with products of four bytes, and with tensor cores.
const THREADS: u32 = 256;
/// Rows of activations that one pass over the weights serves: by products of four bytes, and by tensor cores.
const MOST: usize = 8;
const MOST_MMA: usize = 16;
/// Maximum number of rows of activations for such passes; each pass but the first reads weights that the device's cache
/// may hold. For more rows, tiles are used.
const FEW: usize = 32;
/// Columns of blocks of parts that a warp processes at a time: `STRIPE` in `kernels/include/tercet/blocks.cuh`.
const STRIPE: usize = 128;
/// Maximum number of rows of a grid.
const MOST_GRID_ROWS: usize = (1 << 16) - 1;
/// The first capability with int8 products of 16 × 8 × 32 on tensor cores.
const TENSOR_CORES: (u32, u32) = (8, 0);

/// Target of a product.
#[derive(Debug)]
pub(super) enum Output<'a> {
    /// Exact sums.
    Sums(&'a mut DeviceBuffer<i64>),
    /// Floats, and a scale for each row of activations.
    Floats(&'a mut DeviceBuffer<f32>, &'a DeviceBuffer<f32>),
}

/// A kernel, and the rows that a block of it processes.
struct Choice {
    module: &'static str,
    kernel: &'static str,
    /// Rows of weights per block.
    rows: usize,
    /// Rows of activations per block; `None` for all of them.
    tile: Option<usize>,
}

impl Cuda {
    /// Queues a product. The caller has checked the lengths.
    pub(super) fn launch_product(
        &mut self,
        layer: &DeviceLayer,
        x: &DeviceActivations,
        output: Output<'_>,
    ) -> Result<(), CudaError> {
        if layer.rows == 0 || x.count == 0 {
            return Ok(());
        }
        if let Some(format) = layer.packing.parts {
            return self.launch_parts(format, layer, x, output);
        }
        match (&layer.mins, output) {
            (None, output) => self.launch_codes(layer, x, output),
            (Some(mins), Output::Sums(sums)) => {
                self.launch_codes(layer, x, Output::Sums(sums))?;
                self.launch_minima(layer, mins, x, sums, None)
            }
            (Some(mins), Output::Floats(out, scales)) => {
                let mut sums = self.room(x.count * layer.rows)?;
                self.launch_codes(layer, x, Output::Sums(&mut sums))?;
                self.launch_minima(layer, mins, x, &mut sums, Some((out, scales)))
            }
        }
    }

    /// Queues the product of blocks of several parts, which are stored as in a file.
    fn launch_parts(
        &mut self,
        format: Format,
        layer: &DeviceLayer,
        x: &DeviceActivations,
        output: Output<'_>,
    ) -> Result<(), CudaError> {
        let kernel = match (format, x.count) {
            (Format::Q6K, 1) => "linear_q6_k_1",
            (Format::Q6K, _) => "linear_q6_k_4",
            // There are two formats with parts.
            (_, 1) => "linear_q4_k_1",
            _ => "linear_q4_k_4",
        };
        let packing = &layer.packing;
        let narrow = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
        let (sums, out, scales) = match output {
            Output::Sums(sums) => (sums.into(), Argument::none(), Argument::none()),
            Output::Floats(out, scales) => (Argument::none(), out.into(), scales.into()),
        };
        let arguments = [
            Argument::from(&layer.weights),
            packing.row_bytes().into(),
            narrow(packing.cols / STRIPE).into(),
            narrow(layer.rows).into(),
            (&x.values).into(),
            x.stride.into(),
            x.count.into(),
            layer.bias.as_ref().into(),
            layer.unit.into(),
            scales,
            sums,
            out,
        ];
        let warps = THREADS as usize / 32;
        let grid = LaunchGrid::new(narrow(layer.rows.div_ceil(warps)), THREADS);
        let grid = grid.rows(narrow(x.count.div_ceil(4).min(MOST_GRID_ROWS)));
        // SAFETY: rows of weights begin at even addresses and have whole blocks, rows of activations at multiples of 16
        // bytes as many columns; there are a sum or an output, and a bias if there are biases, for each.
        unsafe { self.launch("linear_parts", kernel, grid, &arguments) }
    }

    /// Queues the addition of the minima to the sums, which stay in place or become floats.
    fn launch_minima(
        &mut self,
        layer: &DeviceLayer,
        mins: &DeviceBuffer<u16>,
        x: &DeviceActivations,
        sums: &mut DeviceBuffer<i64>,
        floats: Option<(&mut DeviceBuffer<f32>, &DeviceBuffer<f32>)>,
    ) -> Result<(), CudaError> {
        let packing = &layer.packing;
        let narrow = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
        let (out, scales) = match floats {
            Some((out, scales)) => (out.into(), scales.into()),
            None => (Argument::none(), Argument::none()),
        };
        let arguments = [
            layer.block_scales.as_ref().into(),
            mins.into(),
            narrow(packing.blocks()).into(),
            packing.origin.into(),
            narrow(layer.rows).into(),
            (&x.values).into(),
            x.stride.into(),
            x.count.into(),
            layer.unit.into(),
            scales,
            sums.into(),
            out,
        ];
        let warps = THREADS as usize / 32;
        let grid = LaunchGrid::new(narrow(layer.rows.div_ceil(warps)), THREADS);
        let grid = grid.rows(narrow(x.count.min(MOST_GRID_ROWS)));
        // SAFETY: a scale and a minimum for each block of each row; rows of activations begin at multiples of 16 bytes
        // and have whole blocks; a sum, and an output if there are outputs, for each row of both.
        unsafe { self.launch("linear", "linear_minima", grid, &arguments) }
    }

    /// Queues the products of codes and scales.
    fn launch_codes(
        &mut self,
        layer: &DeviceLayer,
        x: &DeviceActivations,
        mut output: Output<'_>,
    ) -> Result<(), CudaError> {
        let tensor_cores = self.capability() >= TENSOR_CORES;
        let mut first = 0;
        while first < x.count {
            let left = x.count - first;
            let tile = tensor_cores.then(|| tile(layer, left)).flatten();
            let few = || tensor_cores.then(|| few_rows(layer, left)).flatten();
            let (choice, most) = match tile.map(|tile| (tile, left)) {
                Some(tile) => tile,
                None => few().map_or_else(
                    || (dots(layer, MOST.min(left)), MOST),
                    |few| (few, MOST_MMA),
                ),
            };
            let count = most.min(left);
            self.launch_part(layer, x, &mut output, first, count, &choice)?;
            first += count;
        }
        Ok(())
    }

    /// Queues the product with `count` rows of activations from `first` on.
    fn launch_part(
        &mut self,
        layer: &DeviceLayer,
        x: &DeviceActivations,
        output: &mut Output<'_>,
        first: usize,
        count: usize,
        choice: &Choice,
    ) -> Result<(), CudaError> {
        let packing = &layer.packing;
        // Ensured by `Cuda::layer` and by core's bound on columns.
        let narrow = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
        let place = first * layer.rows;
        let (sums, out, scales) = match output {
            Output::Sums(sums) => (sums.at(place), Argument::none(), Argument::none()),
            Output::Floats(out, scales) => (Argument::none(), out.at(place), scales.at(first)),
        };
        let mut arguments = vec![
            Argument::from(&layer.weights),
            packing.row_bytes().into(),
            layer.block_scales.as_ref().into(),
            narrow(packing.blocks()).into(),
        ];
        if choice.module == "linear" {
            let chunks = packing
                .block
                .map_or(1, |block| block / packing.chunk_cols());
            arguments.push(narrow(chunks).into());
        }
        arguments.extend([
            narrow(layer.rows).into(),
            x.values.at(first * x.stride),
            x.stride.into(),
            narrow(count).into(),
            layer.bias.as_ref().into(),
            layer.row_scales.as_ref().into(),
            layer.scale.into(),
            layer.unit.into(),
            scales,
            sums,
            out,
        ]);
        let blocks = narrow(layer.rows.div_ceil(choice.rows));
        let tiles = choice.tile.map_or(1, |tile| count.div_ceil(tile));
        let grid = LaunchGrid::new(blocks, THREADS).rows(narrow(tiles));
        // SAFETY: rows of weights and of activations begin at multiples of 16 bytes and have whole chunks, a scale for
        // each block and one for each row; there are outputs for `count` rows from `place` on.
        unsafe { self.launch(choice.module, choice.kernel, grid, &arguments) }
    }
}

/// Returns tiles of 128 rows of weights on tensor cores, if there are more rows of activations than [`FEW`] and at most
/// as many tiles as a grid has rows; `None` if they do not support the blocks or their scales.
fn tile(layer: &DeviceLayer, count: usize) -> Option<Choice> {
    let (kernel, tile) = match (layer.packing.bits, layer.block()?) {
        (2, None) => ("linear_tile_2", 128),
        (2, Some(64)) => ("linear_tile_2_64", 64),
        (2, Some(256)) => ("linear_tile_2_256", 64),
        (4, None) => ("linear_tile_4", 128),
        (4, Some(32)) => ("linear_tile_4_32", 64),
        (8, None) => ("linear_tile_8", 128),
        (8, Some(32)) => ("linear_tile_8_32", 64),
        _ => return None,
    };
    (count > FEW && count.div_ceil(tile) < 1 << 16).then_some(Choice {
        module: "linear_tile_mma",
        kernel,
        rows: 128,
        tile: Some(tile),
    })
}

/// Returns one pass over the weights for up to sixteen rows of activations, on tensor cores; `None` as for [`tile`],
/// and if products of four bytes take fewer instructions: small blocks with one row.
fn few_rows(layer: &DeviceLayer, count: usize) -> Option<Choice> {
    macro_rules! of {
        ($name:literal) => {
            match count {
                ..=8 => concat!("linear_mma_rows_", $name),
                _ => concat!("linear_mma_rows16_", $name),
            }
        };
    }
    let kernel = match (layer.packing.bits, layer.block()?) {
        (2, None) => of!("2"),
        (2, Some(64)) if count > 1 => of!("2_64"),
        (2, Some(256)) => of!("2_256"),
        (4, None) => of!("4"),
        (4, Some(32)) if count > 1 => of!("4_32"),
        (8, None) => of!("8"),
        (8, Some(32)) if count > 1 => of!("8_32"),
        _ => return None,
    };
    Some(Choice {
        module: "linear_mma",
        kernel,
        rows: 32,
        tile: None,
    })
}

/// Returns one pass over the weights with products of four bytes, for every packing.
fn dots(layer: &DeviceLayer, count: usize) -> Choice {
    macro_rules! of {
        ($name:literal) => {
            match count {
                1 => (concat!($name, "_1"), 4),
                2..=4 => (concat!($name, "_4"), 2),
                _ => (concat!($name, "_8"), 2),
            }
        };
    }
    let (kernel, rows_of_a_warp) = match (layer.packing.bits, layer.packing.block.is_some()) {
        (2, false) => of!("linear_2"),
        (2, true) => of!("linear_2_blocks"),
        (4, false) => of!("linear_4"),
        (4, true) => of!("linear_4_blocks"),
        (_, false) => of!("linear_8"),
        (_, true) => of!("linear_8_blocks"),
    };
    Choice {
        module: "linear",
        kernel,
        rows: rows_of_a_warp * THREADS as usize / 32,
        tile: None,
    }
}
