//! The reference engine, except clustering.

use tercet_core::arch::plain::{dot, linear, norm, ternary_dot};
use tercet_core::block::Format;
use tercet_core::engine::{
    BlockEngine, ClusterEngine, LinearEngine, PaletteEngine, QuantizeEngine, QuantizeProblem,
    SearchBase, SearchEngine,
};
use tercet_core::linear::{I8Sym, Matrix};
use tercet_core::scalar::{Base, Only, Scalar, Tensor, magnitudes, read_magnitudes, ternary};
use tercet_core::search::{Cosine, Dot, FloatRows, Int8Rows, SquaredL2, TernaryRows};
use tercet_core::{bf16, f16};

use crate::given::Seen;

use crate::reach::reach;

reach! {
    linear::blocks => fn(Format, &'static Matrix<'static>, I8Sym<'static>, &'static mut Seen),
    <Only<{ u32::MAX }> as QuantizeEngine>::tensor::<f32>,
    <Only<{ u32::MAX }> as LinearEngine>::sums,
    <Only<{ u32::MAX }> as LinearEngine>::matvec,
    <Only<{ u32::MAX }> as LinearEngine>::dense,
    <Only<{ u32::MAX }> as LinearEngine>::dense_many,
    <Only<{ u32::MAX }> as LinearEngine>::sums_many,
    <Only<{ u32::MAX }> as LinearEngine>::matmat,
    <Only<{ u32::MAX }> as LinearEngine>::matmat_each::<2>,
    linear::five_trits => fn(&'static Matrix<'static>, I8Sym<'static>, &'static mut Seen),
    linear::int4 => fn(&'static Matrix<'static>, I8Sym<'static>, &'static mut Seen),
    linear::int8 => fn(&'static Matrix<'static>, I8Sym<'static>, &'static mut Seen),
    linear::int8_pairs => fn(&'static Matrix<'static>, I8Sym<'static>, &'static mut Seen),
    linear::ternary_lanes => fn(&'static Matrix<'static>, I8Sym<'static>, &'static mut Seen),
    linear::sums => fn(&'static Matrix<'static>, I8Sym<'static>, &'static mut Seen),
    linear::for_each_sum => fn(&'static Matrix<'static>, I8Sym<'static>, fn(usize, i64)),
    dot,
    norm,
    ternary_dot,
    <Scalar as QuantizeEngine>::tensor::<f32>,
    <Scalar as BlockEngine>::encode_blocks::<f32>,
    <Scalar as BlockEngine>::decode_blocks,
    <Scalar as BlockEngine>::dot_blocks,
    <Scalar as ClusterEngine>::clusters,
    <Scalar as LinearEngine>::sums,
    <Scalar as LinearEngine>::matvec,
    <Scalar as LinearEngine>::dense,
    <Scalar as LinearEngine>::dense_many,
    <Scalar as LinearEngine>::sums_many,
    <Scalar as LinearEngine>::matmat,
    <Scalar as LinearEngine>::matmat_each::<2>,
    <Scalar as PaletteEngine>::encode_palette::<f32>,
    <Scalar as PaletteEngine>::decode_palette,
    <Scalar as PaletteEngine>::multiply_palette,
    <Scalar as SearchEngine>::base::<Int8Rows<'static>>,
    magnitudes::<f32>,
    read_magnitudes::<f32>,
    Base::<Int8Rows<'static>>::new,
    <Base<Int8Rows<'static>> as SearchBase>::len,
    <Base<Int8Rows<'static>> as SearchBase>::dim,
    <Base<Int8Rows<'static>> as SearchBase>::top_k::<Cosine>,
    <Base<Int8Rows<'static>> as SearchBase>::top_k_all::<Cosine>,
    <Base<Int8Rows<'static>> as SearchBase>::range::<Cosine>,
    Tensor::<f32>::new,
    <Tensor<f32> as QuantizeProblem>::groups,
    <Tensor<f32> as QuantizeProblem>::stats,
    <Tensor<f32> as QuantizeProblem>::extremes,
    <Tensor<f32> as QuantizeProblem>::read_magnitudes,
    <Tensor<f32> as QuantizeProblem>::magnitudes,
    <Tensor<f32> as QuantizeProblem>::apply,
    <Tensor<f32> as QuantizeProblem>::set_scale,
    ternary::<f32>,
    <Base<Int8Rows<'static>> as SearchBase>::top_k::<Dot>,
    <Base<Int8Rows<'static>> as SearchBase>::top_k::<SquaredL2>,
    <Base<TernaryRows<'static>> as SearchBase>::top_k::<Cosine>,
    <Base<TernaryRows<'static>> as SearchBase>::range::<SquaredL2>,
    <Base<FloatRows<'static, f32>> as SearchBase>::top_k::<Cosine>,
    <Base<FloatRows<'static, f16>> as SearchBase>::top_k::<SquaredL2>,
    <Scalar as QuantizeEngine>::tensor::<f16>,
    magnitudes::<bf16>,
}
