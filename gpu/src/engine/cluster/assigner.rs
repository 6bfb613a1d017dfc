//! Which kernel finds the nearest centroids, and how each is launched.

use super::points::{MODULE, THREADS};
use crate::engine::wgmma::Wgmma;
use crate::engine::{Cuda, CudaError, Grid, TensorCores};

/// The kernels that assign all points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assigner {
    /// `cluster_assign`, by dp4a.
    Dp4a,
    /// `cluster_assign_mma`.
    Mma,
    /// `cluster_assign_wgmma`, by at most as many blocks.
    Wgmma { blocks: u32 },
}

/// The capability that has tensor cores for rows of 32 bytes.
const MMA: (u32, u32) = (8, 0);

/// The fewest clusters that mma is used for: its tiles are of 128.
const MMA_CLUSTERS: usize = 32;

/// Points of a tile.
pub(super) const TILE: usize = 64;
const MMA_TILE: usize = 128;
const WGMMA_TILE: usize = 256;

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
        if Self::takes_wgmma(cuda, stride) && super::probe::wgmma(cuda)? == Wgmma::Right {
            let blocks = cuda.multiprocessors();
            return Ok(Self::Wgmma { blocks });
        }
        Ok(if k >= MMA_CLUSTERS && cuda.capability() >= MMA {
            Self::Mma
        } else {
            Self::Dp4a
        })
    }

    /// Whether the engine was asked for wgmma, and its kernel works on such rows.
    fn takes_wgmma(cuda: &Cuda, stride: usize) -> bool {
        cuda.wgmma
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
            Self::Mma => {
                let bytes = (panels(stride, shared) + 2) * PANEL;
                let grid = grid(MMA_TILE, u32::MAX).shared(bytes);
                ("cluster_mma", "cluster_assign_mma", grid)
            }
            Self::Wgmma { blocks } => {
                let grid = grid(WGMMA_TILE, blocks).shared(WGMMA_SHARED);
                ("cluster_wgmma", "cluster_assign_wgmma", grid)
            }
        }
    }
}

/// Panels of points that a block of mma keeps: all parts of a row, or two that take turns.
pub(super) fn panels(stride: usize, shared: u32) -> u32 {
    // Points of at most 43,690 coordinates have 683 parts.
    let all = stride.div_ceil(PART) as u32;
    // Norms and ranks of a tile lie beside the panels.
    let room = shared.saturating_sub(2 << 10).min(PANELS) / PANEL;
    if all + 2 <= room { all } else { 2 }
}
