//! The kernel that finds the nearest centroids, and its launch.

use super::points::{MODULE, THREADS};
use crate::engine::wgmma::Wgmma;
use crate::engine::{Cuda, CudaError, LaunchGrid, TensorCores};

/// The kernels that assign all points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assigner {
    /// `cluster_assign`, by dp4a.
    Dp4a,
    /// `cluster_assign_mma`, with at most this many blocks.
    Mma { blocks: u32 },
    /// One of `cluster_few_mma.cu`, with at most this many blocks.
    Few { kernel: &'static str, blocks: u32 },
    /// One of `cluster_wgmma.cu`, with at most this many blocks.
    Wgmma { blocks: u32 },
}

/// The first capability with tensor cores for rows of 32 bytes.
const MMA: (u32, u32) = (8, 0);

/// The kernels that keep centroids in registers, with the largest number of clusters and of bytes per row; as in
/// `kernels/cuda/cluster_few_mma.cu`. The first one that fits a problem is used.
const FEW: [(usize, usize, &str); 8] = [
    (16, 32, "cluster_assign_few_16x32"),
    (16, 64, "cluster_assign_few_16x64"),
    (16, 128, "cluster_assign_few_16x128"),
    (64, 32, "cluster_assign_few_64x32"),
    (64, 64, "cluster_assign_few_64x64"),
    (64, 128, "cluster_assign_few_64x128"),
    (128, 32, "cluster_assign_few_128x32"),
    (128, 64, "cluster_assign_few_128x64"),
];

const FEW_MODULE: &str = "cluster_few_mma";
const MMA_MODULE: &str = "cluster_mma";
const MMA_KERNEL: &str = "cluster_assign_mma";

/// The minimum number of clusters for wgmma if it is not requested. On an H200 a step over a million points of 128
/// coordinates with 1,024 clusters took 0.44 ms with it and 0.75 ms with mma.
const WGMMA_CLUSTERS: usize = 128;

/// The minimum number of clusters for mma with tiles of 128.
const MMA_CLUSTERS: usize = 32;

/// Points per tile.
pub(super) const TILE: usize = 64;
const MMA_TILE: usize = 128;
const WGMMA_TILE: usize = 256;
/// Points that a block processes at a time if centroids are in registers.
const FEW_TILE: usize = 256;

/// Bytes of the parts of 128 rows in shared memory, and bytes of one such part; as in `kernels/cuda/cluster_mma.cu`.
const PANEL: u32 = 128 * 80;
const PART: usize = 64;

/// Maximum dynamic shared memory for mma: with it, two blocks fit a multiprocessor of capability 8.0 and 9.0.
const PANELS: u32 = 72 << 10;

/// Dynamic shared memory of blocks for wgmma: four parts of 256 points and of 128 centroids, with 128 bytes per row,
/// and the padding to begin at a multiple of 1024; as in `kernels/cuda/cluster_wgmma.cu`.
const WGMMA_SHARED: u32 = 4 * (256 + 128) * 128 + 1008;

/// Other shared memory of the wgmma kernel.
const WGMMA_STATIC: u32 = 9 << 10;

impl Assigner {
    /// Returns the kernel for `k` centroids in rows of `stride` bytes. The first time that it chooses wgmma on a
    /// device, it tests it there.
    pub(super) fn choose(cuda: &mut Cuda, stride: usize, k: usize) -> Result<Self, CudaError> {
        if cuda.capability() < MMA {
            return Ok(Self::Dp4a);
        }
        let few = FEW
            .iter()
            .find(|(clusters, bytes, _)| k <= *clusters && stride <= *bytes);
        let wanted = match cuda.tensor_cores {
            TensorCores::Wgmma => true,
            TensorCores::Auto => few.is_none() && k >= WGMMA_CLUSTERS,
            TensorCores::Mma => false,
        };
        if wanted && Self::takes_wgmma(cuda, stride) && super::probe::wgmma(cuda)? == Wgmma::Right {
            let blocks = cuda.multiprocessors();
            return Ok(Self::Wgmma { blocks });
        }
        Ok(match few {
            Some(&(_, _, kernel)) => Self::Few {
                kernel,
                blocks: cuda.resident_blocks(FEW_MODULE, kernel, THREADS, 0)?,
            },
            None if k >= MMA_CLUSTERS => Self::mma(cuda, stride)?,
            None => Self::Dp4a,
        })
    }

    /// Returns mma with tiles of 128 centroids, for rows of any length.
    pub(super) fn mma(cuda: &mut Cuda, stride: usize) -> Result<Self, CudaError> {
        let shared = panel_bytes(stride, cuda.shared);
        let blocks = cuda.resident_blocks(MMA_MODULE, MMA_KERNEL, THREADS, shared)?;
        Ok(Self::Mma { blocks })
    }

    /// True if the engine's device has wgmma, and its kernel accepts such rows.
    fn takes_wgmma(cuda: &Cuda, stride: usize) -> bool {
        cuda.has_wgmma
            && stride <= TensorCores::WGMMA_DIMS
            && cuda.shared >= WGMMA_SHARED + WGMMA_STATIC
    }

    /// Returns its module, its name, and the grid for `points` rows of `stride` bytes.
    pub(super) fn launch(
        self,
        points: usize,
        stride: usize,
        shared: u32,
    ) -> (&'static str, &'static str, LaunchGrid) {
        let grid = |tile, most| LaunchGrid::strided(points, tile, THREADS, most);
        match self {
            Self::Dp4a => (MODULE, "cluster_assign", grid(TILE, u32::MAX)),
            Self::Mma { blocks } => {
                let grid = grid(MMA_TILE, blocks).shared(panel_bytes(stride, shared));
                (MMA_MODULE, MMA_KERNEL, grid)
            }
            Self::Few { kernel, blocks } => (FEW_MODULE, kernel, grid(FEW_TILE, blocks)),
            Self::Wgmma { blocks } => {
                let kernel = match stride {
                    ..=32 => "cluster_assign_wgmma_32",
                    33..=64 => "cluster_assign_wgmma_64",
                    _ => "cluster_assign_wgmma",
                };
                let grid = grid(WGMMA_TILE, blocks).shared(WGMMA_SHARED);
                ("cluster_wgmma", kernel, grid)
            }
        }
    }
}

/// Returns the dynamic shared memory of a block of mma.
fn panel_bytes(stride: usize, shared: u32) -> u32 {
    (panels(stride, shared) + 2) * PANEL
}

/// Returns the number of panels of points that a block of mma keeps: all parts of a row and at least two, or two that
/// take turns.
pub(super) fn panels(stride: usize, shared: u32) -> u32 {
    // Points of at most 43,690 coordinates have 683 parts.
    let all = (stride.div_ceil(PART) as u32).max(2);
    // Norms and ranks of a tile are stored beside the panels.
    let room = shared.saturating_sub(2 << 10).min(PANELS) / PANEL;
    if all + 2 <= room { all } else { 2 }
}
