//! The functions that quantizers need from an instruction set, and the plain loops.

use tercet_core::engine::{MagnitudeBin, MagnitudeSpan};
use tercet_core::number::{Element, Stats, bits};
use tercet_core::quant::activations::{self, Norm};
use tercet_core::quant::fp8::Fp8;
use tercet_core::quant::{Applied, Grid, QuantError};
use tercet_core::{bf16, f16, scalar};

use super::two_bits;
use crate::simd::counts::{TABLES, Tables};
use crate::simd::stores::Line;
use crate::simd::{Ahead, Stores, magnitudes};

/// The quantizer functions of one instruction set.
///
/// The functions may use that set, so they are called through the safe methods, which a
/// [`Backend`](crate::simd::Backend) gives access to.
#[derive(Debug)]
pub(in crate::simd) struct Quantize {
    pub(in crate::simd) f32: Floats<f32>,
    pub(in crate::simd) f16: Floats<f16>,
    pub(in crate::simd) bf16: Floats<bf16>,
    pub(in crate::simd) stream: unsafe fn(&[Line], &mut [Line]),
    pub(in crate::simd) dequantize: unsafe fn(&[i8], i8, f32, &mut [f32], Stores),
    pub(in crate::simd) dequantize_fp8: unsafe fn(Fp8, f32, &[u8], &mut [f32]),
    pub(in crate::simd) decode_row: unsafe fn(&[u8], u32, f32, &mut [f32]),
    pub(in crate::simd) decode_groups: unsafe fn(usize, &[u8], f32, &mut [f32]),
    pub(in crate::simd) has_three: unsafe fn(&[u8], u8) -> bool,
    pub(in crate::simd) norm_a8: NormRow<i8>,
    pub(in crate::simd) norm_a16: NormRow<i16>,
    pub(in crate::simd) widen_f16: unsafe fn(&[f16], &mut [f32]),
    pub(in crate::simd) widen_bf16: unsafe fn(&[bf16], &mut [f32]),
}

/// The kernels that read values of a type.
#[derive(Debug)]
pub(in crate::simd) struct Floats<T> {
    pub(in crate::simd) stats: unsafe fn(&[T], Ahead) -> Stats,
    pub(in crate::simd) extremes: unsafe fn(&[T], Ahead) -> Stats,
    pub(in crate::simd) ternary: Ternary<T>,
    pub(in crate::simd) affine: Affine<T>,
    pub(in crate::simd) affine_and_next: AffineAndNext<T>,
    pub(in crate::simd) magnitudes: unsafe fn(&[T], MagnitudeSpan, &mut [MagnitudeBin]),
    pub(in crate::simd) read_magnitudes: unsafe fn(&[T], &mut [u32]),
    pub(in crate::simd) count: unsafe fn(&[T], &mut Tables),
    pub(in crate::simd) pack_rows: unsafe fn([&[T]; 4], u32, &mut [u8]),
    pub(in crate::simd) fp8: Float8<T>,
}

/// Does [`activations::row`].
type NormRow<C> = unsafe fn(&[f32], Option<Norm<'_>>, &mut [C]) -> f32;
type Float8<T> = unsafe fn(Fp8, f32, &[T], &mut [u8], Stores, Ahead) -> bool;
type Ternary<T> =
    unsafe fn(&[T], u32, bool, &mut [i8], Stores, Ahead) -> Result<Applied, QuantError>;
type AffineAndNext<T> = unsafe fn(&[T], &Grid, &mut [i8], &[T], Ahead) -> Option<(Applied, Stats)>;
type Affine<T> = unsafe fn(&[T], &Grid, &mut [i8], Stores, Ahead) -> Result<Applied, QuantError>;

pub(in crate::simd) const SCALAR: Quantize = Quantize {
    f32: scalar_floats(),
    f16: scalar_floats(),
    bf16: scalar_floats(),
    stream: |from, to| to.copy_from_slice(from),
    dequantize: |codes, zero_point, scale, out, _| {
        for (code, value) in codes.iter().zip(out) {
            *value = (i32::from(*code) - i32::from(zero_point)) as f32 * scale;
        }
    },
    dequantize_fp8: |format, scale, codes, out| {
        for (&code, value) in codes.iter().zip(out) {
            *value = format.decode(code) * scale;
        }
    },
    decode_row: two_bits::one_by_one,
    decode_groups: |lane, bytes, unit, out| {
        let groups = bytes.chunks_exact(lane).zip(out.chunks_exact_mut(4 * lane));
        for (bytes, out) in groups {
            for (out, shift) in out.chunks_exact_mut(lane).zip(two_bits::GROUP_SHIFTS) {
                two_bits::one_by_one(bytes, shift, unit, out);
            }
        }
    },
    has_three: two_bits::has_three,
    norm_a8: activations::row,
    norm_a16: activations::row,
    widen_f16: widen,
    widen_bf16: widen,
};

const fn scalar_floats<T: Element>() -> Floats<T> {
    Floats {
        stats: |values, _| Stats::of(values),
        extremes: |values, _| Stats::extremes_of(values),
        ternary: |values, threshold, sum, codes, _, _| {
            scalar::ternary(values, threshold, sum, codes)
        },
        affine: |values, grid, codes, _, _| grid.apply(values, codes),
        affine_and_next: |_, _, _, _, _| None,
        magnitudes: |values, span, bins| magnitudes::count(values, span, bins),
        read_magnitudes: |values, out| magnitudes::read(values, out),
        count: |values, tables| {
            for values in values.chunks(TABLES) {
                for (value, table) in values.iter().zip(&mut *tables) {
                    table[(bits::ordered(value.to_f32()) >> 16) as usize] += 1;
                }
            }
        },
        pack_rows: |rows, threshold, out| {
            for (at, byte) in out.iter_mut().enumerate() {
                *byte = two_bits::pack_one(rows.map(|row| row[at]), threshold);
            }
        },
        fp8: |format, scale, values, codes, _, _| format.quantize(scale, values, codes).is_ok(),
    }
}

/// Widens values to a slice of equal length.
pub(super) fn widen<T: Element>(values: &[T], out: &mut [f32]) {
    for (value, out) in values.iter().zip(out) {
        *out = value.to_f32();
    }
}
