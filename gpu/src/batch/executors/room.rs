//! Checks for memory for a large batch.

use tercet_core::scalar::Scalar;
use tercet_host::parallel::Threads;

/// An engine that can say before a job whether its memory is large enough.
pub trait CanAllocate {
    /// True if buffers of these sizes in bytes could be allocated now, all together. Others may take the memory in the
    /// meantime, so a job can still fail. An engine that cannot tell returns true, and the job itself reports a lack of
    /// memory.
    fn has_room(&self, bytes: &[usize]) -> bool {
        let _ = bytes;
        true
    }
}

/// The host's memory is not counted.
impl CanAllocate for Scalar {}

/// The host's memory is not counted.
impl CanAllocate for Threads {}

#[cfg(feature = "cuda")]
impl CanAllocate for crate::engine::Cuda {
    fn has_room(&self, bytes: &[usize]) -> bool {
        self.can_allocate(bytes).unwrap_or(true)
    }
}

/// On each of the devices, although its share of the work may be less.
#[cfg(feature = "cuda")]
impl CanAllocate for crate::engine::Cudas {
    fn has_room(&self, bytes: &[usize]) -> bool {
        self.can_allocate(bytes).unwrap_or(true)
    }
}

/// Returns the largest number of `wanted` requests, at least one, for which the engine has room for the buffers of
/// `bytes`: `wanted`, or the first of its halves that fits.
pub(super) fn most<const N: usize>(
    engine: &impl CanAllocate,
    wanted: usize,
    bytes: impl Fn(usize) -> [usize; N],
) -> usize {
    let mut most = wanted.max(1);
    while most > 1 && !engine.has_room(&bytes(most)) {
        most /= 2;
    }
    most
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    struct Bytes(usize);

    impl CanAllocate for Bytes {
        fn has_room(&self, bytes: &[usize]) -> bool {
            bytes.iter().sum::<usize>() <= self.0
        }
    }

    #[test]
    fn as_many_as_fit_by_halves() {
        let most = |room, wanted| most(&Bytes(room), wanted, |count| [10 * count, count]);
        assert_eq!(most(1100, 100), 100);
        assert_eq!(most(1099, 100), 50);
        assert_eq!(most(100, 100), 6);
        // One request is tried in any case.
        assert_eq!(most(0, 100), 1);
        assert_eq!(most(0, 0), 1);
    }
}
