//! Layers, their layouts and networks.

use core::hint::black_box;
use core::iter::Copied;
use core::slice::Iter;

use tercet_core::f16;
use tercet_core::linear::network::{LayerSize, Network};
use tercet_core::linear::{
    I8Sym, Layer, Layout, LinearError, Matrix, Requantize, Rescale, Sums, Table, argmax, dense,
    matvec, pack, row_sums, sums,
};
use tercet_core::scalar::Scalar;

use crate::given::Seen;
use crate::reach::reach;

type Codes = Copied<Iter<'static, i32>>;

reach! {
    LayerSize::new,
    LayerSize::activations_len,
    LayerSize::bytes,
    LayerSize::activations_len_many,
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
    Network::<4>::activations_len_many,
    Network::<4>::scratch_len,
    Network::<4>::fast_scratch_len,
    Network::<4>::scratch_len_on::<Scalar>,
    Network::<4>::quantize,
    Network::<4>::run::<Scalar>,
    Network::<4>::run_many::<Scalar>,
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
    Layer::check_many,
    Layer::exact,
    Layer::scaled,
    Layer::rounded,
    Layout::name,
    Layout::from_name,
    Layout::codes,
    Layout::can_encode,
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
    Matrix::check_wide,
    argmax::<i64>,
    argmax::<f32>,
    dense,
    matvec,
    row_sums => fn(&'static Matrix<'static>, I8Sym<'static>, &'static mut [u32], &'static mut Seen) -> Result<(), LinearError>,
    sums,
    <&'static mut Seen as Sums>::narrow,
    <&'static mut Seen as Sums>::wide,
    <&'static mut Seen as Sums>::by_scale => fn(&'static mut &'static mut Seen, Codes, (f16, u32)),
    <Seen as Sums>::by_scale => fn(&'static mut Seen, Codes, (f16, u32)),
    <&'static mut Seen as Sums>::by_scales,
    <Seen as Sums>::by_scales,
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
    I8Sym::rows,
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
