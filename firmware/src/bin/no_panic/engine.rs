//! What engines share: results that merge, and the steps that traits provide.

use tercet_core::engine::{
    Assigned, ClusterProblem, Farthest, MagnitudeBin, MagnitudeSpan, QuantizeEngine,
    QuantizeProblem, SearchBase,
};
use tercet_core::quant::SMALL_BITS;
use tercet_core::scalar::{Base, Clusters, Scalar, Tensor};
use tercet_core::search::Int8Rows;

use crate::reach::reach;

reach! {
    Assigned::merge,
    <Clusters<'static, i32> as ClusterProblem>::assign_update,
    Farthest::before,
    MagnitudeBin::merge,
    MagnitudeSpan::bins,
    MagnitudeSpan::check,
    <Scalar as QuantizeEngine>::histogram::<f32, SMALL_BITS>,
    <Tensor<'static, f32> as QuantizeProblem>::quantize_groups,
    <Tensor<'static, f32> as QuantizeProblem>::finish,
    <Base<Int8Rows<'static>> as SearchBase>::is_empty,
}
