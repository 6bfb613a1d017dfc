//! The tensor-core instructions that an engine uses, and the state of a device's newest ones.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tercet_kernels::{Architecture, Capability};

use super::error::Version;

/// The instructions by which kernels multiply int8 matrices, if there is a choice. Results are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorCores {
    /// The fastest choice as measured on an H200: kernels with few centroids in registers if one fits, otherwise wgmma
    /// from 128 clusters on, mma from 32 on, and dp4a below. Devices before compute capability 8.0 use dp4a.
    #[default]
    Auto,
    /// mma, for compute capability 8.0 and later.
    Mma,
    /// Warpgroup products of compute capability 9.0 (H100, H200), if there is a kernel with them: k-means over points
    /// with at most [`TensorCores::WGMMA_DIMS`] coordinates. Before their first use on a device they are compared there
    /// with mma; if they ever differ, mma is used ([`Wgmma::Wrong`]).
    Wgmma,
}

impl TensorCores {
    /// Maximum number of coordinates of points for [`TensorCores::Wgmma`].
    pub const WGMMA_DIMS: usize = 512;
}

/// State of a device's warpgroup products in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wgmma {
    /// The device has none: its compute capability is not 9.0, or its driver is older than that of CUDA 12.0.
    Absent,
    /// Not used yet.
    Untried,
    /// They gave the same results as mma.
    Right,
    /// They gave other results: they are never used in this process.
    Wrong,
}

/// The results so far, by the device's number.
static FOUND: Mutex<BTreeMap<usize, Wgmma>> = Mutex::new(BTreeMap::new());

/// True if a device of this capability has warpgroup products, and its driver reads PTX with them.
pub(super) fn is_there(device: Capability, driver: Version) -> bool {
    let [_, (major, minor)] = Architecture::Sm90a.versions();
    Architecture::Sm90a.runs_on(device) && driver >= Version { major, minor }
}

/// Returns the state of a device that has warpgroup products.
pub(super) fn known(ordinal: usize) -> Wgmma {
    // Nothing panics while it holds the lock; even if something did, the stored value is complete.
    let found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    found.get(&ordinal).copied().unwrap_or(Wgmma::Untried)
}

/// Stores a result. Once wrong, it stays wrong.
pub(super) fn note(ordinal: usize, found: Wgmma) -> Wgmma {
    let mut all = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = all.entry(ordinal).or_insert(found);
    if *kept == Wgmma::Right {
        *kept = found;
    }
    *kept
}
