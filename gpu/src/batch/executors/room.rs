//! Whether there is memory for a large batch.

use tercet_core::scalar::Scalar;
use tercet_host::parallel::Threads;

/// An engine that can tell before a job whether its memory would hold it.
pub trait Room {
    /// Whether buffers of so many bytes each could be had now, all together. Others may take the memory in the meantime, so that a job
    /// can fail all the same; where the engine cannot tell, it answers true, and the job tells.
    fn has_room(&self, bytes: &[usize]) -> bool {
        let _ = bytes;
        true
    }
}

/// The host's memory is not counted.
impl Room for Scalar {}

/// The host's memory is not counted.
impl Room for Threads {}

#[cfg(feature = "cuda")]
impl Room for crate::engine::Cuda {
    fn has_room(&self, bytes: &[usize]) -> bool {
        self.can_allocate(bytes).unwrap_or(true)
    }
}

/// On each of the devices, though a share of the work may be less.
#[cfg(feature = "cuda")]
impl Room for crate::engine::Cudas {
    fn has_room(&self, bytes: &[usize]) -> bool {
        self.can_allocate(bytes).unwrap_or(true)
    }
}

/// The most of `wanted` requests, at least one, for which the engine has room for the buffers that `bytes` names: `wanted`, or the first
/// of its halves that fits.
pub(super) fn most<const N: usize>(
    engine: &impl Room,
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

    impl Room for Bytes {
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
        // One is tried in any case.
        assert_eq!(most(0, 100), 1);
        assert_eq!(most(0, 0), 1);
    }
}
