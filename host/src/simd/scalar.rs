//! No instruction set: core's loops, and a few plain ones, compiled for the target's baseline.

use super::sets::Kernels;
use super::{Isa, cluster, float_search, linear, model, peak, quantize, search, stream, train};

/// Its kernels.
pub(in crate::simd) const KERNELS: Kernels = Kernels {
    isa: Isa::Scalar,
    runs: || true,
    blocks: None,
    cluster: &cluster::SCALAR,
    compare: None,
    float_search: &float_search::SCALAR,
    linear: &linear::SCALAR,
    model: &model::SCALAR,
    train: &train::SCALAR,
    palettes: None,
    peak: &peak::SCALAR,
    quantize: &quantize::SCALAR,
    search: &search::SCALAR,
    stream: &stream::SCALAR,
};
