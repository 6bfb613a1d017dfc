//! Kernels for AVX-VNNI.

#[path = "cluster/avx_vnni.rs"]
pub(in crate::simd) mod cluster;
#[path = "search/many/avx_vnni.rs"]
pub(in crate::simd) mod many_search;
#[path = "peak/avx_vnni.rs"]
pub(in crate::simd) mod peak;
#[path = "search/avx_vnni.rs"]
pub(in crate::simd) mod search;

use super::Isa;
use super::sets::Kernels;

/// Its kernels.
pub(in crate::simd) const KERNELS: Kernels = Kernels {
    isa: Isa::AvxVnni,
    runs,
    cluster: &cluster::KERNELS,
    peak: &peak::KERNELS,
    search: &search::KERNELS,
    ..super::avx2::KERNELS
};

/// Returns true if this processor and its system support the set.
pub(in crate::simd) fn runs() -> bool {
    super::avx2::runs() && is_x86_feature_detected!("avxvnni")
}
