//! What the table answers: where values are, what leaves, whether there is room.

use std::sync::Arc;
use std::time::Duration;

/// Where a value was found.
pub(super) enum Found<D, H> {
    Device(Arc<D>),
    /// Only there, and when it was computed.
    Host(Arc<H>, Duration),
    Nowhere,
}

/// A value that left the device, and is nowhere else.
pub(super) struct Victim<K, D> {
    pub(super) key: K,
    pub(super) value: Arc<D>,
    pub(super) born: Duration,
}

/// What left the device for a purpose: values that are nowhere else, and the bytes of all that left beyond what was needed. These are
/// nobody's until [`super::table::Table::settle`], since the values are there until they have been copied.
pub(super) struct Evicted<K, D> {
    pub(super) victims: Vec<Victim<K, D>>,
    pub(super) surplus: usize,
}

/// Whether there is room on the device.
pub(super) enum Reserved<K, D> {
    /// There is, once these have gone.
    Room(Evicted<K, D>),
    /// Not before what others evicted has gone.
    Later,
    /// The budget is less, or handles hold too much.
    Never,
}

/// What is dropped once the cache's lock is not held: destructors may take long.
pub(super) struct Litter<D, H> {
    pub(super) device: Vec<Arc<D>>,
    pub(super) host: Vec<Arc<H>>,
}

impl<D, H> Default for Litter<D, H> {
    fn default() -> Self {
        Self {
            device: Vec::new(),
            host: Vec::new(),
        }
    }
}
