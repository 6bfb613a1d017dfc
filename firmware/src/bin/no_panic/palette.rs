//! Palettes.

use core::hint::black_box;

use tercet_core::f16;
use tercet_core::palette::{
    Coder, Counts, Encoded, Layout, Output, Palette, Width, check, decode, decode_row, dot, encode,
    grid, matvec, optimal_1d, scratch_len,
};

use crate::reach::reach;

reach! {
    Coder::new,
    Coder::encode::<f32>,
    Coder::width,
    Coder::indices,
    Coder::pack,
    Counts::of,
    Counts::add::<f32>,
    Counts::add_codes,
    Counts::merge,
    Counts::is_empty,
    Counts::choose,
    Palette::check,
    Palette::row,
    Palette::rows,
    decode,
    decode_row,
    dot,
    matvec,
    Encoded::merge,
    Output::check,
    check::<f32>,
    encode::<f32>,
    grid,
    Layout::new,
    Layout::with_rows,
    Layout::width,
    Layout::rows,
    Layout::cols,
    Layout::groups,
    Layout::group_rows,
    Layout::group_len,
    Layout::values,
    Layout::row_bytes,
    Layout::index_bytes,
    Layout::codebook_len,
    Layout::scratch_len,
    Width::new,
    Width::bits,
    Width::entries,
    Width::bytes,
    optimal_1d,
    scratch_len,
    encode::<f16>,
    each_row,
}

fn each_row(palette: &Palette<'_>) {
    palette.rows().for_each(|row| {
        black_box(row);
    });
}
