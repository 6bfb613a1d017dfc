//! Counts by bucket: places by vectors, increments one by one.
//!
//! A value takes one increment in memory, and a processor of today finishes about one in a cycle: that, and not memory, is the bound.

use super::lanes::{Lanes, Value};
use super::stats::VECTORS;
use crate::simd::counts::{TABLES, Tables};

/// Values whose places are found before they are counted. A multiple of a step, and of [`GROUP`].
const BLOCK: usize = 256;

/// Values counted without a branch between them: two rounds of the tables.
const GROUP: usize = 2 * TABLES;

/// Adds one to the count of each value's bucket.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
pub(in crate::simd) unsafe fn count<S: Lanes, T: Value>(values: &[T], tables: &mut Tables) {
    let step = VECTORS * S::WIDTH;
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
        // SAFETY: the set runs here; steps lie whole within the block and within its places.
        unsafe {
            for at in (0..BLOCK).step_by(step) {
                let from = block.as_ptr().add(at);
                let mut keys = [S::splat(0); VECTORS];
                for (vector, key) in keys.iter_mut().enumerate() {
                    *key = S::ordered(T::read::<S>(from.add(vector * S::WIDTH)));
                }
                S::store_tops(keys, places.as_mut_ptr().add(at));
            }
        }
        // Neighbours that are equal, such as the zeros of a ReLU, go to different tables: an addition to what was stored just
        // before would wait for it.
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
