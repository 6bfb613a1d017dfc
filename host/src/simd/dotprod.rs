//! Kernels for AArch64's DotProd.

#[path = "cluster/dotprod.rs"]
pub(in crate::simd) mod cluster;
#[path = "linear/dotprod.rs"]
pub(in crate::simd) mod linear;
#[path = "search/many/dotprod.rs"]
pub(in crate::simd) mod many_search;
#[path = "peak/dotprod.rs"]
pub(in crate::simd) mod peak;
#[path = "search/dotprod.rs"]
pub(in crate::simd) mod search;

use super::Isa;
use super::sets::Kernels;

/// Its kernels.
pub(in crate::simd) const KERNELS: Kernels = Kernels {
    isa: Isa::DotProd,
    runs,
    cluster: &cluster::KERNELS,
    linear: &linear::KERNELS,
    peak: &peak::KERNELS,
    search: &search::KERNELS,
    ..super::neon::KERNELS
};

/// Returns true if this processor and its system support the set.
pub(in crate::simd) fn runs() -> bool {
    super::neon::runs() && std::arch::is_aarch64_feature_detected!("dotprod")
}
