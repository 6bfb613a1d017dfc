//! Code that engines share: results that merge, and the steps that traits provide.

use tercet_core::block::BlockError;
use tercet_core::cluster::ClusterError;
use tercet_core::engine::{
    Assigned, BlockEngine, BufferLengths, ClusterEngine, ClusterProblem, Farthest, LinearEngine,
    MagnitudeBin, MagnitudeSpan, PaletteEngine, QuantizeEngine, QuantizeProblem, Refused,
    SearchBase,
};
use tercet_core::linear::LinearError;
use tercet_core::palette::PaletteError;
use tercet_core::quant::{QuantError, SMALL_BITS};
use tercet_core::scalar::{Base, Clusters, Scalar, Tensor};
use tercet_core::search::{Int8Rows, SearchError};

use crate::reach::reach;

reach! {
    Assigned::merge,
    BufferLengths::of,
    BufferLengths::of_labels,
    BufferLengths::bytes,
    <Clusters<'static, i32> as ClusterProblem>::assign_update,
    Farthest::before,
    MagnitudeBin::merge,
    MagnitudeSpan::bins,
    MagnitudeSpan::check,
    <Refused as From<QuantError>>::from,
    <Refused as From<BlockError>>::from,
    <Refused as From<ClusterError>>::from,
    <Refused as From<SearchError>>::from,
    <Refused as From<PaletteError>>::from,
    <Refused as From<LinearError>>::from,
    <Scalar as QuantizeEngine>::histogram::<f32, SMALL_BITS>,
    <Scalar as QuantizeEngine>::dequantize,
    <Scalar as QuantizeEngine>::quantize_fp8::<f32>,
    <Scalar as QuantizeEngine>::dequantize_fp8,
    <Scalar as QuantizeEngine>::norm_quantize,
    <Scalar as QuantizeEngine>::compare::<f32, f32>,
    <Scalar as BlockEngine>::decode_i2_s,
    <Scalar as BlockEngine>::decode_bitnet_hf,
    <Scalar as BlockEngine>::encode_bitnet_hf::<f32>,
    <Scalar as ClusterEngine>::needs_buffers,
    <Scalar as ClusterEngine>::nearest,
    <Scalar as PaletteEngine>::palette_scratch_len,
    <Scalar as LinearEngine>::product_scratch_len,
    <Tensor<'static, f32> as QuantizeProblem>::quantize_groups,
    <Tensor<'static, f32> as QuantizeProblem>::finish,
    <Base<Int8Rows<'static>> as SearchBase>::is_empty,
}
