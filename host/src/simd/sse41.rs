//! Kernels for SSE4.1.

#[path = "cluster/sse41.rs"]
pub(in crate::simd) mod cluster;
#[path = "search/many/sse41.rs"]
pub(in crate::simd) mod many_search;
#[path = "peak/sse41.rs"]
pub(in crate::simd) mod peak;
#[path = "search/sse41.rs"]
pub(in crate::simd) mod search;
#[path = "vectors/sse41.rs"]
pub(in crate::simd) mod vectors;

use super::Isa;
use super::sets::Kernels;

/// Its kernels.
pub(in crate::simd) const KERNELS: Kernels = Kernels {
    isa: Isa::Sse41,
    runs,
    cluster: &cluster::KERNELS,
    peak: &peak::KERNELS,
    search: &search::KERNELS,
    ..super::scalar::KERNELS
};

/// Returns true if this processor and its system support the set.
pub(in crate::simd) fn runs() -> bool {
    is_x86_feature_detected!("sse4.1")
}
