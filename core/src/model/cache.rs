//! Keys and values, in pages of a pool.

mod stored;

use super::{Config, ModelError};
use crate::number::bits::{self, INFINITE};
use crate::quant::activations::{Code, row as norm_row};
use crate::quant::fp8::{Fp8, Overflow};

/// Positions of a page, which begins at a multiple of it.
pub const PAGE: u32 = 64;

/// How keys and values are kept: codes of a head and position share a scale.
///
/// | type | keys | values | bytes a value of both | most positions |
/// |---|---|---|---|---|
/// | `int8` | int8 | int8 | 2 | 2²⁰ |
/// | `int16-8` | int16 | int8 | 3 | 2²⁰ |
/// | `int16` | int16 | int16 | 4 | 2¹⁷ less a few |
/// | `fp8` | E4M3 | E4M3 | 2 | 2¹⁸ |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum CacheType {
    /// Keys and values of 8 bits.
    Int8,
    /// Keys of 16 bits, which need them, and values of 8.
    Int16Int8,
    /// Keys and values of 16 bits.
    Int16,
    /// Keys and values in FP8, E4M3, counted in units of 2⁻⁹.
    Fp8,
}

impl CacheType {
    /// Every type.
    pub const ALL: [Self; 4] = [Self::Int8, Self::Int16Int8, Self::Int16, Self::Fp8];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::Int16Int8 => "int16-8",
            Self::Int16 => "int16",
            Self::Fp8 => "fp8",
        }
    }

    /// The type of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether keys have 16 bits.
    pub const fn wide_keys(self) -> bool {
        matches!(self, Self::Int16Int8 | Self::Int16)
    }

    /// Whether values have 16 bits.
    pub const fn wide_values(self) -> bool {
        matches!(self, Self::Int16)
    }

    /// By how many bits less than the largest page's a page's weights may count.
    pub const fn range(self) -> u32 {
        match self {
            Self::Int8 | Self::Int16Int8 => 20,
            Self::Int16 => 16,
            Self::Fp8 => 12,
        }
    }

    /// The most positions whose sums stay below 2⁶³: pages of 64 · 32,767 · the largest code · 2^[range](Self::range).
    pub const fn max_positions(self) -> u32 {
        let largest: u64 = match self {
            Self::Int8 | Self::Int16Int8 => 127,
            Self::Int16 => 32_512,
            Self::Fp8 => 448 << 9,
        };
        let page = (64 * 32_767 * largest) << self.range();
        let pages = (i64::MAX as u64) / page;
        // 2²⁰ at most, so that a table of pages stays small.
        let pages = if pages > 1 << 14 { 1 << 14 } else { pages };
        pages as u32 * PAGE
    }
}

/// The sizes of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Shape {
    /// How keys and values are kept.
    pub kind: CacheType,
    /// Layers.
    pub layers: usize,
    /// Heads of keys.
    pub heads: usize,
    /// Values of a head.
    pub head: usize,
}

impl Shape {
    /// The sizes of a model's pages.
    pub const fn new(config: &Config, kind: CacheType) -> Self {
        Self {
            kind,
            layers: config.layers,
            heads: config.kv_heads,
            head: config.head,
        }
    }

    /// Codes of keys in a page, as many as of values; `usize::MAX` where there are more.
    pub const fn codes(&self) -> usize {
        self.scales().saturating_mul(self.head)
    }

    /// Scales of keys in a page, as many as of values.
    pub const fn scales(&self) -> usize {
        self.layers
            .saturating_mul(self.heads)
            .saturating_mul(PAGE as usize)
    }

    /// Bytes of a page: codes of keys and values, and their scales.
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
    /// Of 8 bits; the patterns of FP8 too.
    Narrow(&'m mut [i8]),
    /// Of 16 bits.
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

/// Codes of a head's page, as they are kept.
#[derive(Clone, Copy, Debug)]
pub enum PageCodes<'c> {
    /// Of 8 bits; the patterns of FP8 too.
    Narrow(&'c [i8]),
    /// Of 16 bits.
    Wide(&'c [i16]),
}

/// A pool of pages in the caller's memory, which sequences take pages from.
///
/// A page has, for each layer and head of keys, 64 positions of codes one after another, so that a head reads one piece of memory a page.
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
    /// A pool of as many pages as `free` has elements. `keys` and `values` have [`Shape::codes`] for each page, of the
    /// widths of the type; `scales` has twice [`Shape::scales`]. What they hold does not matter.
    ///
    /// # Errors
    /// [`ModelError::Room`] where one is too short or of the other width.
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
        // There are as many, as was seen.
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

    /// Makes all pages free; every sequence is to be begun anew.
    pub fn clear(&mut self) {
        self.left = self.free.len();
        // The lowest is taken first.
        for (page, slot) in self.free.iter_mut().rev().enumerate() {
            *slot = page as u32;
        }
    }

    /// The sizes of its pages.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Pages, and how many of them are free.
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

    /// Gives a page back.
    pub(super) fn give(&mut self, page: u32) {
        if let Some(slot) = self.free.get_mut(self.left) {
            *slot = page;
            self.left = self.left.saturating_add(1);
        }
    }

    /// The number of a page's first head position, of a layer and a head.
    fn place(&self, page: u32, layer: usize, head: usize) -> usize {
        let heads = (page as usize)
            .wrapping_mul(self.shape.layers)
            .wrapping_add(layer);
        let head = heads.wrapping_mul(self.shape.heads).wrapping_add(head);
        head.wrapping_mul(PAGE as usize)
    }

    /// The codes of a head's page, of keys or of values: 64 positions.
    fn codes<'c>(&self, codes: &'c Codes<'_>, place: usize) -> PageCodes<'c> {
        let first = place.wrapping_mul(self.shape.head);
        let len = self.shape.head.wrapping_mul(PAGE as usize);
        match codes {
            Codes::Narrow(codes) => PageCodes::Narrow(part(codes, first, len)),
            Codes::Wide(codes) => PageCodes::Wide(part(codes, first, len)),
        }
    }

    /// The keys of a page, of a layer and a head: codes, and a scale for each of 64 positions.
    pub fn keys(&self, page: u32, layer: usize, head: usize) -> (PageCodes<'_>, &[f32]) {
        let place = self.place(page, layer, head);
        (
            self.codes(&self.keys, place),
            part(self.key_scales, place, PAGE as usize),
        )
    }

    /// The values of a page, as [`Cache::keys`].
    pub fn values(&self, page: u32, layer: usize, head: usize) -> (PageCodes<'_>, &[f32]) {
        let place = self.place(page, layer, head);
        (
            self.codes(&self.values, place),
            part(self.value_scales, place, PAGE as usize),
        )
    }

    /// Keeps a head's key and value at a position of a page. Whether both were finite; of one that is not, zeros are kept.
    pub(super) fn keep(
        &mut self,
        (page, layer, head): (u32, usize, usize),
        position: u32,
        (key, value): (&[f32], &[f32]),
    ) -> (bool, bool) {
        let place = self
            .place(page, layer, head)
            .wrapping_add((position % PAGE) as usize);
        let is_fp8 = self.shape.kind == CacheType::Fp8;
        let head = self.shape.head;
        let keep = |codes: &mut Codes<'_>, scales: &mut [f32], x: &[f32]| {
            let first = place.wrapping_mul(head);
            let scale = match codes {
                Codes::Narrow(codes) if is_fp8 => fp8(x, part_mut(codes, first, head)),
                Codes::Narrow(codes) => row(x, part_mut(codes, first, head)),
                Codes::Wide(codes) => row(x, part_mut(codes, first, head)),
            };
            if let Some(slot) = scales.get_mut(place) {
                *slot = if scale.is_nan() { 0.0 } else { scale };
            }
            !scale.is_nan()
        };
        let key = keep(&mut self.keys, self.key_scales, key);
        (key, keep(&mut self.values, self.value_scales, value))
    }
}

fn row<C: Code>(x: &[f32], codes: &mut [C]) -> f32 {
    norm_row(x, None, codes)
}

/// E4M3 of fl(v · fl(448 / M)), and the scale of a code's integer, value · 2⁹; NaN where a value is not finite.
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

/// The integer of an E4M3 pattern: its value · 2⁹.
#[inline]
pub(super) fn fp8_integer(code: i8) -> i32 {
    (Fp8::E4M3.decode(code as u8) * 512.0) as i32
}

/// So many elements from `first` on; none where there are fewer.
pub(super) fn part<T>(all: &[T], first: usize, len: usize) -> &[T] {
    all.get(first..)
        .and_then(|rest| rest.get(..len))
        .unwrap_or_default()
}

fn part_mut<T>(all: &mut [T], first: usize, len: usize) -> &mut [T] {
    all.get_mut(first..)
        .and_then(|rest| rest.get_mut(..len))
        .unwrap_or_default()
}
