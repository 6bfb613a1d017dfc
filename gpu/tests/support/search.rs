//! Rows and hits of searches.

use tercet_core::number::Random;
use tercet_core::search::{Hit, Score};

/// Codes: of all values, of few so that scores tie, and the ends alone.
pub fn codes(len: usize, seed: u64) -> Vec<i8> {
    let mut random = Random::new(seed);
    let mut draw = || match seed % 3 {
        0 => random.next_u64() as i8,
        1 => random.below(3) as i8 - 1,
        _ => [-128, 127][random.below(2) as usize],
    };
    (0..len).map(|_| draw()).collect()
}

/// Hits by index and the bits of their value; a NaN's are the machine's own.
pub fn told<S: Score>(hits: &[Hit<S>]) -> Vec<(usize, u32)> {
    let bits = |x: f32| if x.is_nan() { u32::MAX } else { x.to_bits() };
    let hit = |hit: &Hit<S>| (hit.index, bits(hit.score.value()));
    hits.iter().map(hit).collect()
}
