//! The digest: 64-bit FNV-1a over little-endian bytes.

use crate::number::ExactSum;

/// A running 64-bit FNV-1a hash of values, each added as little-endian bytes.
///
/// It detects differences; it does not resist attackers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl Digest {
    /// Returns the empty digest (the FNV offset basis).
    pub const fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    /// Continues from the value of another digest.
    pub const fn resume(value: u64) -> Self {
        Self(value)
    }

    /// Returns the value so far.
    pub const fn value(&self) -> u64 {
        self.0
    }

    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }

    /// Adds an integer.
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Adds the bits of a float; −0 and +0 differ, and so do NaNs.
    pub fn f32(&mut self, value: f32) {
        self.bytes(&value.to_bits().to_le_bytes());
    }

    /// Adds the bits of a double.
    pub fn f64(&mut self, value: f64) {
        self.bytes(&value.to_bits().to_le_bytes());
    }

    /// Adds the bits of floats.
    pub fn f32s(&mut self, values: &[f32]) {
        for &value in values {
            self.f32(value);
        }
    }

    /// Adds signed codes.
    pub fn i8s(&mut self, values: &[i8]) {
        for &value in values {
            self.bytes(&value.to_le_bytes());
        }
    }

    /// Adds the two roundings of an exact sum that users see: the sum itself, and its mean over seven.
    pub fn sum(&mut self, sum: &ExactSum) {
        self.f32(sum.to_f32());
        self.f32(sum.mean(7).unwrap_or(f32::NAN));
    }

    /// Adds a success or, for an error, its message, so that errors must be equal too.
    pub fn outcome<T, E: core::fmt::Display>(&mut self, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => {
                self.bytes(&[1]);
                Some(value)
            }
            Err(error) => {
                self.bytes(&[0]);
                let _ = core::fmt::write(&mut Feed(self), format_args!("{error}"));
                None
            }
        }
    }
}

struct Feed<'a>(&'a mut Digest);

impl core::fmt::Write for Feed<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.0.bytes(text.as_bytes());
        Ok(())
    }
}
