//! Counts by bucket: places with vectors, increments one by one.
//!
//! A value takes one increment in memory, and current processors finish about one per cycle: that, and not memory, is
//! the limit.

use super::lanes::{Quantizing, VECTORS, Value};
use crate::simd::counts::{TABLES, Tables};

/// Values whose places are found before they are counted. A multiple of a step, and of [`GROUP`].
const BLOCK: usize = 256;

/// Values counted without a branch between them: two rounds of the tables.
const GROUP: usize = 2 * TABLES;

/// Adds one to the count of each value's bucket.
#[inline(always)]
pub(in crate::simd) fn count<S: Quantizing, T: Value>(set: S, values: &[T], tables: &mut Tables) {
    let step = VECTORS * set.lanes();
    assert!(BLOCK.is_multiple_of(step));
    let mut places = [0u16; BLOCK];
    for values in values.chunks(BLOCK) {
        let mut padded = [T::default(); BLOCK];
        let block = match values.len() {
            BLOCK => values,
            len => {
                padded[..len].copy_from_slice(values);
                &padded
            }
        };
        for at in (0..BLOCK).step_by(step) {
            let mut keys = [set.pattern(0); VECTORS];
            for (vector, key) in keys.iter_mut().enumerate() {
                *key = set.ordered(set.values(&block[at + vector * set.lanes()..]));
            }
            // SAFETY: a step lies whole within the block's places.
            unsafe { set.store_tops(keys, places.as_mut_ptr().add(at)) };
        }
        // Equal neighbours, such as the zeros of a ReLU, go to different tables: an addition to a value that was just
        // stored would wait for it.
        let (groups, rest) = places[..values.len()].as_chunks::<GROUP>();
        for group in groups {
            for (at, &place) in group.iter().enumerate() {
                tables[at % TABLES][usize::from(place)] += 1;
            }
        }
        for &place in rest {
            tables[0][usize::from(place)] += 1;
        }
    }
}
