//! Palettes.

use core::hint::black_box;

use tercet_core::f16;
use tercet_core::palette::{
    Coder, Counts, Encoded, IndexMatrix, Output, Palette, Width, check, decode, decode_row, dot,
    encode, grid, matvec, optimal_1d, scratch_len,
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
    IndexMatrix::new,
    IndexMatrix::with_rows,
    IndexMatrix::width,
    IndexMatrix::rows,
    IndexMatrix::cols,
    IndexMatrix::groups,
    IndexMatrix::group_rows,
    IndexMatrix::group_len,
    IndexMatrix::values,
    IndexMatrix::row_bytes,
    IndexMatrix::index_bytes,
    IndexMatrix::codebook_len,
    IndexMatrix::scratch_len,
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
