//! Kernels for AVX2 (with BMI, F16C, FMA, LZCNT and POPCNT).

#[path = "blocks/avx2/mod.rs"]
pub(in crate::simd) mod blocks;
#[path = "cluster/avx2.rs"]
pub(in crate::simd) mod cluster;
#[path = "compare/avx2.rs"]
pub(in crate::simd) mod compare;
#[path = "float_search/avx2.rs"]
pub(in crate::simd) mod float_search;
#[path = "linear/avx2/mod.rs"]
pub(in crate::simd) mod linear;
#[path = "search/many/avx2.rs"]
pub(in crate::simd) mod many_search;
#[path = "palette/avx2.rs"]
pub(in crate::simd) mod palette;
#[path = "peak/avx2.rs"]
pub(in crate::simd) mod peak;
#[path = "quantize/avx2.rs"]
pub(in crate::simd) mod quantize;
#[path = "search/avx2.rs"]
pub(in crate::simd) mod search;
#[path = "stream/avx2.rs"]
pub(in crate::simd) mod stream;
#[path = "search/ternary/avx2.rs"]
pub(in crate::simd) mod ternary_search;
#[path = "vectors/avx2.rs"]
pub(in crate::simd) mod vectors;
#[path = "quantize/widen/avx2.rs"]
pub(in crate::simd) mod widen;

use super::Isa;
use super::sets::Kernels;

/// Its kernels.
pub(in crate::simd) const KERNELS: Kernels = Kernels {
    isa: Isa::Avx2,
    runs,
    blocks: Some(&blocks::KERNELS),
    cluster: &cluster::KERNELS,
    compare: Some(compare::rows),
    float_search: &float_search::KERNELS,
    linear: &linear::KERNELS,
    model: &super::model::AVX2,
    train: &super::train::AVX2,
    palettes: Some(&palette::KERNELS),
    peak: &peak::KERNELS,
    quantize: &quantize::KERNELS,
    search: &search::KERNELS,
    stream: &stream::KERNELS,
};

/// Returns true if this processor and its system support the set.
pub(in crate::simd) fn runs() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}
