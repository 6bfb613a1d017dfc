//! Kernels for AVX-512 (F, BW, CD, DQ, VL).

#[path = "blocks/avx512/mod.rs"]
pub(in crate::simd) mod blocks;
#[path = "cluster/avx512.rs"]
pub(in crate::simd) mod cluster;
#[path = "compare/avx512.rs"]
pub(in crate::simd) mod compare;
#[path = "float_search/avx512.rs"]
pub(in crate::simd) mod float_search;
#[path = "linear/avx512/mod.rs"]
pub(in crate::simd) mod linear;
#[path = "search/many/avx512.rs"]
pub(in crate::simd) mod many_search;
#[path = "peak/avx512.rs"]
pub(in crate::simd) mod peak;
#[path = "quantize/avx512.rs"]
pub(in crate::simd) mod quantize;
#[path = "search/avx512.rs"]
pub(in crate::simd) mod search;
#[path = "stream/avx512.rs"]
pub(in crate::simd) mod stream;
#[path = "vectors/avx512.rs"]
pub(in crate::simd) mod vectors;
#[path = "quantize/widen/avx512.rs"]
pub(in crate::simd) mod widen;

use super::Isa;
use super::sets::Kernels;

/// Its kernels.
pub(in crate::simd) const KERNELS: Kernels = Kernels {
    isa: Isa::Avx512,
    runs,
    blocks: Some(&blocks::KERNELS),
    cluster: &cluster::KERNELS,
    compare: Some(compare::rows),
    float_search: &float_search::KERNELS,
    linear: &linear::KERNELS,
    model: &super::model::AVX512,
    train: &super::train::AVX512,
    peak: &peak::KERNELS,
    quantize: &quantize::KERNELS,
    search: &search::KERNELS,
    stream: &stream::KERNELS,
    ..super::avx2::KERNELS
};

/// Returns true if this processor and its system support the set.
pub(in crate::simd) fn runs() -> bool {
    super::avx2::runs()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}
