//! Which tensor-core instructions an engine uses, and what is known of a device's newest ones.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tercet_kernels::{Architecture, Capability};

use super::error::Version;

/// The instructions that kernels multiply matrices of int8 by, where there are several. Results are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorCores {
    /// What was measured to be the fastest, on an H200: kernels with few centroids in registers, wgmma from 128 clusters on, else mma.
    #[default]
    Auto,
    /// mma, of compute capability 8.0 and later.
    Mma,
    /// Warpgroup products of compute capability 9.0 (H100, H200) where there is a kernel with them: k-means over points of at most
    /// [`TensorCores::WGMMA_DIMS`] coordinates. Before their first use on a device they are tried there against mma; if they ever differ, mma is used
    /// ([`Wgmma::Wrong`]).
    Wgmma,
}

impl TensorCores {
    /// The most coordinates of points that [`TensorCores::Wgmma`] is used for.
    pub const WGMMA_DIMS: usize = 512;
}

/// What this process knows of a device's warpgroup products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wgmma {
    /// It has none: its compute capability is not 9.0, or its driver is older than CUDA 12.0's.
    Absent,
    /// Nothing has used them yet.
    Untried,
    /// They gave what mma gave.
    Right,
    /// They gave something else: they are never used in this process.
    Wrong,
}

/// What was found, by the device's number.
static FOUND: Mutex<BTreeMap<usize, Wgmma>> = Mutex::new(BTreeMap::new());

/// Whether a device of this capability has warpgroup products, and its driver reads PTX with them.
pub(super) fn is_there(device: Capability, driver: Version) -> bool {
    let [_, (major, minor)] = Architecture::Sm90a.versions();
    Architecture::Sm90a.runs_on(device) && driver >= Version { major, minor }
}

/// What is known of a device that has warpgroup products.
pub(super) fn known(ordinal: usize) -> Wgmma {
    // Nothing panics while it holds the lock; if something did, what stands there is whole.
    let found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    found.get(&ordinal).copied().unwrap_or(Wgmma::Untried)
}

/// Keeps what was found. Once wrong, always wrong.
pub(super) fn note(ordinal: usize, found: Wgmma) -> Wgmma {
    let mut all = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = all.entry(ordinal).or_insert(found);
    if *kept == Wgmma::Right {
        *kept = found;
    }
    *kept
}
