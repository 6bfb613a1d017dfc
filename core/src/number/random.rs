//! The one seeded generator: Xoshiro256++ (Blackman and Vigna), seeded through SplitMix64.

/// A `Xoshiro256PlusPlus` stream, equal to `rand_xoshiro`'s after `seed_from_u64`.
///
/// 32 bytes of state; a draw is a dozen integer operations. Not for cryptography. The float draws use only exact
/// steps, so they too are the same on every machine.
///
/// ```
/// use tercet_core::number::Random;
///
/// let mut random = Random::new(7);
/// let die = 1 + random.below(6);
/// assert!((1..=6).contains(&die));
/// assert!((-6.0..6.0).contains(&random.normal()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// Seeds the generator: four SplitMix64 outputs become the state. Any seed is valid.
    pub const fn new(seed: u64) -> Self {
        let (a, mix) = split_mix(seed);
        let (b, mix) = split_mix(mix);
        let (c, mix) = split_mix(mix);
        let (d, _) = split_mix(mix);
        Self {
            state: [a, b, c, d],
        }
    }

    /// Returns the next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Draws a number in `0..n`; returns 0 if `n` is 0.
    ///
    /// The result is the high half of 64 bits times n (Lemire's method without the rejection). It always uses one
    /// draw, and no value's probability differs by more than 2⁻⁶⁴.
    pub const fn below(&mut self, n: u64) -> u64 {
        ((self.next_u64() as u128 * n as u128) >> 64) as u64
    }

    /// Draws a number in [0, 1), a multiple of 2⁻²⁴.
    pub const fn unit_f32(&mut self) -> f32 {
        const STEP: f32 = 1.0 / 16_777_216.0;
        (self.next_u64() >> 40) as f32 * STEP
    }

    /// Draws a number in [−1, 1), a multiple of 2⁻²⁴.
    pub const fn signed_f32(&mut self) -> f32 {
        const STEP: f32 = 1.0 / 16_777_216.0;
        ((self.next_u64() >> 39) as i32 - (1 << 24)) as f32 * STEP
    }

    /// Draws a nearly normal number with mean 0 and variance 1: twelve uniform 20-bit numbers, summed and centred
    /// (Irwin and Hall's distribution). It uses four 64-bit draws.
    ///
    /// A multiple of 2⁻²¹ in (−6, 6), exact: the centred integer is below 2²⁴. Its tails are lighter than the
    /// normal's (excess kurtosis −0.1), so it is for test inputs, not for statistics.
    pub const fn normal(&mut self) -> f32 {
        const STEP: f32 = 1.0 / 2_097_152.0;
        const MASK: u64 = (1 << 20) - 1;
        let mut sum = 0;
        let mut draw = 0;
        while draw < 4 {
            let bits = self.next_u64();
            sum += (bits & MASK) + (bits >> 20 & MASK) + (bits >> 40 & MASK);
            draw += 1;
        }
        // 2 · sum − 12 · (2²⁰ − 1) has a symmetric range.
        (2 * sum as i32 - 12 * MASK as i32) as f32 * STEP
    }
}

/// Does one step of SplitMix64; returns its output and its next state.
const fn split_mix(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31), state)
}
