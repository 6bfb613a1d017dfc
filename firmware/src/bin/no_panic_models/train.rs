//! Training: its steps, its driver and its updates.

use tercet_core::engine::TrainEngine;
use tercet_core::model::attention::PlainProducts;
use tercet_core::number::root::sqrt_f32;
use tercet_core::scalar::Scalar;
use tercet_core::train::{
    Activations, AdamW, AttentionGradient, AttentionLengths, Fall, Inputs, LeanBlock, Needs,
    Parameter, Schedule, Shapes, SoftTargets, Tensor, Update, accumulate, code, exponent,
    factor_mean, factored, fixed, gate, gradient, gradients, lean_codes, lean_weights, loss, norm,
    power_row, power_row_wide, quantize, row_codes, soften, squares, ternary, transpose, unit,
};

use crate::reach::reach;

reach! {
    <Scalar as TrainEngine>::attention_gradient,
    <Scalar as TrainEngine>::gate_gradient,
    <Scalar as TrainEngine>::norm_gradient,
    <Scalar as TrainEngine>::power_planes,
    <Scalar as TrainEngine>::power_rows,
    <Scalar as TrainEngine>::weight_gradient,
    Activations::name,
    AdamW::clip,
    AdamW::column_factors,
    AdamW::row_factor,
    each_update,
    AttentionGradient::head_by::<PlainProducts>,
    AttentionGradient::sequences,
    AttentionLengths::of,
    Fall::name,
    Inputs::cols,
    Inputs::group_count,
    Inputs::groups => fn(&'static Inputs<'static>) -> _,
    each_group,
    each_lean_update,
    Needs::of::<Scalar>,
    Needs::total_bytes,
    Parameter::is_gains,
    Parameter::is_ternary,
    Parameter::name,
    Schedule::at,
    Schedule::decays,
    Shapes::count,
    Shapes::iter => fn(&'static Shapes<'static>) -> _,
    each_tensor,
    Shapes::new,
    Shapes::number,
    Shapes::tensor,
    Shapes::values,
    SoftTargets::loss,
    SoftTargets::new,
    Tensor::is_empty,
    Tensor::len,
    Tensor::of::<u8>,
    Tensor::of_mut::<u8>,
    accumulate,
    code,
    exponent,
    factor_mean,
    factored,
    fixed,
    gate,
    gradient,
    gradients::<Scalar, [i64]>,
    lean_codes,
    lean_weights,
    loss,
    norm,
    power_row,
    power_row_wide,
    quantize,
    row_codes,
    soften,
    squares,
    ternary,
    transpose,
    unit,
}

fn each_group(inputs: &Inputs<'_>) {
    inputs.groups().for_each(|group| {
        core::hint::black_box(group);
    });
}

fn each_tensor(shapes: &Shapes<'_>) {
    shapes.iter().for_each(|tensor| {
        core::hint::black_box(tensor);
    });
}

/// The type of its root cannot be written out.
fn each_update(
    adamw: &AdamW,
    update: &Update,
    (sums, weights): (&[i64], &mut [f32]),
    moments: (&mut [f32], &mut [f32]),
) {
    adamw.update(sqrt_f32, update, (sums, 1.0), true, weights, moments);
}

fn each_lean_update(
    adamw: &AdamW,
    update: &Update,
    sums: &[i64],
    block: LeanBlock<'_>,
    draws: fn(usize) -> [u32; 4],
) {
    adamw.update_lean(sqrt_f32, update, (sums, 1.0), true, block, draws);
}
