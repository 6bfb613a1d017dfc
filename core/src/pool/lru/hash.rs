//! The place at which a key's search begins.

use core::hash::{Hash, Hasher};

/// Returns a number below `buckets`, which is below 2¹⁶, that depends on all of the key.
#[inline]
pub(super) fn bucket<K: Hash>(key: &K, buckets: usize) -> usize {
    let mut mixer = Mixer(0);
    key.hash(&mut mixer);
    // The high bits of the product: uniform for every number of buckets, and without a division.
    ((u64::from(mixer.mixed()) * buckets as u64) >> 32) as usize
}

/// One multiplication and one rotation per word (as in FxHash), then the final mix of MurmurHash3 (A. Appleby, public
/// domain), after which every bit depends on every other.
struct Mixer(u32);

impl Mixer {
    fn mixed(self) -> u32 {
        let mut h = self.0;
        h = (h ^ (h >> 16)).wrapping_mul(0x85EB_CA6B);
        h = (h ^ (h >> 13)).wrapping_mul(0xC2B2_AE35);
        h ^ (h >> 16)
    }
}

impl Hasher for Mixer {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.write_u32(u32::from(value));
    }

    #[inline]
    fn write_u16(&mut self, value: u16) {
        self.write_u32(u32::from(value));
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        // An odd constant near 2³² / the golden ratio.
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9E37_79B9);
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.write_u32(value as u32);
        self.write_u32((value >> 32) as u32);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        u64::from(Self(self.0).mixed())
    }
}
