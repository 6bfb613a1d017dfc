//! From floats to int8 codes to clusters: the part of core that a small firmware image needs to learn from a sensor.

use super::online::{DIMS, POINTS};
use super::{Digest, Memory};
use crate::cluster::Init;
use crate::number::Random;
use crate::number::max::abs_max;
use crate::quant::{Grid, QuantError, int8};

pub(super) fn run(report: &mut dyn FnMut(&'static str, u64)) {
    report("cluster/quantized/8x6", quantized());
}

#[inline(never)]
fn quantized() -> u64 {
    Quantized::new().run()
}

/// All memory of quantizing 96 points of 6 floats and of Lloyd's loop over their codes: 3,984 bytes.
#[derive(Debug)]
pub struct Quantized {
    values: [f32; POINTS * DIMS],
    clusters: Memory,
}

impl Default for Quantized {
    fn default() -> Self {
        Self::new()
    }
}

impl Quantized {
    /// Returns all zeros.
    pub const fn new() -> Self {
        Self {
            values: [0.0; POINTS * DIMS],
            clusters: Memory::new(),
        }
    }

    /// Creates the points, quantizes them symmetrically with one scale, clusters the codes from k-means++ seeds and
    /// digests the result: `cluster/quantized/8x6` of the table.
    pub fn run(&mut self) -> u64 {
        let mut random = Random::new(62);
        for point in self.values.chunks_exact_mut(DIMS) {
            // A sign, two bits of the exponent and three of the mantissa: groups, without code for arithmetic.
            let group = (random.next_u64() as u32 & 0x8170_0000) + 0x3F00_0000;
            for value in point {
                *value = f32::from_bits(group | random.next_u64() as u32 & 0x000F_FFFF);
            }
        }
        let mut digest = Digest::new();
        if let Ok(scale) = self.quantize() {
            digest.f32(scale);
            digest.i8s(self.clusters.values());
            self.clusters.digest(Init::PlusPlus, &mut digest);
        }
        digest.value()
    }

    /// Does the same as [`int8::symmetric`] for one group, without the exact sum that other methods need: writes the
    /// codes and returns their scale.
    fn quantize(&mut self) -> Result<f32, QuantError> {
        let largest = abs_max(&self.values).ok_or(QuantError::Range)?;
        let grid = Grid::symmetric(largest, int8::LIMIT)?;
        grid.apply(&self.values, self.clusters.values_mut())?;
        Ok(grid.scale)
    }
}
