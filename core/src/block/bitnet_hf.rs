//! The ternary tensors of Hugging Face's BitNet models: four rows per byte in a `uint8` tensor.
//!
//! A matrix of `rows` × `cols` (row-major, rows are output features) becomes ⌈rows / 4⌉ × `cols` bytes. With R =
//! ⌈rows / 4⌉, byte row r holds rows r, r + R, r + 2 R and r + 3 R as `code + 1`, the first in its lowest two bits.
//! The bits of rows after the last are 0. The tensor's shape gives only R, so the number of rows comes from elsewhere
//! or is 4 R.
//!
//! The quantizer is `s = fl(1 / max(mean|w|, 1e-5))` and `code = half_even(fl(w · s))`, clipped to −1..=1, computed
//! in f32 for bf16 and f16 tensors too. The mean here is the exact one, rounded once. `transformers` sums in floats,
//! so its s may differ in the last place. For the same s, the codes are the same.
//!
//! **The file's `weight_scale` is s or 1/s, depending on the module that loads it**: see [`WeightScale`]. The bytes
//! do not show this; the model's `quantization_config` does (`linear_class`).

use super::{BlockError, expect_len};
use crate::number::{Element, Stats, bits};

/// Meaning of the one value in a file's `weight_scale`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum WeightScale {
    /// The value is s: `linear_class = "bitlinear"` (the default of `transformers`, packed weights) divides its
    /// products by it.
    #[default]
    Divisor,
    /// The value is 1/s, about mean|w|: `linear_class = "autobitlinear"`, `quantization_mode = "offline"` multiplies
    /// its products by it.
    Multiplier,
}

impl WeightScale {
    /// Returns the value to store for the quantizer's `s`.
    pub fn stored(self, s: f32) -> f32 {
        match self {
            Self::Divisor => s,
            Self::Multiplier => 1.0 / s,
        }
    }

    /// Returns the value of code 1 for a stored value.
    ///
    /// # Errors
    /// [`BlockError::Scale`] unless both are positive and finite.
    pub fn unit(self, stored: f32) -> Result<f32, BlockError> {
        let unit = match self {
            Self::Divisor => 1.0 / stored,
            Self::Multiplier => stored,
        };
        if stored > 0.0 && stored < f32::INFINITY && unit > 0.0 && unit < f32::INFINITY {
            Ok(unit)
        } else {
            Err(BlockError::Scale)
        }
    }
}

/// Returns the number of bytes of a packed matrix: ⌈rows / 4⌉ · cols.
///
/// # Errors
/// [`BlockError::TooLarge`] if `rows · cols` does not fit `usize`.
pub const fn packed_len(rows: usize, cols: usize) -> Result<usize, BlockError> {
    match rows.checked_mul(cols) {
        Some(_) => match rows.div_ceil(4).checked_mul(cols) {
            Some(bytes) => Ok(bytes),
            None => Err(BlockError::TooLarge { len: rows }),
        },
        None => Err(BlockError::TooLarge { len: rows }),
    }
}

/// Packs `rows · cols` codes, each −1, 0 or 1, into [`packed_len`] bytes.
///
/// ```
/// use tercet_core::block::bitnet_hf;
///
/// // Five rows of one column: two byte rows, and the last three bit pairs of row 5 to 7 stay 0.
/// let mut packed = [0; 2];
/// bitnet_hf::pack(5, 1, &[1, 0, -1, 1, 0], &mut packed)?;
/// assert_eq!(packed, [0b00_01_00_10, 0b00_00_10_01]);
/// # Ok::<(), tercet_core::block::BlockError>(())
/// ```
///
/// # Errors
/// [`BlockError::Length`]; [`BlockError::CodeRange`] with the lowest index.
pub fn pack(rows: usize, cols: usize, codes: &[i8], out: &mut [u8]) -> Result<(), BlockError> {
    let quarter = packed_len(rows, cols)?;
    expect_len(rows * cols, codes.len())?;
    expect_len(quarter, out.len())?;
    if let Some(index) = codes.iter().position(|code| !(-1..=1).contains(code)) {
        return Err(BlockError::CodeRange { index });
    }
    out.fill(0);
    // `chunks` of length 0 would panic; without bytes there are no codes either.
    for (codes, shift) in codes.chunks(quarter.max(1)).zip(SHIFTS) {
        for (byte, &code) in out.iter_mut().zip(codes) {
            *byte |= ((code + 1) as u8) << shift;
        }
    }
    Ok(())
}

/// Unpacks [`packed_len`] bytes into `rows · cols` codes. Ignores the bits of rows after the last.
///
/// # Errors
/// [`BlockError::Length`]; [`BlockError::CodeRange`] with the lowest index that holds the bits 3.
pub fn unpack(rows: usize, cols: usize, packed: &[u8], out: &mut [i8]) -> Result<(), BlockError> {
    unpack_as(rows, cols, packed, out, |code| code)
}

/// Decodes a packed matrix to f32: `code · unit`, with the value of code 1 from [`WeightScale::unit`].
///
/// # Errors
/// Those of [`unpack`].
pub fn decode(
    rows: usize,
    cols: usize,
    packed: &[u8],
    unit: f32,
    out: &mut [f32],
) -> Result<(), BlockError> {
    unpack_as(rows, cols, packed, out, |code| f32::from(code) * unit)
}

/// Returns the quantizer's s for `weights`: `fl(1 / max(mean|w|, 1e-5))` with the exact mean, rounded once.
///
/// # Errors
/// [`BlockError::Empty`]; [`BlockError::NotFinite`] with the lowest index.
pub fn scale<T: Element>(weights: &[T]) -> Result<f32, BlockError> {
    let stats = Stats::of(weights);
    if let Some(index) = stats.first_bad {
        return Err(BlockError::NotFinite {
            index: index as usize,
        });
    }
    Ok(scale_of_mean(stats.abs_mean().ok_or(BlockError::Empty)?))
}

/// Returns the quantizer's s for a mean of |w|: `fl(1 / max(mean, 1e-5))`. For tensors that are read in parts.
pub fn scale_of_mean(mean: f32) -> f32 {
    1.0 / mean.max(1e-5)
}

/// Quantizes a matrix of weights with the factor `s` and packs it: [`quantize`] and [`pack`] without a buffer for all
/// codes. `out` has [`packed_len`] bytes. O(n), 64 bytes of stack for codes.
///
/// ```
/// use tercet_core::block::bitnet_hf;
///
/// let weights = [0.9f32, -0.1, -1.1, 0.4];
/// let mut packed = [0; 1];
/// let s = bitnet_hf::scale(&weights)?;
/// bitnet_hf::encode(4, 1, &weights, s, &mut packed)?;
/// assert_eq!(packed, [0b10_00_01_10]);
/// # Ok::<(), tercet_core::block::BlockError>(())
/// ```
///
/// # Errors
/// [`BlockError::TooLarge`]; [`BlockError::Length`]; then those of [`quantize`], after which the content of `out` is
/// unspecified.
pub fn encode<T: Element>(
    rows: usize,
    cols: usize,
    weights: &[T],
    s: f32,
    out: &mut [u8],
) -> Result<(), BlockError> {
    let quarter = packed_len(rows, cols)?;
    expect_len(rows * cols, weights.len())?;
    expect_len(quarter, out.len())?;
    // An invalid factor is an error without weights too.
    quantize::<T>(&[], s, &mut [])?;
    out.fill(0);
    let mut index = 0;
    for (weights, shift) in weights.chunks(quarter.max(1)).zip(SHIFTS) {
        for (weights, out) in weights.chunks(RUN).zip(out.chunks_mut(RUN)) {
            let mut codes = [0; RUN];
            let codes = codes.get_mut(..weights.len()).unwrap_or_default();
            quantize(weights, s, codes).map_err(|error| match error {
                BlockError::NotFinite { index: within } => BlockError::NotFinite {
                    index: index + within,
                },
                other => other,
            })?;
            for (byte, &code) in out.iter_mut().zip(&*codes) {
                *byte |= ((code + 1) as u8) << shift;
            }
            index += weights.len();
        }
    }
    Ok(())
}

/// Writes the code of every weight for a given `s`: `half_even(fl(w · s))` clipped to −1..=1.
///
/// # Errors
/// [`BlockError::Length`]; [`BlockError::Scale`] unless s is positive and finite; [`BlockError::NotFinite`] with the
/// lowest index.
pub fn quantize<T: Element>(weights: &[T], s: f32, codes: &mut [i8]) -> Result<(), BlockError> {
    expect_len(weights.len(), codes.len())?;
    if !(s > 0.0 && s < f32::INFINITY) {
        return Err(BlockError::Scale);
    }
    let mut largest = 0;
    for (code, w) in codes.iter_mut().zip(weights) {
        let w = w.to_f32();
        largest = largest.max(bits::magnitude(w));
        let scaled = w * s;
        // ½ becomes 0, which is even. Everything above it becomes 1 or is clipped to 1.
        *code = i8::from(scaled > 0.5) - i8::from(scaled < -0.5);
    }
    if largest >= bits::INFINITE {
        let bad = weights.iter().position(|w| !w.to_f32().is_finite());
        return Err(BlockError::NotFinite {
            index: bad.unwrap_or(0),
        });
    }
    Ok(())
}

/// Number of weights that are coded before they are packed.
const RUN: usize = 64;

/// Places of the four rows in a byte, in order.
const SHIFTS: [u8; 4] = [0, 2, 4, 6];

fn unpack_as<T>(
    rows: usize,
    cols: usize,
    packed: &[u8],
    out: &mut [T],
    value: impl Fn(i8) -> T,
) -> Result<(), BlockError> {
    let quarter = packed_len(rows, cols)?;
    expect_len(quarter, packed.len())?;
    expect_len(rows * cols, out.len())?;
    for (part, (out, shift)) in out.chunks_mut(quarter.max(1)).zip(SHIFTS).enumerate() {
        let pairs = packed.iter().map(|byte| (byte >> shift) & 3);
        for (index, (y, pair)) in out.iter_mut().zip(pairs).enumerate() {
            if pair == 3 {
                return Err(BlockError::CodeRange {
                    index: part * quarter + index,
                });
            }
            *y = value(pair as i8 - 1);
        }
    }
    Ok(())
}
