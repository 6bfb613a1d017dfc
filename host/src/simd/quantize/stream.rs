//! Copies lines of codes, bypassing the caches.

use super::lanes::{Quantizing, VECTORS};
use crate::simd::stores::{LINE, Line};

/// Copies lines; a fence must follow.
#[inline(always)]
pub(in crate::simd) fn stream<S: Quantizing>(set: S, from: &[Line], to: &mut [Line]) {
    for (from, to) in from.iter().zip(to) {
        for at in (0..LINE).step_by(VECTORS * set.lanes()) {
            set.write_codes(set.read_codes(&from.0[at..]), &mut to.0[at..], true);
        }
    }
}
