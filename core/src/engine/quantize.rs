//! The engine traits for quantizing, restoring and comparing tensors.

use core::ops::RangeInclusive;

use crate::number::bits::INFINITE;
use crate::number::{Element, Stats};
use crate::quant::activations::{self, Activations, Norm};
use crate::quant::fp8::Fp8;
use crate::quant::{
    Applied, Codes, Comparison, Groups, Histogram, Method, Plan, QuantError, Report, dequantize,
    quantize_in_order,
};

/// Destination of a quantized tensor: the caller's slices.
#[derive(Debug)]
pub struct Output<'a> {
    /// One code per value.
    pub codes: &'a mut [i8],
    /// One scale per group.
    pub scales: &'a mut [f32],
    /// One zero point per group; empty if the method has none.
    pub zero_points: &'a mut [i8],
}

/// An engine that quantizes tensors.
pub trait QuantizeEngine {
    /// The engine's error; quantizer errors convert into it.
    type Error: From<QuantError> + core::fmt::Display;

    /// The engine's representation of one tensor.
    type Tensor<'a, T: Element>: QuantizeProblem<Error = Self::Error>
    where
        Self: 'a;

    /// Creates a problem from a tensor, row-major in groups; the lengths of `out` must fit. A driver such as
    /// [`crate::quant::quantize`] then runs over it, and [`QuantizeProblem::finish`] writes the result to `out`.
    fn tensor<'a, T: Element>(
        &'a mut self,
        values: &'a [T],
        groups: Groups,
        out: Output<'a>,
    ) -> Result<Self::Tensor<'a, T>, Self::Error>;

    /// Counts the next values of a stream. The default implementation is [`Histogram::push`].
    ///
    /// O(n), plus O(2^B) for an engine with its own counters.
    ///
    /// ```
    /// use tercet_core::engine::QuantizeEngine;
    /// use tercet_core::quant::{Histogram, SMALL_BITS};
    /// use tercet_core::scalar::Scalar;
    ///
    /// let mut buckets = [0; Histogram::<SMALL_BITS>::BUCKETS];
    /// let mut histogram = Histogram::<SMALL_BITS>::new(&mut buckets)?;
    /// Scalar.histogram(&[0.5_f32, -2.0, 1.25], &mut histogram)?;
    /// assert_eq!(histogram.range(), Some((-2.0, 1.25)));
    /// # Ok::<(), tercet_core::quant::QuantError>(())
    /// ```
    ///
    /// [`QuantError::NotFinite`] at the first NaN or infinity, with its index in the whole stream; the values before
    /// it are counted. The engine's own errors leave the histogram unchanged.
    fn histogram<T: Element, const B: u32>(
        &mut self,
        values: &[T],
        histogram: &mut Histogram<'_, B>,
    ) -> Result<(), Self::Error> {
        Ok(histogram.push(values)?)
    }

    /// Writes `fl((code − zero_point) · scale)` for codes of a range. The default implementation is [`dequantize`].
    /// O(n).
    ///
    /// # Errors
    /// Those of [`dequantize`], with the lowest index of a code outside the range; those of the engine. The content
    /// of `out` is unspecified then.
    fn dequantize(
        &mut self,
        codes: Codes<'_>,
        range: RangeInclusive<i8>,
        out: &mut [f32],
    ) -> Result<(), Self::Error> {
        Ok(dequantize(codes, range, out)?)
    }

    /// Writes the FP8 codes of `fl(x / scale)`. The default implementation is [`Fp8::quantize`]. O(n).
    ///
    /// # Errors
    /// Those of [`Fp8::quantize`] and of the engine. The content of `out` is unspecified then.
    fn quantize_fp8<T: Element>(
        &mut self,
        format: Fp8,
        scale: f32,
        values: &[T],
        out: &mut [u8],
    ) -> Result<(), Self::Error> {
        Ok(format.quantize(scale, values, out)?)
    }

    /// Writes `fl(decode(code) · scale)`. The default implementation is [`Fp8::dequantize`]. O(n).
    ///
    /// # Errors
    /// Those of [`Fp8::dequantize`] and of the engine.
    fn dequantize_fp8(
        &mut self,
        format: Fp8,
        scale: f32,
        codes: &[u8],
        out: &mut [f32],
    ) -> Result<(), Self::Error> {
        Ok(format.dequantize(scale, codes, out)?)
    }

    /// Normalizes and quantizes rows of activations. The default implementation is [`activations::quantize`]. O(n).
    ///
    /// ```
    /// use tercet_core::engine::QuantizeEngine;
    /// use tercet_core::quant::activations::Activations;
    /// use tercet_core::scalar::Scalar;
    ///
    /// let (mut codes, mut scales) = ([0i16; 2], [0.0]);
    /// Scalar.norm_quantize(&[0.5, -2.0], None, Activations::A16(&mut codes), &mut scales)?;
    /// assert_eq!(codes, [8128, -32512]);
    /// # Ok::<(), tercet_core::quant::QuantError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`activations::quantize`], after which all other rows are done; those of the engine, after which the
    /// content of `out` and `scales` is unspecified.
    fn norm_quantize(
        &mut self,
        x: &[f32],
        norm: Option<Norm<'_>>,
        out: Activations<'_>,
        scales: &mut [f32],
    ) -> Result<(), Self::Error> {
        Ok(activations::quantize(x, norm, out, scales)?)
    }

    /// Adds the next values of two tensors to a comparison. The default implementation is [`Comparison::push`]. O(n).
    ///
    /// # Errors
    /// Those of [`Comparison::push`], which leave the comparison unchanged; those of the engine.
    fn compare<A: Element, B: Element>(
        &mut self,
        comparison: &mut Comparison,
        original: &[A],
        restored: &[B],
    ) -> Result<(), Self::Error> {
        Ok(comparison.push(original, restored)?)
    }
}

/// A tensor that an engine holds while a driver quantizes it group by group.
pub trait QuantizeProblem {
    /// The engine's error; quantizer errors convert into it.
    type Error: From<QuantError>;

    /// Returns the groups of the values.
    fn groups(&self) -> Groups;

    /// Computes the statistics of a group in one pass. Indices in [`Stats::first_bad`] count from the group's start.
    fn stats(&mut self, group: usize) -> Result<Stats, Self::Error>;

    /// Like [`QuantizeProblem::stats`], for methods that do not use [`Stats::sum`]: an engine may leave it 0.
    fn extremes(&mut self, group: usize) -> Result<Stats, Self::Error>;

    /// Writes the magnitude patterns ([`crate::number::bits::magnitude`]) of a small group, in any order.
    ///
    /// `out` holds exactly one pattern per value of a group, at most 256.
    fn read_magnitudes(&mut self, group: usize, out: &mut [u32]) -> Result<(), Self::Error>;

    /// Adds the count and the exact sum of a group's magnitudes to `bins`, by bit pattern.
    ///
    /// A magnitude m with `span.first <= m < span.end` goes to bin `(m - span.first) >> span.shift`; others are left
    /// out. `bins` holds [`MagnitudeSpan::bins`] bins.
    fn magnitudes(
        &mut self,
        group: usize,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), Self::Error>;

    /// Writes the codes of a group.
    fn apply(&mut self, group: usize, plan: &Plan) -> Result<Applied, Self::Error>;

    /// Writes the scale and zero point of a group (the zero point is ignored if the format has none).
    fn set_scale(&mut self, group: usize, scale: f32, zero_point: i8) -> Result<(), Self::Error>;

    /// Quantizes every group: one after another, unless the engine processes many at once.
    ///
    /// [`crate::quant::quantize`] calls this after its checks. An engine that overrides it must return the same bits
    /// and counts, and the error of the first failing group.
    fn quantize_groups(
        &mut self,
        method: Method,
        bins: &mut [MagnitudeBin],
    ) -> Result<Report, Self::Error>
    where
        Self: Sized,
    {
        quantize_in_order(self, method, bins)
    }

    /// Writes codes, scales and zero points to the caller's slices. Does nothing if the engine has already written
    /// them.
    fn finish(self) -> Result<(), Self::Error>
    where
        Self: Sized,
    {
        Ok(())
    }
}

/// A range of magnitude bit patterns cut into equal bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MagnitudeSpan {
    /// First pattern of the first bin, a multiple of `1 << shift`.
    pub first: u32,
    /// One past the last pattern, which may shorten the last bin. At most infinity's pattern.
    pub end: u32,
    /// log2 of the number of patterns per bin; at most 23, so that no bin contains two exponents.
    pub shift: u32,
}

impl MagnitudeSpan {
    /// Returns the number of bins of the span.
    pub const fn bins(&self) -> usize {
        // `wrapping_shl` never returns 0, so a wrong `shift` cannot cause a division by 0; `check` refuses it.
        let patterns = self.end.saturating_sub(self.first);
        patterns.div_ceil(1u32.wrapping_shl(self.shift)) as usize
    }

    /// Checks a span and its table of bins, as engines must before they fill it.
    ///
    /// # Errors
    /// [`QuantError::Range`] if the span violates its fields' conditions; [`QuantError::Length`] unless there are
    /// [`MagnitudeSpan::bins`] bins.
    pub const fn check(&self, bins: &[MagnitudeBin]) -> Result<(), QuantError> {
        if self.shift > 23 || self.end > INFINITE || !self.first.is_multiple_of(1 << self.shift) {
            return Err(QuantError::Range);
        }
        if bins.len() != self.bins() {
            return Err(QuantError::Length {
                expected: self.bins(),
                found: bins.len(),
            });
        }
        Ok(())
    }
}

/// Content of one bin of magnitudes.
///
/// All values of a bin share an exponent, so their sum is `mantissas · 2^exponent`: exact in 64 bits for up to 2⁴⁰
/// values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MagnitudeBin {
    /// Number of values.
    pub count: u64,
    /// Sum of their integer mantissas (24 bits each; 23 if subnormal).
    pub mantissas: u64,
}

impl MagnitudeBin {
    /// The bin of no values.
    pub const EMPTY: Self = Self {
        count: 0,
        mantissas: 0,
    };

    /// Adds the values of another bin over the same patterns.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.mantissas += other.mantissas;
    }
}
