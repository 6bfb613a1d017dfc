//! What an engine does with a tensor to quantize, and with what it became.

use core::ops::RangeInclusive;

use crate::number::bits::INFINITE;
use crate::number::{Element, Stats};
use crate::quant::activations::{self, Activations, Norm};
use crate::quant::fp8::Fp8;
use crate::quant::{
    Applied, Codes, Comparison, Groups, Histogram, Method, Plan, QuantError, Report, dequantize,
    quantize_in_order,
};

/// Where a quantized tensor goes: the caller's slices.
#[derive(Debug)]
pub struct Output<'a> {
    /// One code a value.
    pub codes: &'a mut [i8],
    /// One scale a group.
    pub scales: &'a mut [f32],
    /// One zero point a group, or none at all where the method has none.
    pub zero_points: &'a mut [i8],
}

/// An engine that quantizes tensors.
pub trait QuantizeEngine {
    /// What can fail; quantizer refusals convert into it.
    type Error: From<QuantError> + core::fmt::Display;

    /// The engine's holder of one tensor.
    type Tensor<'a, T: Element>: QuantizeProblem<Error = Self::Error>
    where
        Self: 'a;

    /// Takes a tensor up, row-major in groups; the lengths of `out` must fit. A driver such as
    /// [`crate::quant::quantize`] then runs over it, and [`QuantizeProblem::finish`] brings the result into `out`.
    fn tensor<'a, T: Element>(
        &'a mut self,
        values: &'a [T],
        groups: Groups,
        out: Output<'a>,
    ) -> Result<Self::Tensor<'a, T>, Self::Error>;

    /// Counts the next values of a stream: [`Histogram::push`], which it is unless an engine counts by itself.
    ///
    /// O(n), and O(2^B) more where an engine has counters of its own.
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
    /// # Errors
    /// [`QuantError::NotFinite`] at the first NaN or infinity, with its index in the whole stream; the values before it are
    /// counted. The engine's own, after which the histogram is as it was.
    fn histogram<T: Element, const B: u32>(
        &mut self,
        values: &[T],
        histogram: &mut Histogram<'_, B>,
    ) -> Result<(), Self::Error> {
        Ok(histogram.push(values)?)
    }

    /// Writes `fl((code − zero_point) · scale)` for codes of a range: [`dequantize`], which it is unless an engine is faster.
    /// O(n).
    ///
    /// # Errors
    /// Those of [`dequantize`], a code outside the range with the lowest index; the engine's. What `out` holds then is
    /// left open.
    fn dequantize(
        &mut self,
        codes: Codes<'_>,
        range: RangeInclusive<i8>,
        out: &mut [f32],
    ) -> Result<(), Self::Error> {
        Ok(dequantize(codes, range, out)?)
    }

    /// Writes the FP8 codes of `fl(x / scale)`: [`Fp8::quantize`], which it is unless an engine is faster. O(n).
    ///
    /// # Errors
    /// Those of [`Fp8::quantize`]; the engine's. What `out` holds then is left open.
    fn quantize_fp8<T: Element>(
        &mut self,
        format: Fp8,
        scale: f32,
        values: &[T],
        out: &mut [u8],
    ) -> Result<(), Self::Error> {
        Ok(format.quantize(scale, values, out)?)
    }

    /// Writes `fl(decode(code) · scale)`: [`Fp8::dequantize`], which it is unless an engine is faster. O(n).
    ///
    /// # Errors
    /// Those of [`Fp8::dequantize`]; the engine's.
    fn dequantize_fp8(
        &mut self,
        format: Fp8,
        scale: f32,
        codes: &[u8],
        out: &mut [f32],
    ) -> Result<(), Self::Error> {
        Ok(format.dequantize(scale, codes, out)?)
    }

    /// Normalizes and quantizes rows of activations: [`activations::quantize`], which it is unless an engine is faster. O(n).
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
    /// Those of [`activations::quantize`], which leave all other rows done; the engine's, after which what `out` and `scales` hold is left open.
    fn norm_quantize(
        &mut self,
        x: &[f32],
        norm: Option<Norm<'_>>,
        out: Activations<'_>,
        scales: &mut [f32],
    ) -> Result<(), Self::Error> {
        Ok(activations::quantize(x, norm, out, scales)?)
    }

    /// Goes on with a comparison of two tensors: [`Comparison::push`], which it is unless an engine is faster. O(n).
    ///
    /// # Errors
    /// Those of [`Comparison::push`], after which the comparison is as it was; the engine's.
    fn compare<A: Element, B: Element>(
        &mut self,
        comparison: &mut Comparison,
        original: &[A],
        restored: &[B],
    ) -> Result<(), Self::Error> {
        Ok(comparison.push(original, restored)?)
    }
}

/// A tensor an engine holds while a driver quantizes it group by group.
pub trait QuantizeProblem {
    /// The engine's failures; quantizer refusals convert into it.
    type Error: From<QuantError>;

    /// How the values fall into groups.
    fn groups(&self) -> Groups;

    /// One pass over a group. Indices in [`Stats::first_bad`] count from the group's start.
    fn stats(&mut self, group: usize) -> Result<Stats, Self::Error>;

    /// As [`QuantizeProblem::stats`], for methods that do not look at [`Stats::sum`]: an engine may leave that 0.
    fn extremes(&mut self, group: usize) -> Result<Stats, Self::Error>;

    /// Writes the magnitude patterns ([`crate::number::bits::magnitude`]) of a small group, in any order.
    ///
    /// `out` holds exactly one pattern for each value of a group, at most 256.
    fn read_magnitudes(&mut self, group: usize, out: &mut [u32]) -> Result<(), Self::Error>;

    /// Adds to `bins` the count and the exact sum of the magnitudes of a group, by bit pattern.
    ///
    /// A magnitude m with `span.first <= m < span.end` goes to bin `(m - span.first) >> span.shift`; others are
    /// left out. `bins` holds [`MagnitudeSpan::bins`] of them.
    fn magnitudes(
        &mut self,
        group: usize,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), Self::Error>;

    /// Writes the codes of a group.
    fn apply(&mut self, group: usize, plan: &Plan) -> Result<Applied, Self::Error>;

    /// Writes the scale and zero point of a group (zero points are ignored where the format has none).
    fn set_scale(&mut self, group: usize, scale: f32, zero_point: i8) -> Result<(), Self::Error>;

    /// Quantizes every group: one after another, unless the engine takes many at once.
    ///
    /// [`crate::quant::quantize`] calls this after its checks. An engine that overrides it must give the same
    /// bits, the same counts, and the error of the group that comes first.
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

    /// Brings codes, scales and zero points into the caller's slices. Nothing to do where the engine wrote there all along.
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
    /// One past the last pattern; the last bin may be cut short by it. At most infinity's pattern.
    pub end: u32,
    /// log2 of the patterns in a bin; at most 23, so that a bin never crosses an exponent.
    pub shift: u32,
}

impl MagnitudeSpan {
    /// How many bins the span has.
    pub const fn bins(&self) -> usize {
        // `wrapping_shl` never gives 0, so a wrong `shift` cannot divide by it; `check` refuses it.
        let patterns = self.end.saturating_sub(self.first);
        patterns.div_ceil(1u32.wrapping_shl(self.shift)) as usize
    }

    /// Checks a span and its table of bins, as engines must before they fill it.
    ///
    /// [`QuantError::Range`] where the span is not as its fields say; [`QuantError::Length`] unless there are
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

/// What falls into one bin of magnitudes.
///
/// All values of a bin share an exponent, so their sum is `mantissas · 2^exponent`: exact in 64 bits for
/// up to 2⁴⁰ values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MagnitudeBin {
    /// How many values.
    pub count: u64,
    /// Sum of their integer mantissas (24 bits each; 23 where subnormal).
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
