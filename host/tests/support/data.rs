//! Seeded test data that stresses quantizers.

use std::f64::consts::PI;
use std::fs;
use std::path::Path;

use tercet_core::number::Random;

/// What a tensor's values look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Gaussian, standard deviation 0.02.
    Normal,
    /// Uniform in ±1.
    Uniform,
    /// Laplace, mean magnitude 0.05.
    Laplace,
    /// Blocks from 2⁻¹⁴⁹ to 2⁻⁹⁰: scales whose reciprocals overflow, and scales that f16 rounds to 0.
    Subnormal,
    /// Blocks around the smallest f16 scales.
    Tiny,
    /// Up to the largest scale that f16 holds.
    Huge,
    /// Every value with its own exponent.
    Mixed,
    /// Zeros of both signs.
    Zero,
    /// Exact halves of the rounding grid and their neighbours.
    Ties,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Normal,
        Self::Uniform,
        Self::Laplace,
        Self::Subnormal,
        Self::Tiny,
        Self::Huge,
        Self::Mixed,
        Self::Zero,
        Self::Ties,
    ];

    /// `len` finite values in blocks of `block`; the largest magnitude stays below 65,520 · `reach`, so that
    /// max|x| / `reach` is a finite f16.
    pub fn values(self, len: usize, reach: f32, block: usize) -> Vec<f32> {
        let mut draw = Draw(Random::new(self as u64 + 1));
        let mut values = Vec::with_capacity(len);
        while values.len() < len {
            // Some kinds choose a magnitude for a whole block.
            let level = draw.unit();
            for _ in 0..block.min(len - values.len()) {
                values.push(self.value(&mut draw, level, reach));
            }
        }
        values
    }

    fn value(self, draw: &mut Draw, level: f64, reach: f32) -> f32 {
        let sign = draw.sign();
        match self {
            Self::Normal => draw.normal() * 0.02,
            Self::Uniform => sign * draw.unit() as f32,
            Self::Laplace => sign * (-(1.0 - draw.unit()).ln() * 0.05) as f32,
            Self::Subnormal => {
                let top = if level < 0.25 {
                    f64::from(f32::from_bits((level * 92.0).exp2() as u32))
                } else {
                    (level * 50.0 - 140.5).exp2()
                };
                sign * (top * draw.unit()) as f32
            }
            Self::Tiny => sign * ((level * 14.0 - 30.0).exp2() * draw.unit()) as f32 * reach,
            Self::Huge => sign * (65_519.0 * draw.unit()) as f32 * reach,
            Self::Mixed => sign * (draw.unit() * 30.0 - 15.0).exp2() as f32,
            Self::Zero => sign * 0.0,
            Self::Ties => {
                // A grid of halves whose largest value, `reach` steps, appears in most blocks.
                let unit = ((level * 16.0).floor() - 8.0).exp2() as f32;
                let steps = draw.0.below(2 * reach as u64 + 1) as f32 / 2.0;
                let nudge = draw.0.below(3) as i32 - 1;
                let magnitude = if steps == 0.0 || steps == reach {
                    steps
                } else {
                    f32::from_bits(steps.to_bits().wrapping_add_signed(nudge))
                };
                sign * magnitude * unit
            }
        }
    }
}

/// Draws from the project's generator.
pub struct Draw(pub Random);

impl Draw {
    /// Uniform in 0..1, 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// 1 or −1.
    pub fn sign(&mut self) -> f32 {
        if self.0.next_u64() >> 63 == 0 {
            1.0
        } else {
            -1.0
        }
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f32 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        (radius * (2.0 * PI * self.unit()).cos()) as f32
    }
}

/// Writes little-endian f32.
pub fn write_f32(path: &Path, values: &[f32]) {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
