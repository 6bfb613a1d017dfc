//! What models ask of an engine.

use super::{CacheType, Config, ModelError, PageCodes};

/// A set of what models ask of an engine: widths of activations, types of caches, matrices of floats. One bit each.
///
/// An engine for one model, which a firmware has, names those of that model. The code of the others is then not linked:
/// see [`Only`](crate::scalar::Only).
///
/// ```
/// use tercet_core::model::{Architecture, CacheType, Config, Gate, ModelParts, Pattern};
///
/// const CONFIG: Config = Config {
///     architecture: Architecture::BitNet, gate: Gate::Silu, layers: 2, width: 256, hidden: 512, heads: 4, kv_heads: 2, head: 64,
///     context: 128, vocabulary: 512, eps: 1e-5, rope_base: 10_000.0, rope_factor: 1.0, cache: CacheType::Int8, pattern: Pattern::FULL,
/// };
/// const PARTS: ModelParts = ModelParts::of(&CONFIG, CONFIG.cache, false);
/// assert!(PARTS.is_in(ModelParts::ALL) && !ModelParts::ALL.is_in(PARTS));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ModelParts(u32);

/// 8-bit activations.
const NARROW: u32 = 1;
/// 16-bit activations.
const WIDE: u32 = 1 << 1;
/// Matrices of floats.
const FLOATS: u32 = 1 << 2;
/// Bit of the first type of caches.
const CACHES: u32 = 3;

impl ModelParts {
    /// All that any model asks for.
    pub const ALL: Self = Self(u32::MAX);

    /// Returns the parts of a model with this type of cache. `floats` is true if one of its matrices is of floats.
    pub const fn of(config: &Config, cache: CacheType, floats: bool) -> Self {
        let activations = if config.wide() { WIDE } else { NARROW };
        let floats = if floats { FLOATS } else { 0 };
        Self(activations | floats | 1 << (CACHES + cache as u32))
    }

    /// Returns the set as a number, for a constant parameter.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the set of [`ModelParts::bits`].
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns true if a set contains all of these parts.
    pub const fn is_in(self, set: Self) -> bool {
        self.0 & !set.0 == 0
    }

    /// Fails unless the set contains all of these parts.
    pub(crate) const fn check(self, set: Self) -> Result<(), ModelError> {
        match self.is_in(set) {
            true => Ok(()),
            false => Err(ModelError::LeftOut),
        }
    }

    /// Returns true if activations have 16 bits. The compiler answers it for a set with one width.
    #[inline(always)]
    pub(crate) const fn wide(self, config: &Config) -> bool {
        match self.0 & (NARROW | WIDE) {
            NARROW => false,
            WIDE => true,
            _ => config.wide(),
        }
    }

    /// Returns true if matrices may be of floats.
    #[inline(always)]
    pub(crate) const fn floats(self) -> bool {
        self.0 & FLOATS != 0
    }

    /// Returns the type of a cache. The compiler answers it for a set with one type.
    #[inline(always)]
    pub(crate) const fn cache(self, kind: CacheType) -> CacheType {
        match self.0 >> CACHES & 0b1111 {
            0b0001 => CacheType::Int8,
            0b0010 => CacheType::Int16Int8,
            0b0100 => CacheType::Int16,
            0b1000 => CacheType::Fp8,
            _ => kind,
        }
    }

    /// Returns codes as those of this width, which they have; none if not.
    #[inline(always)]
    pub(crate) const fn codes(wide: bool, codes: PageCodes<'_>) -> PageCodes<'_> {
        match (wide, codes) {
            (false, PageCodes::Narrow(codes)) => PageCodes::Narrow(codes),
            (true, PageCodes::Wide(codes)) => PageCodes::Wide(codes),
            (false, PageCodes::Wide(_)) => PageCodes::Narrow(&[]),
            (true, PageCodes::Narrow(_)) => PageCodes::Wide(&[]),
        }
    }
}
