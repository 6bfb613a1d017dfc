//! Quantizes a tensor into memory of its own.

use tercet_core::engine::{Output, QuantizeEngine};
use tercet_core::number::Element;
use tercet_core::quant::{Codes, Comparison, Rule, ScaleRule};
pub use tercet_core::quant::{Groups, Measures, Method, QuantError, Report};

use crate::parallel::Threads;

/// Values that are restored before they are compared: 1 MiB, which stays in a cache.
const CHUNK: usize = 1 << 18;

/// How to quantize a tensor: a method, and one scale for all of it or one per row.
///
/// ```
/// use tercet_host::Quantizer;
///
/// // Two rows of four weights become codes of −1, 0 and +1 with one scale per row.
/// let weights = [0.9, -0.1, 0.4, -1.1, 0.2, 0.0, -0.3, 0.25];
/// let quantized = Quantizer::ternary().per_row(4).quantize(&weights)?;
/// assert_eq!(quantized.codes(), [1, 0, 0, -1, 1, 0, -1, 1]);
/// assert_eq!(quantized.scales(), [1.0, 0.25]);
/// assert_eq!(quantized.restore()[..4], [1.0, 0.0, 0.0, -1.0]);
/// # Ok::<(), tercet_host::quantized::QuantError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantizer {
    method: Method,
    cols: Option<usize>,
}

impl Quantizer {
    /// Creates a quantizer by any of the core's methods.
    pub const fn new(method: Method) -> Self {
        Self { method, cols: None }
    }

    /// int8 codes −127..=127 without a zero point. The scale is the largest magnitude / 127.
    pub const fn int8() -> Self {
        Self::new(Method::Symmetric { limit: 127 })
    }

    /// int8 codes −128..=127 with a zero point, from the smallest to the largest value.
    pub const fn int8_affine() -> Self {
        Self::new(Method::Affine)
    }

    /// Codes −7..=7 without a zero point.
    pub const fn int4() -> Self {
        Self::new(Method::Symmetric { limit: 7 })
    }

    /// Codes −1, 0 and +1 and a scale that together have the least possible squared error.
    pub const fn ternary() -> Self {
        Self::new(Method::ternary(Rule::Optimal, ScaleRule::Rule))
    }

    /// Codes −1, 0 and +1 by BitNet b1.58's rule: the scale is the mean magnitude.
    pub const fn bitnet() -> Self {
        Self::new(Method::ternary(Rule::AbsMean, ScaleRule::Rule))
    }

    /// Gives each row of `cols` values its own scale.
    pub const fn per_row(mut self, cols: usize) -> Self {
        self.cols = Some(cols);
        self
    }

    /// Quantizes row-major values on all threads. Every machine returns the same bits as
    /// [`tercet_core::quant::quantize`].
    ///
    /// Reads the values twice, and more often for [`Quantizer::ternary`]. Allocates one byte per value, and five per
    /// row.
    ///
    /// # Errors
    /// [`QuantError::Empty`] if there are no values; [`QuantError::GroupLength`] if the values are no whole number of
    /// rows; [`QuantError::NotFinite`] with the index of the first NaN or infinity; [`QuantError::Range`] for an
    /// invalid limit or grid.
    pub fn quantize<T: Element>(&self, values: &[T]) -> Result<Quantized, QuantError> {
        let groups = match self.cols {
            None => Groups::tensor(values.len())?,
            Some(cols) => Groups::rows(values.len() / cols.max(1), cols)?,
        };
        groups.check(values.len())?;
        let mut quantized = Quantized {
            method: self.method,
            groups,
            codes: vec![0; values.len()],
            scales: vec![0.0; groups.count],
            zero_points: vec![0; groups.count],
            report: Report::default(),
        };
        let out = Output {
            codes: &mut quantized.codes,
            scales: &mut quantized.scales,
            zero_points: &mut quantized.zero_points,
        };
        let mut threads = Threads::default();
        quantized.report = threads.tensor(values, groups, out)?.quantize(self.method)?;
        Ok(quantized)
    }
}

/// Codes, scales and zero points of a tensor, made by [`Quantizer::quantize`].
#[derive(Clone, Debug, PartialEq)]
pub struct Quantized {
    method: Method,
    groups: Groups,
    codes: Vec<i8>,
    scales: Vec<f32>,
    zero_points: Vec<i8>,
    report: Report,
}

impl Quantized {
    /// Returns a tensor of codes, scales and zero points that were kept elsewhere, such as in a file.
    ///
    /// Its [`Quantized::report`] counts groups and codes; zeros, flushed groups and clipped values are not known.
    ///
    /// # Errors
    /// [`QuantError::Length`] unless `groups` hold as many codes, and there are one scale and one zero point per group;
    /// [`QuantError::Empty`] without codes; [`QuantError::Range`] for a scale that is negative or not finite.
    pub fn from_parts(
        method: Method,
        groups: Groups,
        codes: Vec<i8>,
        scales: Vec<f32>,
        zero_points: Vec<i8>,
    ) -> Result<Self, QuantError> {
        let parts = Codes {
            groups,
            codes: &codes,
            scales: &scales,
            zero_points: &zero_points,
        };
        parts.check(codes.len())?;
        if zero_points.len() != groups.count {
            return Err(QuantError::Length {
                expected: groups.count,
                found: zero_points.len(),
            });
        }
        if !scales
            .iter()
            .all(|scale| scale.is_finite() && *scale >= 0.0)
        {
            return Err(QuantError::Range);
        }
        let rows = codes.chunks_exact(groups.len).zip(&zero_points);
        let coded = rows.map(|(row, zero)| row.iter().filter(|code| *code != zero).count() as u64);
        let report = Report {
            groups: groups.count as u64,
            coded: coded.sum(),
            ..Report::default()
        };
        Ok(Self {
            method,
            groups,
            codes,
            scales,
            zero_points,
            report,
        })
    }

    /// The method of the quantizer.
    pub const fn method(&self) -> Method {
        self.method
    }

    /// The number of scales, and the number of values that share one.
    pub const fn groups(&self) -> Groups {
        self.groups
    }

    /// One code per value, row-major.
    pub fn codes(&self) -> &[i8] {
        &self.codes
    }

    /// Returns the codes and drops the rest.
    pub fn into_codes(self) -> Vec<i8> {
        self.codes
    }

    /// One scale per group.
    pub fn scales(&self) -> &[f32] {
        &self.scales
    }

    /// One zero point per group; all are 0 if the method has none.
    pub fn zero_points(&self) -> &[i8] {
        &self.zero_points
    }

    /// Number of groups whose values are all 0, of codes other than 0, and of clipped values.
    pub const fn report(&self) -> Report {
        self.report
    }

    /// Returns the restored values: `(code − zero point) · scale`, rounded once. O(n).
    pub fn restore(&self) -> Vec<f32> {
        let mut out = vec![0.0; self.codes.len()];
        self.restore_from(0, &mut out);
        out
    }

    /// Compares the restored values with the original ones: squared and relative error, SQNR, cosine, largest error.
    /// Takes up to 1.5 MiB of memory.
    ///
    /// # Errors
    /// [`QuantError::Length`] unless `original` has as many values; [`QuantError::NotFinite`].
    pub fn compare<T: Element>(&self, original: &[T]) -> Result<Measures, QuantError> {
        if original.len() != self.codes.len() {
            return Err(QuantError::Length {
                expected: self.codes.len(),
                found: original.len(),
            });
        }
        let mut comparison = Comparison::new();
        let mut room = vec![0.0; CHUNK.min(original.len())];
        for (chunk, original) in original.chunks(CHUNK).enumerate() {
            let restored = &mut room[..original.len()];
            self.restore_from(chunk * CHUNK, restored);
            Threads::default().compare(&mut comparison, original, restored)?;
        }
        comparison.finish().ok_or(QuantError::Empty)
    }

    /// Restores the values from `start` on: the rest of a group, whole groups, and the beginning of one.
    fn restore_from(&self, start: usize, out: &mut [f32]) {
        let len = self.groups.len;
        let mut done = 0;
        while done < out.len() {
            let (group, within) = ((start + done) / len, (start + done) % len);
            let left = out.len() - done;
            let (part, groups) = match within {
                0 if left >= len => (len, left / len),
                _ => (left.min(len - within), 1),
            };
            let out = &mut out[done..][..part * groups];
            let codes = Codes {
                groups: Groups {
                    count: groups,
                    len: part,
                },
                codes: &self.codes[start + done..][..out.len()],
                scales: &self.scales[group..][..groups],
                zero_points: &self.zero_points[group..][..groups],
            };
            Threads::default()
                .dequantize(codes, i8::MIN..=i8::MAX, out)
                .expect("the lengths fit, and every i8 is in range");
            done += out.len();
        }
    }
}
