//! A sorting network for one block.

use super::rule::BLOCK_LEN;

/// Sorts the first `len` values, rounded up to a power of two, in descending order.
///
/// Batcher's bitonic network: for a power of two n, n/2 · log n · (log n + 1)/2 exchanges at fixed places. Vector
/// units execute many of them at a time. `core`'s own sort contains a panic for inconsistent orders.
pub(super) fn descending(values: &mut [u32; BLOCK_LEN], len: usize) {
    let levels = len
        .next_power_of_two()
        .trailing_zeros()
        .min(BLOCK_LEN.ilog2());
    let (used, _) = values.split_at_mut_checked(1 << levels).unwrap_or_default();
    for level in 1..=levels {
        // Two sorted halves: compare each with the other's mirror image, after which each holds its side of all
        // values.
        for pair in used.chunks_exact_mut(1 << level) {
            let (high, low) = pair.split_at_mut(pair.len() / 2);
            high.iter_mut().zip(low.iter_mut().rev()).for_each(exchange);
        }
        // Then halves of halves, each of which rises and falls.
        for step in (1..level).rev() {
            for pair in used.chunks_exact_mut(1 << step) {
                let (high, low) = pair.split_at_mut(pair.len() / 2);
                high.iter_mut().zip(low).for_each(exchange);
            }
        }
    }
}

fn exchange((high, low): (&mut u32, &mut u32)) {
    let (a, b) = (*high, *low);
    *high = a.max(b);
    *low = a.min(b);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Random;

    /// A network that sorts all sequences of 0 and 1 sorts everything (Knuth). All of length 16, then random ones.
    #[test]
    fn network_sorts() {
        for bits in 0u32..1 << 16 {
            let mut values = core::array::from_fn(|i| if i < 16 { bits >> i & 1 } else { 7 });
            descending(&mut values, 16);
            assert!(values[..16].is_sorted_by(|a, b| a >= b), "{bits:b}");
            assert_eq!(values[..16].iter().sum::<u32>(), bits.count_ones());
            assert!(values[16..].iter().all(|&value| value == 7));
        }
        let mut random = Random::new(3);
        for _ in 0..2000 {
            let len = random.below(257) as usize;
            let largest = 1 << random.below(32);
            let drawn = |i| {
                if i < len {
                    random.below(largest) as u32
                } else {
                    0
                }
            };
            let mut values = core::array::from_fn(drawn);
            let mut expected = values;
            expected.sort_unstable_by(|a, b| b.cmp(a));
            descending(&mut values, len);
            assert_eq!(values, expected, "{len}");
        }
    }
}
