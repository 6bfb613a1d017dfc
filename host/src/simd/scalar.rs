//! No instruction set: core's loops, and a few plain ones, compiled for the target's baseline.

use super::sets::{Kernels, Set};
use super::{Isa, cluster, float_search, linear, model, peak, quantize, search, stream, train};

/// The set.
pub(in crate::simd) static SET: Set = Set {
    isa: Isa::Scalar,
    runs: || true,
    kernels: Kernels {
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
    },
};
