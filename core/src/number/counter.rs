//! A counter-based generator: its n-th draw does not need the draws before it.

/// Number of rounds.
const ROUNDS: u32 = 10;

/// Draws four words at a position of a stream: Philox4x32-10 (Salmon and others, "Parallel random numbers: as easy as
/// 1, 2, 3", 2011), as in Random123. `seed` is its key; its counter is the position (low word first), the stream
/// and 0.
///
/// A draw depends only on its place, not on earlier draws or on the caller. So batches, threads and restarts have no
/// influence. Not for cryptography. Twenty 32-bit products.
///
/// ```
/// use tercet_core::number::counter;
///
/// assert_eq!(counter(0, 0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
/// assert_ne!(counter(0, 0, 1), counter(0, 1, 0));
/// ```
#[inline]
pub const fn counter(seed: u64, stream: u32, position: u64) -> [u32; 4] {
    let key = [seed as u32, (seed >> 32) as u32];
    philox([position as u32, (position >> 32) as u32, stream, 0], key)
}

/// The function itself, for any counter and key.
const fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let ([mut a, mut b, mut c, mut d], [mut k0, mut k1]) = (counter, key);
    let mut round = 0;
    while round < ROUNDS {
        let (left, right) = (a as u64 * 0xD251_1F53, c as u64 * 0xCD9E_8D57);
        (a, c) = ((right >> 32) as u32 ^ b ^ k0, (left >> 32) as u32 ^ d ^ k1);
        (b, d) = (right as u32, left as u32);
        k0 = k0.wrapping_add(0x9E37_79B9);
        k1 = k1.wrapping_add(0xBB67_AE85);
        round += 1;
    }
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random123's own test vectors: all zeros, all ones, and digits of π.
    #[test]
    fn known_answers_are_given() {
        assert_eq!(
            philox([0; 4], [0; 2]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        assert_eq!(
            philox(pi, [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }
}
