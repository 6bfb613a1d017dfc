//! Quantizers.

use core::hint::black_box;

use tercet_core::quant::activations::{self, Activations, Code};
use tercet_core::quant::adaptive::{Adaptive, Allocation, budget_bytes};
use tercet_core::quant::calibrate::calibrate;
use tercet_core::quant::fp8::Fp8;
use tercet_core::quant::{
    Applied, Codes, Comparison, Grid, Groups, HOST_BITS, Histogram, Method, Report, RowSums,
    SMALL_BITS, dequantize, int4, int8, quantize, quantize_in_order, ternary,
};
use tercet_core::scalar::Tensor;
use tercet_core::{bf16, f16};

use crate::reach::reach;

reach! {
    <i8 as Code>::of,
    <i16 as Code>::of,
    Activations::len,
    Activations::is_empty,
    activations::columns,
    activations::finite,
    activations::planes,
    activations::quantize,
    Adaptive::choose,
    Adaptive::bytes,
    Allocation::gap,
    budget_bytes,
    calibrate::<SMALL_BITS>,
    Fp8::max_code,
    Fp8::max,
    Fp8::nan_code,
    Fp8::encode,
    Fp8::decode,
    Fp8::scale,
    Fp8::quantize::<f32>,
    Fp8::dequantize,
    int4::symmetric::<Tensor<'static, f32>>,
    int4::dequantize,
    int8::symmetric::<Tensor<'static, f32>>,
    int8::affine::<Tensor<'static, f32>>,
    int8::fixed::<Tensor<'static, f32>>,
    int8::dequantize,
    ternary::Decision::code,
    ternary::code,
    ternary::decide::<f32>,
    ternary::plan,
    ternary::scratch_len,
    ternary::dequantize,
    Codes::check,
    Method::ternary,
    Method::scratch_len,
    Report::merge,
    dequantize,
    quantize::<Tensor<'static, f32>>,
    quantize_in_order::<Tensor<'static, f32>>,
    Grid::symmetric,
    Grid::affine,
    Grid::checked,
    Grid::apply::<f32>,
    Grid::code,
    Grid::value,
    Histogram::<SMALL_BITS>::new,
    Histogram::<SMALL_BITS>::push::<f32>,
    Histogram::<SMALL_BITS>::add_counts,
    Histogram::<SMALL_BITS>::merge,
    Histogram::<SMALL_BITS>::count,
    Histogram::<SMALL_BITS>::range,
    Histogram::<SMALL_BITS>::abs_max,
    Histogram::<SMALL_BITS>::iter,
    Histogram::<SMALL_BITS>::at_rank,
    Histogram::<SMALL_BITS>::upper_magnitude,
    Comparison::new,
    Comparison::count,
    Comparison::push::<f32, f32>,
    Comparison::push_rows => fn(&'static mut Comparison, usize, fn(&mut RowSums)) -> _,
    Comparison::append,
    Comparison::finish,
    <Comparison as Default>::default,
    Applied::merge,
    Groups::tensor,
    Groups::rows,
    Groups::blocks,
    Groups::values,
    Groups::check,
    each_bucket,
    calibrate::<HOST_BITS>,
    Histogram::<SMALL_BITS>::push::<f16>,
    ternary::decide::<bf16>,
    Fp8::quantize::<f16>,
    quantize::<Tensor<'static, f16>>,
    Comparison::push::<f16, bf16>,
}

fn each_bucket(histogram: &Histogram<'_, SMALL_BITS>) {
    histogram.iter().for_each(|bucket| {
        black_box(bucket);
    });
}
