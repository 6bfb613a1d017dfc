//! Multiply-adds over tiles, with four sums, so that no product waits for the one before.

use super::tile::{Shape, Tiles};
use crate::simd::avx512_vnni;
use crate::simd::peak::{Peak, Turns, turns};

/// The loops that measure arithmetic.
pub(in crate::simd) const KERNELS: Peak = Peak {
    int8: INT8,
    ternary: INT8,
    ..avx512_vnni::peak::KERNELS
};

/// `tdpbssd`.
const INT8: Turns = Turns::new(bytes, 4 * 16 * 16 * 64);

fn bytes(turns: u64) {
    // SAFETY: a table is only reached through a backend that was found to run its set. The code only writes the tiles
    // that are named.
    unsafe {
        let _tiles = Tiles::new(Shape {
            first: 16,
            second: 16,
            words: 16,
        });
        turns!(turns, "tdpbssd tmm0, tmm4, tmm6
            tdpbssd tmm1, tmm4, tmm7
            tdpbssd tmm2, tmm5, tmm6
            tdpbssd tmm3, tmm5, tmm7",
            "tmm0" "tmm1" "tmm2" "tmm3");
    }
}
