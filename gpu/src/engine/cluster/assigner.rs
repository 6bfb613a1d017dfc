//! Which kernel finds the nearest centroids, and how each is launched.

use super::points::{MODULE, THREADS};
use crate::engine::wgmma::Wgmma;
use crate::engine::{Cuda, CudaError, Grid, TensorCores};

/// The kernels that assign all points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assigner {
    /// `cluster_assign`, by dp4a.
    Dp4a,
    /// `cluster_assign_mma`, by at most as many blocks.
    Mma { blocks: u32 },
    /// One of `cluster_few_mma.cu`, by at most as many blocks.
    Few { kernel: &'static str, blocks: u32 },
    /// One of `cluster_wgmma.cu`, by at most as many blocks.
    Wgmma { blocks: u32 },
}

/// The capability that has tensor cores for rows of 32 bytes.
const MMA: (u32, u32) = (8, 0);

/// The kernels whose centroids stay in registers: the most clusters and the most bytes of a row; as in `kernels/cuda/cluster_few_mma.cu`. The first
/// that takes a problem is for it.
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

/// The fewest clusters that wgmma is used for unasked. On an H200 a step over a million points of 128 coordinates with 1,024 clusters took 0.44 ms by
/// it and 0.75 ms by mma.
const WGMMA_CLUSTERS: usize = 128;

/// The fewest clusters that mma with tiles of 128 is used for.
const MMA_CLUSTERS: usize = 32;

/// Points of a tile.
pub(super) const TILE: usize = 64;
const MMA_TILE: usize = 128;
const WGMMA_TILE: usize = 256;
/// Points that a block has at a time where centroids stay in registers.
const FEW_TILE: usize = 256;

/// Bytes of 128 rows' parts in shared memory, and bytes of such a part; as in `kernels/cuda/cluster_mma.cu`.
const PANEL: u32 = 128 * 80;
const PART: usize = 64;

/// The most dynamic shared memory for mma: two blocks a multiprocessor fit those of capability 8.0 and 9.0.
const PANELS: u32 = 72 << 10;

/// The dynamic shared memory of blocks for wgmma: four parts of 256 points and of 128 centroids, 128 bytes each row, and what it takes to
/// begin at a multiple of 1024; as in `kernels/cuda/cluster_wgmma.cu`.
const WGMMA_SHARED: u32 = 4 * (256 + 128) * 128 + 1008;

/// What the wgmma kernel has beside that.
const WGMMA_STATIC: u32 = 9 << 10;

impl Assigner {
    /// The kernel for `k` centroids in rows of `stride` bytes. Its first choice of wgmma on a device tries that there.
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

    /// By mma with tiles of 128 centroids, in rows of any length.
    pub(super) fn mma(cuda: &mut Cuda, stride: usize) -> Result<Self, CudaError> {
        let shared = panel_bytes(stride, cuda.shared);
        let blocks = cuda.resident_blocks(MMA_MODULE, MMA_KERNEL, THREADS, shared)?;
        Ok(Self::Mma { blocks })
    }

    /// Whether the engine's device has wgmma, and its kernel works on such rows.
    fn takes_wgmma(cuda: &Cuda, stride: usize) -> bool {
        cuda.has_wgmma
            && stride <= TensorCores::WGMMA_DIMS
            && cuda.shared >= WGMMA_SHARED + WGMMA_STATIC
    }

    /// Its module, its name, and the grid for `points` rows of `stride` bytes.
    pub(super) fn launch(
        self,
        points: usize,
        stride: usize,
        shared: u32,
    ) -> (&'static str, &'static str, Grid) {
        let grid = |tile, most| Grid::strided(points, tile, THREADS, most);
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

/// The dynamic shared memory of a block of mma.
fn panel_bytes(stride: usize, shared: u32) -> u32 {
    (panels(stride, shared) + 2) * PANEL
}

/// Panels of points that a block of mma keeps: all parts of a row and two at least, or two that take turns.
pub(super) fn panels(stride: usize, shared: u32) -> u32 {
    // Points of at most 43,690 coordinates have 683 parts.
    let all = (stride.div_ceil(PART) as u32).max(2);
    // Norms and ranks of a tile lie beside the panels.
    let room = shared.saturating_sub(2 << 10).min(PANELS) / PANEL;
    if all + 2 <= room { all } else { 2 }
}
