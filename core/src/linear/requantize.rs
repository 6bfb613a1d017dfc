//! Converts a sum to int8: an integer multiplier, one rounding, a clamp.

use super::table::Values;
use super::{LinearError, Table};

/// A positive scale as an integer: `multiplier · 2^−shift`.
///
/// The rule is `clamp((sum · multiplier + 2^(shift − 1)) >> shift, −127, 127)`. The product is exact for every sum,
/// and halves round up. It is the fixed-point form of TensorFlow Lite's quantized kernels (B. Jacob et al., 2018)
/// without their second rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Requantize {
    multiplier: i32,
    shift: u8,
}

/// Largest shift: the rounding term, shifted right by 32, still fits 61 bits.
pub const MAX_SHIFT: u8 = 94;

impl Requantize {
    /// Creates a scale from a multiplier of 2³⁰ to 2³¹ − 1 and a shift of 1 to [`MAX_SHIFT`].
    ///
    /// # Errors
    /// [`LinearError::Multiplier`] or [`LinearError::Shift`], as row 0.
    pub const fn new(multiplier: i32, shift: u8) -> Result<Self, LinearError> {
        if multiplier < 1 << 30 {
            return Err(LinearError::Multiplier { row: 0 });
        }
        if shift == 0 || shift > MAX_SHIFT {
            return Err(LinearError::Shift { row: 0 });
        }
        Ok(Self { multiplier, shift })
    }

    /// Returns the multiplier and shift nearest to a scale, ties to even. Every f32 in range has an exact
    /// representation.
    ///
    /// For a sum of integers, `scale = s_x · s_w / s_out`. For a sum of GGUF blocks, whose unit is 2⁻²⁴, `scale = s_x
    /// · 2⁻²⁴ / s_out`.
    ///
    /// ```
    /// use tercet_core::linear::Requantize;
    ///
    /// let half = Requantize::from_scale(0.5)?;
    /// assert_eq!((half.multiplier(), half.shift()), (1 << 30, 31));
    /// assert_eq!([5, -5, 300, -300].map(|sum| half.apply(sum)), [3, -2, 127, -127]);
    /// # Ok::<(), tercet_core::linear::LinearError>(())
    /// ```
    ///
    /// # Errors
    /// [`LinearError::Scale`] unless 2⁻⁶⁴ ≤ scale < 2³⁰ − 1/4.
    pub fn from_scale(scale: f64) -> Result<Self, LinearError> {
        let bits = scale.to_bits();
        // The sign is the top bit, so a negative number has too large an exponent.
        let exponent = (bits >> 52) as i64 - 1023;
        if !(-64..30).contains(&exponent) {
            return Err(LinearError::Scale);
        }
        let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
        // From 53 bits to 31: drops 22, half to even.
        let kept = mantissa >> 22;
        let rest = mantissa & ((1 << 22) - 1);
        let up = rest > 1 << 21 || (rest == 1 << 21 && kept & 1 == 1);
        let rounded = kept + u64::from(up);
        // A carry out of 31 bits leaves a power of two.
        let (multiplier, exponent) = match rounded >> 31 {
            0 => (rounded, exponent),
            _ => (rounded >> 1, exponent + 1),
        };
        // 2³⁰ ≤ multiplier < 2³¹ represents 1.0 ≤ mantissa < 2.0, so shift 30 is exponent 0; the shift ranges from 0
        // to 94.
        let shift = 30 - exponent;
        match u8::try_from(shift) {
            Ok(shift) if shift > 0 => Ok(Self {
                multiplier: multiplier as i32,
                shift,
            }),
            _ => Err(LinearError::Scale),
        }
    }

    /// Returns the multiplier, 2³⁰ to 2³¹ − 1.
    pub const fn multiplier(self) -> i32 {
        self.multiplier
    }

    /// Returns the shift, 1 to [`MAX_SHIFT`].
    pub const fn shift(self) -> u8 {
        self.shift
    }

    /// Returns a sum as int8, −127..=127. Exact for every sum except −2⁶³.
    #[inline]
    pub const fn apply(self, sum: i64) -> i8 {
        let low = sum as i32;
        match self.narrow() {
            Some(scale) if low as i64 == sum => scale.apply(low),
            Some(scale) => Wide(scale).apply(sum),
            None => self.apply_any(sum),
        }
    }

    /// Returns the steps for 32-bit sums, if the shift is in their usual range: a scale below 1/4.
    #[inline]
    pub(super) const fn narrow(self) -> Option<Narrow> {
        if self.shift <= 32 || self.shift >= 64 {
            return None;
        }
        Some(Narrow {
            multiplier: self.multiplier,
            half: 1 << ((self.shift - 33) & 31),
            shift: (self.shift - 32) as u32,
        })
    }

    /// Returns the steps for 64-bit sums, if the shift is in the usual range of blocks.
    #[inline]
    pub(super) const fn wide(self) -> Option<Wide> {
        match self.narrow() {
            Some(scale) => Some(Wide(scale)),
            None => None,
        }
    }

    /// Like [`Requantize::apply`], for shifts that are rare in layers.
    #[inline(never)]
    const fn apply_any(self, sum: i64) -> i8 {
        // sum · multiplier = high · 2³² + low, |high| ≤ 2⁶².
        let low = (sum as u32 as u64) * (self.multiplier as u64);
        let high = (sum >> 32) * self.multiplier as i64 + (low >> 32) as i64;
        let rounded = if self.shift > 32 {
            (high + (1i64 << (self.shift - 33))) >> (self.shift - 32)
        } else if high >= 1 << 30 {
            i64::MAX
        } else if high < -(1 << 30) {
            i64::MIN
        } else {
            // |product| ≤ 2⁶²; half of 2^shift is at most 2³¹.
            let product = (high << 32) | (low & 0xFFFF_FFFF) as i64;
            (product + (1i64 << (self.shift - 1))) >> self.shift
        };
        if rounded as i32 as i64 == rounded {
            clamp(rounded as i32)
        } else if rounded < 0 {
            -127
        } else {
            127
        }
    }
}

/// A scale for 32-bit sums.
#[derive(Clone, Copy)]
pub(super) struct Narrow {
    multiplier: i32,
    half: i32,
    shift: u32,
}

impl Narrow {
    /// Returns the same scale for 64-bit sums.
    #[inline]
    pub(super) const fn widen(self) -> Wide {
        Wide(self)
    }

    /// |high| ≤ 2³⁰, and half of the bits shifted out is at most 2³⁰. It is a multiple of 2³² in the product's unit, so the dropped low half could not have carried.
    #[inline]
    pub(super) const fn apply(self, sum: i32) -> i8 {
        let high = ((sum as i64 * self.multiplier as i64) >> 32) as i32;
        clamp((high + self.half) >> (self.shift & 31))
    }
}

/// A scale for 64-bit sums.
#[derive(Clone, Copy)]
pub(super) struct Wide(Narrow);

impl Wide {
    /// Like [`Narrow::apply`], with |high| ≤ 2⁶². The shift by 1 to 31 consists of 32-bit shifts, which a 32-bit
    /// machine has.
    #[inline]
    pub(super) const fn apply(self, sum: i64) -> i8 {
        let Self(Narrow {
            multiplier,
            half,
            shift,
        }) = self;
        let low = (sum as u32 as u64 * multiplier as u32 as u64) >> 32;
        let high = (sum >> 32) as i32 as i64 * multiplier as i64 + low as i64 + half as i64;
        let upper = (high >> 32) as i32;
        // The bits above the result's 32 bits, including its sign.
        match upper >> ((shift - 1) & 31) {
            0 | -1 => {
                let result = (high as u32 >> (shift & 31)) | (upper as u32) << ((32 - shift) & 31);
                clamp(result as i32)
            }
            _ if upper < 0 => -127,
            _ => 127,
        }
    }
}

/// Clamps to −127..=127.
#[inline]
const fn clamp(value: i32) -> i8 {
    if value > 127 {
        127
    } else if value < -127 {
        -127
    } else {
        value as i8
    }
}

/// Converts the sums of a layer to int8: with one scale or one per row, with or without a ReLU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Rescale<'a> {
    scales: Scales<'a>,
    lowest: i8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
enum Scales<'a> {
    One(Requantize),
    Rows {
        multipliers: Table<'a>,
        shifts: &'a [u8],
    },
}

impl<'a> Rescale<'a> {
    /// Uses one scale for every row.
    pub const fn one(scale: Requantize) -> Self {
        Self {
            scales: Scales::One(scale),
            lowest: -127,
        }
    }

    /// Uses one scale per row, as multipliers and shifts; one pass checks them.
    ///
    /// # Errors
    /// [`LinearError::Length`] unless there are as many shifts as multipliers; [`LinearError::Multiplier`];
    /// [`LinearError::Shift`].
    pub fn rows(multipliers: Table<'a>, shifts: &'a [u8]) -> Result<Self, LinearError> {
        if multipliers.len() != shifts.len() {
            return Err(LinearError::Length {
                expected: multipliers.len(),
                found: shifts.len(),
            });
        }
        for (row, &shift) in shifts.iter().enumerate() {
            let scale = Requantize::new(multipliers.get(row).unwrap_or_default(), shift);
            scale.map_err(|error| match error {
                LinearError::Multiplier { .. } => LinearError::Multiplier { row },
                _ => LinearError::Shift { row },
            })?;
        }
        Ok(Self {
            scales: Scales::Rows {
                multipliers,
                shifts,
            },
            lowest: -127,
        })
    }

    /// Adds a ReLU: outputs below 0 become 0.
    #[must_use]
    pub const fn with_relu(mut self) -> Self {
        self.lowest = 0;
        self
    }

    /// Checks the number of scales. Every engine does this first.
    ///
    /// # Errors
    /// [`LinearError::Length`] unless there is one scale for all rows, or one for each of `rows` rows.
    pub const fn check(&self, rows: usize) -> Result<(), LinearError> {
        match &self.scales {
            Scales::One(_) => Ok(()),
            Scales::Rows { shifts, .. } => super::expect(rows, shifts.len()),
        }
    }

    /// Returns the scales of `rows` rows, from `first` on.
    pub fn part(&self, first: usize, rows: usize) -> Self {
        let mut part = *self;
        if let Scales::Rows {
            multipliers,
            shifts,
        } = &mut part.scales
        {
            let rest = shifts.get(first..).unwrap_or_default();
            *shifts = rest.get(..rows).unwrap_or(rest);
            *multipliers = multipliers.part(first, rows);
        }
        part
    }

    /// Returns a row's sum as int8; 0 after the last row that has a scale.
    pub fn apply(&self, row: usize, sum: i64) -> i8 {
        self.scales(row).next().apply(sum).max(self.lowest)
    }

    /// Returns the smallest output.
    pub(super) const fn lowest(&self) -> i8 {
        self.lowest
    }

    /// Returns the scales from a row on.
    pub(super) fn scales(&self, first: usize) -> RowScales<'a> {
        match &self.scales {
            Scales::One(scale) => RowScales::One(*scale),
            Scales::Rows {
                multipliers,
                shifts,
            } => RowScales::Rows {
                multipliers: Values::new(Some(multipliers), first),
                shifts: shifts.get(first..).unwrap_or_default().iter(),
            },
        }
    }
}

/// Scales row by row.
pub(super) enum RowScales<'a> {
    One(Requantize),
    Rows {
        multipliers: Values<'a>,
        shifts: core::slice::Iter<'a, u8>,
    },
}

impl RowScales<'_> {
    /// Returns the scale of every row, if it is the same for all.
    #[inline]
    pub(super) const fn one(&self) -> Option<Requantize> {
        match self {
            Self::One(scale) => Some(*scale),
            Self::Rows { .. } => None,
        }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Requantize {
        match self {
            Self::One(scale) => *scale,
            // In range: `Rescale::rows` has checked all of them.
            Self::Rows {
                multipliers,
                shifts,
            } => Requantize {
                multiplier: multipliers.next(),
                shift: shifts.next().copied().unwrap_or(MAX_SHIFT),
            },
        }
    }
}
