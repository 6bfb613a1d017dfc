//! Layers, their layouts and networks.

use core::hint::black_box;

use tercet_core::linear::network::{LayerSize, Network};
use tercet_core::linear::{
    I8Sym, Layer, Layout, Matrix, Requantize, Rescale, Table, argmax, dense, matvec, pack, sums,
};
use tercet_core::scalar::Scalar;

use crate::reach::reach;

reach! {
    LayerSize::new,
    LayerSize::activations_len,
    LayerSize::scratch_len,
    LayerSize::fast_scratch_len,
    Network::<4>::new,
    Network::<4>::from_reader,
    Network::<4>::layers,
    Network::<4>::inputs,
    Network::<4>::outputs,
    Network::<4>::input_scale,
    Network::<4>::last_scale,
    Network::<4>::activations_len,
    Network::<4>::scratch_len,
    Network::<4>::fast_scratch_len,
    Network::<4>::quantize,
    Network::<4>::run::<Scalar>,
    Network::<4>::logit,
    Network::<4>::class,
    pack::five_trits,
    pack::int4,
    pack::int8_pairs,
    pack::ternary_lanes,
    pack::pack,
    Layer::new,
    Layer::with_bias,
    Layer::weights,
    Layer::bias,
    Layer::value,
    Layer::part,
    Layer::check,
    Layout::name,
    Layout::from_name,
    Layout::codes,
    Layout::set,
    Layout::bit,
    Layout::is_in,
    Layout::unit,
    Layout::group_rows,
    Layout::group_bytes,
    Layout::bytes,
    Layout::scratch_len,
    Layout::fast_scratch_len,
    Matrix::new,
    Matrix::with_scale,
    Matrix::with_row_scales,
    Matrix::layout,
    Matrix::rows,
    Matrix::cols,
    Matrix::bytes,
    Matrix::scratch_len,
    Matrix::fast_scratch_len,
    Matrix::scale,
    Matrix::part,
    argmax::<i64>,
    argmax::<f32>,
    dense,
    matvec,
    sums,
    Requantize::new,
    Requantize::from_scale,
    Requantize::multiplier,
    Requantize::shift,
    Requantize::apply,
    Rescale::one,
    Rescale::rows,
    Rescale::with_relu,
    Rescale::check,
    Rescale::part,
    Rescale::apply,
    I8Sym::new,
    I8Sym::get,
    I8Sym::len,
    I8Sym::is_empty,
    Table::len,
    Table::is_empty,
    Table::get,
    Table::get_f32,
    Table::part,
    each_layer,
}

fn each_layer(network: &Network<'_, 4>) {
    network.layers().for_each(|layer| {
        black_box(layer);
    });
}
