//! Keys and values, in pages from a pool.

mod stored;

use super::{Config, ModelError, ModelParts};
use crate::number::bits::{self, INFINITE};
use crate::quant::activations::{Code, row as norm_row};
use crate::quant::fp8::{Fp8, Overflow};

/// Positions per page; a page begins at a multiple of this number.
pub const PAGE: u32 = 64;

/// Format of keys and values; the codes of one head and position share a scale.
///
/// | type | keys | values | bytes per key and value | most positions |
/// |---|---|---|---|---|
/// | `int8` | int8 | int8 | 2 | 2²⁰ |
/// | `int16-8` | int16 | int8 | 3 | 2²⁰ |
/// | `int16` | int16 | int16 | 4 | 2¹⁷ less a few |
/// | `fp8` | E4M3 | E4M3 | 2 | 2¹⁸ |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum CacheType {
    /// 8-bit keys and values.
    Int8,
    /// 16-bit keys, which need the precision, and 8-bit values.
    Int16Int8,
    /// 16-bit keys and values.
    Int16,
    /// Keys and values in FP8 (E4M3), in units of 2⁻⁹.
    Fp8,
}

impl CacheType {
    /// Every type.
    pub const ALL: [Self; 4] = [Self::Int8, Self::Int16Int8, Self::Int16, Self::Fp8];

    /// Returns the type's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::Int16Int8 => "int16-8",
            Self::Int16 => "int16",
            Self::Fp8 => "fp8",
        }
    }

    /// Returns the type with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns true if keys have 16 bits.
    pub const fn wide_keys(self) -> bool {
        matches!(self, Self::Int16Int8 | Self::Int16)
    }

    /// Returns true if values have 16 bits.
    pub const fn wide_values(self) -> bool {
        matches!(self, Self::Int16)
    }

    /// Returns the number of bits by which a page's exponent of weights may be below the largest page's.
    pub const fn range(self) -> u32 {
        match self {
            Self::Int8 | Self::Int16Int8 => 20,
            Self::Int16 => 16,
            Self::Fp8 => 12,
        }
    }

    /// Returns the largest number of positions for which sums stay below 2⁶³: pages of 64 · 32,767 · the largest code
    /// · 2^[range](Self::range).
    pub const fn max_positions(self) -> u32 {
        let largest: u64 = match self {
            Self::Int8 | Self::Int16Int8 => 127,
            Self::Int16 => 32_512,
            Self::Fp8 => 448 << 9,
        };
        let page = (64 * 32_767 * largest) << self.range();
        let pages = (i64::MAX as u64) / page;
        // At most 2²⁰, so that a table of pages stays small.
        let pages = if pages > 1 << 14 { 1 << 14 } else { pages };
        pages as u32 * PAGE
    }
}

/// The sizes of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Shape {
    /// Format of keys and values.
    pub kind: CacheType,
    /// Number of layers.
    pub layers: usize,
    /// Number of key heads.
    pub heads: usize,
    /// Number of values per head.
    pub head: usize,
}

impl Shape {
    /// Returns the sizes of a model's pages.
    pub const fn new(config: &Config, kind: CacheType) -> Self {
        Self {
            kind,
            layers: config.layers,
            heads: config.kv_heads,
            head: config.head,
        }
    }

    /// Returns the number of key codes per page, which is also that of value codes; `usize::MAX` if it does not fit.
    pub const fn codes(&self) -> usize {
        self.scales().saturating_mul(self.head)
    }

    /// Returns the number of key scales per page, which is also that of value scales.
    pub const fn scales(&self) -> usize {
        self.layers
            .saturating_mul(self.heads)
            .saturating_mul(PAGE as usize)
    }

    /// Returns the number of bytes of a page: codes of keys and values, and their scales.
    ///
    /// ```
    /// use tercet_core::model::{CacheShape, CacheType};
    ///
    /// let shape = CacheShape { kind: CacheType::Int8, layers: 4, heads: 2, head: 64 };
    /// assert_eq!(shape.bytes(), 4 * 2 * 64 * (64 + 64 + 4 + 4));
    /// ```
    pub const fn bytes(&self) -> usize {
        let code = 2 + self.kind.wide_keys() as usize + self.kind.wide_values() as usize;
        self.codes()
            .saturating_mul(code)
            .saturating_add(self.scales().saturating_mul(8))
    }
}

/// Codes of one width.
#[derive(Debug)]
pub enum Codes<'m> {
    /// 8-bit codes, including FP8 patterns.
    Narrow(&'m mut [i8]),
    /// 16-bit codes.
    Wide(&'m mut [i16]),
}

impl Codes<'_> {
    const fn len(&self) -> usize {
        match self {
            Self::Narrow(codes) => codes.len(),
            Self::Wide(codes) => codes.len(),
        }
    }
}

/// Codes of one head's page, in the cache's format.
#[derive(Clone, Copy, Debug)]
pub enum PageCodes<'c> {
    /// 8-bit codes, including FP8 patterns.
    Narrow(&'c [i8]),
    /// 16-bit codes.
    Wide(&'c [i16]),
}

/// A pool of pages in the caller's memory, from which sequences take pages.
///
/// A page stores 64 consecutive positions of codes for each layer and key head, so that a head reads one contiguous
/// piece of memory per page.
#[derive(Debug)]
pub struct Cache<'m> {
    shape: Shape,
    keys: Codes<'m>,
    values: Codes<'m>,
    key_scales: &'m mut [f32],
    value_scales: &'m mut [f32],
    free: &'m mut [u32],
    left: usize,
}

impl<'m> Cache<'m> {
    /// Creates a pool of as many pages as `free` has elements. `keys` and `values` have [`Shape::codes`] elements per
    /// page, with the widths of the type; `scales` has twice [`Shape::scales`] per page. Their content does not
    /// matter.
    ///
    /// # Errors
    /// [`ModelError::Room`] if one is too short or has the other width.
    pub fn new(
        shape: Shape,
        keys: Codes<'m>,
        values: Codes<'m>,
        scales: &'m mut [f32],
        free: &'m mut [u32],
    ) -> Result<Self, ModelError> {
        let pages = free.len();
        let room = |memory, needed: Option<usize>, found: usize| match needed {
            None => Err(ModelError::TooLarge),
            Some(needed) if found < needed => Err(ModelError::Room {
                memory,
                needed,
                found,
            }),
            Some(_) => Ok(()),
        };
        let codes = shape.codes().checked_mul(pages);
        let of = |codes: &Codes<'_>, wide: bool| match (codes, wide) {
            (Codes::Narrow(_), false) | (Codes::Wide(_), true) => codes.len(),
            _ => 0,
        };
        room("codes of keys", codes, of(&keys, shape.kind.wide_keys()))?;
        room(
            "codes of values",
            codes,
            of(&values, shape.kind.wide_values()),
        )?;
        let half = shape.scales().checked_mul(pages);
        room(
            "scales of a cache",
            half.and_then(|half| half.checked_mul(2)),
            scales.len(),
        )?;
        // There are enough elements; this was checked.
        let (key_scales, value_scales) = scales
            .split_at_mut_checked(half.unwrap_or(0))
            .unwrap_or_default();
        let mut cache = Self {
            shape,
            keys,
            values,
            key_scales,
            value_scales,
            free,
            left: pages,
        };
        cache.clear();
        Ok(cache)
    }

    /// Makes all pages free. The caller must restart every sequence.
    pub fn clear(&mut self) {
        self.left = self.free.len();
        // The lowest page is taken first.
        for (page, slot) in self.free.iter_mut().rev().enumerate() {
            *slot = page as u32;
        }
    }

    /// Returns the sizes of the pages.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the number of pages and the number of free ones.
    pub const fn pages(&self) -> (usize, usize) {
        (self.free.len(), self.left)
    }

    /// Takes a free page.
    pub(super) fn take(&mut self) -> Option<u32> {
        let left = self.left.checked_sub(1)?;
        let page = self.free.get(left).copied()?;
        self.left = left;
        Some(page)
    }

    /// Returns a page to the pool.
    pub(super) fn give(&mut self, page: u32) {
        if let Some(slot) = self.free.get_mut(self.left) {
            *slot = page;
            self.left = self.left.saturating_add(1);
        }
    }

    /// Returns the index of a page's first head position, for a layer and a head.
    fn place(&self, page: u32, layer: usize, head: usize) -> usize {
        let heads = (page as usize)
            .wrapping_mul(self.shape.layers)
            .wrapping_add(layer);
        let head = heads.wrapping_mul(self.shape.heads).wrapping_add(head);
        head.wrapping_mul(PAGE as usize)
    }

    /// Returns the codes of one head's page, of keys or of values: 64 positions.
    fn codes<'c>(&self, codes: &'c Codes<'_>, place: usize) -> PageCodes<'c> {
        let first = place.wrapping_mul(self.shape.head);
        let len = self.shape.head.wrapping_mul(PAGE as usize);
        match codes {
            Codes::Narrow(codes) => PageCodes::Narrow(part(codes, first, len)),
            Codes::Wide(codes) => PageCodes::Wide(part(codes, first, len)),
        }
    }

    /// Returns the keys of a page, for a layer and a head: codes, and one scale for each of 64 positions.
    pub fn keys(&self, page: u32, layer: usize, head: usize) -> (PageCodes<'_>, &[f32]) {
        let place = self.place(page, layer, head);
        (
            self.codes(&self.keys, place),
            part(self.key_scales, place, PAGE as usize),
        )
    }

    /// Returns the values of a page, like [`Cache::keys`].
    pub fn values(&self, page: u32, layer: usize, head: usize) -> (PageCodes<'_>, &[f32]) {
        let place = self.place(page, layer, head);
        (
            self.codes(&self.values, place),
            part(self.value_scales, place, PAGE as usize),
        )
    }

    /// Stores a head's key and value at a position of a page. Returns true if both were finite; one that is not is
    /// stored as zeros. The type of the cache is among the parts.
    #[inline]
    pub(super) fn keep(
        &mut self,
        parts: ModelParts,
        (page, layer, head): (u32, usize, usize),
        position: u32,
        (key, value): (&[f32], &[f32]),
    ) -> (bool, bool) {
        let place = self
            .place(page, layer, head)
            .wrapping_add((position % PAGE) as usize);
        let kind = parts.cache(self.shape.kind);
        let head = self.shape.head;
        let keep = |wide, codes: &mut Codes<'_>, scales: &mut [f32], x: &[f32]| {
            let first = place.wrapping_mul(head);
            let scale = match (codes, wide) {
                (Codes::Narrow(codes), false) => {
                    let codes = part_mut(codes, first, head);
                    match kind {
                        CacheType::Fp8 => fp8(x, codes),
                        _ => row(x, codes),
                    }
                }
                (Codes::Wide(codes), true) => row(x, part_mut(codes, first, head)),
                // The codes have the widths of the type.
                _ => 0.0,
            };
            if let Some(slot) = scales.get_mut(place) {
                *slot = if scale.is_nan() { 0.0 } else { scale };
            }
            !scale.is_nan()
        };
        let key = keep(kind.wide_keys(), &mut self.keys, self.key_scales, key);
        let values = (&mut self.values, &mut *self.value_scales);
        (key, keep(kind.wide_values(), values.0, values.1, value))
    }
}

fn row<C: Code>(x: &[f32], codes: &mut [C]) -> f32 {
    norm_row(x, None, codes)
}

/// Writes the E4M3 codes of fl(v · fl(448 / M)). Returns the scale of a code's integer (its value · 2⁹), or NaN if a
/// value is not finite.
fn fp8(x: &[f32], codes: &mut [i8]) -> f32 {
    let largest = x.iter().fold(0, |max, &x| bits::magnitude(x).max(max));
    let limit = Fp8::E4M3.max();
    let factor = limit / f32::from_bits(largest);
    if largest >= INFINITE || !factor.is_finite() {
        codes.fill(0);
        return if largest >= INFINITE { f32::NAN } else { 0.0 };
    }
    for (code, &x) in codes.iter_mut().zip(x) {
        *code = Fp8::E4M3.encode(x * factor, Overflow::Saturate) as i8;
    }
    f32::from_bits(largest) / limit * (1.0 / 512.0)
}

/// Returns the integer of an E4M3 pattern: its value · 2⁹.
#[inline]
pub(super) fn fp8_integer(code: i8) -> i32 {
    (Fp8::E4M3.decode(code as u8) * 512.0) as i32
}

/// Returns `len` elements from `first` on; none if there are fewer.
pub(crate) fn part<T>(all: &[T], first: usize, len: usize) -> &[T] {
    all.get(first..)
        .and_then(|rest| rest.get(..len))
        .unwrap_or_default()
}

fn part_mut<T>(all: &mut [T], first: usize, len: usize) -> &mut [T] {
    all.get_mut(first..)
        .and_then(|rest| rest.get_mut(..len))
        .unwrap_or_default()
}
