//! Converts the sums of a layer's rows to its outputs, a few rows at a time.
//!
//! Each [`Sums`] here advances through the outputs, biases and scales with the rows that it gets.

use core::mem;
use core::slice::IterMut;

use half::f16;

use super::layer::{Biases, shifted};
use super::matrix::Scales;
use super::requantize::RowScales;
use super::{Layer, Requantize, Rescale, Sums};
use crate::arch::portable::fixed;
use crate::number::round::nearest_f32;

/// Receivers of an engine's sums that write a layer's outputs. The rows must come in order, from the first on, and
/// there must be one output per row. Outputs without a sum stay unchanged.
impl<'a> Layer<'a> {
    /// Returns a receiver that writes the outputs of [`super::sums`].
    #[inline]
    pub fn exact(&self, out: &'a mut [i64]) -> impl Sums + use<'a> {
        Exact::new(self, out)
    }

    /// Returns a receiver that writes the outputs of [`super::matvec`].
    #[inline]
    pub fn scaled(&self, x_scale: f32, out: &'a mut [f32]) -> impl Sums + use<'a> {
        Scaled::new(self, x_scale, out)
    }

    /// Returns a receiver that writes the outputs of [`super::dense`].
    #[inline]
    pub fn rounded(&self, rescale: &Rescale<'a>, out: &'a mut [i8]) -> impl Sums + use<'a> {
        Rounded::new(self, rescale, out)
    }
}

/// Removes the outputs of the next rows, at most `rows`, from the front.
#[inline]
fn next<'a, T>(out: &mut &'a mut [T], rows: usize) -> &'a mut [T] {
    let all = mem::take(out);
    let rows = rows.min(all.len());
    let (next, rest) = all.split_at_mut(rows);
    *out = rest;
    next
}

/// Writes the sums themselves, plus the bias.
pub(super) struct Exact<'a> {
    biases: Biases<'a>,
    out: IterMut<'a, i64>,
}

impl<'a> Exact<'a> {
    pub(super) fn new(layer: &Layer<'a>, out: &'a mut [i64]) -> Self {
        Self {
            biases: layer.biases(0),
            out: out.iter_mut(),
        }
    }
}

impl Sums for Exact<'_> {
    fn narrow(&mut self, sums: &[i32]) {
        for (&sum, out) in sums.iter().zip(&mut self.out) {
            *out = i64::from(sum) + self.biases.next();
        }
    }

    fn wide(&mut self, sums: &[i64]) {
        for (&sum, out) in sums.iter().zip(&mut self.out) {
            *out = sum + self.biases.next();
        }
    }
}

/// Writes the sums times two scales.
pub(super) struct Scaled<'a> {
    scales: Scales<'a>,
    unit: f32,
    x_scale: f32,
    biases: Biases<'a>,
    row: usize,
    out: &'a mut [f32],
}

impl<'a> Scaled<'a> {
    pub(super) fn new(layer: &Layer<'a>, x_scale: f32, out: &'a mut [f32]) -> Self {
        Self {
            scales: layer.weights().scales(),
            unit: layer.weights().layout().unit(),
            x_scale,
            biases: layer.biases(0),
            row: 0,
            out,
        }
    }

    /// Returns the outputs of the next rows, at most `rows`.
    #[inline]
    fn next(&mut self, rows: usize) -> &'a mut [f32] {
        next(&mut self.out, rows)
    }

    #[inline]
    fn finish(&mut self, sums: impl ExactSizeIterator<Item = i64>) {
        for (out, sum) in self.next(sums.len()).iter_mut().zip(sums) {
            // The conversion rounds; the unit is a power of two.
            let sum = nearest_f32(sum + self.biases.next()) * self.unit;
            *out = sum * self.scales.of(self.row) * self.x_scale;
            self.row += 1;
        }
    }
}

/// Most layers have one scale and no bias. They get their own loops, which use vectors if the machine has them.
impl Sums for Scaled<'_> {
    fn narrow(&mut self, sums: &[i32]) {
        let (Some(scale), true) = (self.scales.one(), self.biases.are_none()) else {
            return self.finish(sums.iter().map(|&sum| i64::from(sum)));
        };
        let x_scale = self.x_scale;
        for (out, &sum) in self.next(sums.len()).iter_mut().zip(sums) {
            *out = sum as f32 * scale * x_scale;
        }
    }

    fn wide(&mut self, sums: &[i64]) {
        let factor = factor(self.unit, &self.scales, self.x_scale);
        let (Some(factor), true) = (factor, self.biases.are_none()) else {
            return self.finish(sums.iter().copied());
        };
        for (out, &sum) in self.next(sums.len()).iter_mut().zip(sums) {
            *out = nearest_f32(sum) * factor;
        }
    }

    /// An 11-bit scale times a sum of at most 2²⁰ fits 32 bits. The rest of the scale is a power of two, which is
    /// exact before and after rounding.
    fn by_scale(&mut self, sums: impl ExactSizeIterator<Item = i32>, (scale, most): (f16, u32)) {
        let scale = fixed(scale.to_bits());
        let shift = scale.trailing_zeros().min(62);
        let mantissa = (scale >> shift) as i32;
        let unit = self.unit * f32::from_bits((127 + shift) << 23);
        let factor = factor(unit, &self.scales, self.x_scale);
        let fits = most <= 1 << 20 && self.biases.are_none();
        let (Some(factor), true) = (factor, fits) else {
            return self.finish(sums.map(|sum| i64::from(sum).wrapping_mul(scale)));
        };
        for (out, sum) in self.next(sums.len()).iter_mut().zip(sums) {
            *out = sum.wrapping_mul(mantissa) as f32 * factor;
        }
    }

    /// A sum of at most 2²⁴ is an f32, and so is a scale: their product is rounded once, and never subnormal.
    fn by_scales(&mut self, sums: &[(i32, f16)]) {
        const MOST: u32 = 1 << 24;
        let fits = sums.iter().all(|(sum, _)| sum.unsigned_abs() <= MOST);
        if !fits || !self.biases.are_none() || self.scales.one() != Some(1.0) {
            let wide =
                |&(sum, scale): &(i32, f16)| i64::from(sum).wrapping_mul(fixed(scale.to_bits()));
            return self.finish(sums.iter().map(wide));
        }
        let x_scale = self.x_scale;
        for (out, &(sum, scale)) in self.next(sums.len()).iter_mut().zip(sums) {
            *out = sum as f32 * widened(scale) * x_scale;
        }
    }
}

/// Returns a finite f16 as f32: its exponent and mantissa in their places, times 2¹¹² for what the exponents' zeros differ
/// by.
#[inline]
fn widened(value: f16) -> f32 {
    let bits = u32::from(value.to_bits());
    let magnitude = f32::from_bits((bits & 0x7FFF) << 13 | (bits & 0x8000) << 16);
    magnitude * f32::from_bits((127 + 112) << 23)
}

/// Returns the factor for rounded sums that replaces a unit, a scale of 1 and the activations' scale. A unit is a
/// power of two and rounds nothing. So there is only one rounding if the product of both is exact, which it is unless
/// it is subnormal.
#[inline]
fn factor(unit: f32, scales: &Scales<'_>, x_scale: f32) -> Option<f32> {
    let factor = unit * x_scale;
    let exact = factor.is_normal() || x_scale == 0.0;
    (exact && scales.one() == Some(1.0)).then_some(factor)
}

/// Writes the sums rounded to int8.
pub(super) struct Rounded<'a> {
    biases: Biases<'a>,
    scales: RowScales<'a>,
    lowest: i8,
    out: &'a mut [i8],
}

impl<'a> Rounded<'a> {
    pub(super) fn new(layer: &Layer<'a>, rescale: &Rescale<'a>, out: &'a mut [i8]) -> Self {
        Self {
            biases: layer.biases(0),
            scales: rescale.scales(0),
            lowest: rescale.lowest(),
            out,
        }
    }

    /// Returns the outputs of the next rows, at most `rows`.
    #[inline]
    fn next(&mut self, rows: usize) -> &'a mut [i8] {
        next(&mut self.out, rows)
    }

    #[inline]
    fn finish(&mut self, sums: impl ExactSizeIterator<Item = i64>) {
        for (out, sum) in self.next(sums.len()).iter_mut().zip(sums) {
            let rounded = self.scales.next().apply(sum + self.biases.next());
            *out = rounded.max(self.lowest);
        }
    }
}

/// Most layers have one scale and biases as words. They take a third of the instructions of the general case.
impl Sums for Rounded<'_> {
    fn narrow(&mut self, sums: &[i32]) {
        let scale = self.scales.one().and_then(Requantize::narrow);
        let (Some(scale), 0) = (scale, self.biases.shift()) else {
            return self.finish(sums.iter().map(|&sum| i64::from(sum)));
        };
        let Some(biases) = self.biases.words(sums.len()) else {
            return self.finish(sums.iter().map(|&sum| i64::from(sum)));
        };
        let lowest = self.lowest;
        for ((out, &sum), &bias) in self.next(sums.len()).iter_mut().zip(sums).zip(biases) {
            let rounded = match sum.checked_add(bias) {
                Some(sum) => scale.apply(sum),
                None => scale.widen().apply(i64::from(sum) + i64::from(bias)),
            };
            *out = rounded.max(lowest);
        }
    }

    fn wide(&mut self, sums: &[i64]) {
        let Some(scale) = self.scales.one().and_then(Requantize::wide) else {
            return self.finish(sums.iter().copied());
        };
        let shift = self.biases.shift();
        let Some(biases) = self.biases.words(sums.len()) else {
            return self.finish(sums.iter().copied());
        };
        let lowest = self.lowest;
        for ((out, &sum), &bias) in self.next(sums.len()).iter_mut().zip(sums).zip(biases) {
            *out = scale.apply(sum + shifted(bias, shift)).max(lowest);
        }
    }
}
