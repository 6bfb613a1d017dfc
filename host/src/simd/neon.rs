//! Kernels for AArch64's NEON.

#[path = "blocks/neon/mod.rs"]
pub(in crate::simd) mod blocks;
#[path = "cluster/neon.rs"]
pub(in crate::simd) mod cluster;
#[path = "compare/neon.rs"]
pub(in crate::simd) mod compare;
#[path = "float_search/neon.rs"]
pub(in crate::simd) mod float_search;
#[path = "linear/neon/mod.rs"]
pub(in crate::simd) mod linear;
#[path = "search/many/neon.rs"]
pub(in crate::simd) mod many_search;
#[path = "palette/neon.rs"]
pub(in crate::simd) mod palette;
#[path = "peak/neon.rs"]
pub(in crate::simd) mod peak;
#[path = "quantize/neon.rs"]
pub(in crate::simd) mod quantize;
#[path = "search/neon.rs"]
pub(in crate::simd) mod search;
#[path = "vectors/neon.rs"]
pub(in crate::simd) mod vectors;

use super::Isa;
use super::sets::Kernels;

/// Its kernels.
pub(in crate::simd) const KERNELS: Kernels = Kernels {
    isa: Isa::Neon,
    runs,
    blocks: Some(&blocks::KERNELS),
    cluster: &cluster::KERNELS,
    compare: Some(compare::rows),
    float_search: &float_search::KERNELS,
    linear: &linear::KERNELS,
    palettes: Some(&palette::KERNELS),
    peak: &peak::KERNELS,
    quantize: &quantize::KERNELS,
    search: &search::KERNELS,
    ..super::scalar::KERNELS
};

/// Returns true if this processor and its system support the set.
pub(in crate::simd) fn runs() -> bool {
    std::arch::is_aarch64_feature_detected!("neon")
}
