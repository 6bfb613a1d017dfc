//! Kernels for AVX-512 with VNNI, VBMI, VBMI2, BITALG and VPOPCNTDQ.

#[path = "blocks/avx512_vnni/mod.rs"]
pub(in crate::simd) mod blocks;
#[path = "cluster/avx512_vnni.rs"]
pub(in crate::simd) mod cluster;
#[path = "linear/avx512_vnni/mod.rs"]
pub(in crate::simd) mod linear;
#[path = "search/many/avx512_vnni.rs"]
pub(in crate::simd) mod many_search;
#[path = "palette/avx512_vnni.rs"]
pub(in crate::simd) mod palette;
#[path = "peak/avx512_vnni.rs"]
pub(in crate::simd) mod peak;
#[path = "search/avx512_vnni.rs"]
pub(in crate::simd) mod search;
#[path = "search/ternary/avx512_vnni.rs"]
pub(in crate::simd) mod ternary_search;

use super::Isa;
use super::sets::Kernels;

/// Its kernels.
pub(in crate::simd) const KERNELS: Kernels = Kernels {
    isa: Isa::Avx512Vnni,
    runs,
    blocks: Some(&blocks::KERNELS),
    cluster: &cluster::KERNELS,
    linear: &linear::KERNELS,
    model: &super::model::AVX512_VNNI,
    palettes: Some(&palette::KERNELS),
    peak: &peak::KERNELS,
    search: &search::KERNELS,
    train: &super::train::AVX512_VNNI,
    ..super::avx512::KERNELS
};

/// Returns true if this processor and its system support the set.
pub(in crate::simd) fn runs() -> bool {
    super::avx512::runs()
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("avx512bitalg")
        && is_x86_feature_detected!("avx512vpopcntdq")
}
