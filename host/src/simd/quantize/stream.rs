//! Lines of codes past the caches.

use super::lanes::Lanes;
use super::stats::VECTORS;
use crate::simd::stores::{LINE, Line};

/// Copies lines; a fence is to follow.
///
/// # Safety
/// The processor runs the set.
#[inline(always)]
pub(in crate::simd) unsafe fn stream<S: Lanes>(from: &[Line], to: &mut [Line]) {
    for (from, to) in from.iter().zip(to) {
        for at in (0..LINE).step_by(VECTORS * S::WIDTH) {
            // SAFETY: the set runs here; a line has whole steps of codes, and lies on its boundary.
            unsafe { S::stream(S::load(from.0.as_ptr().add(at)), to.0.as_mut_ptr().add(at)) }
        }
    }
}
