//! Results of the table: where values are, which values leave, and whether there is room.

use std::sync::Arc;
use std::time::Duration;

/// The place where a value was found.
pub(super) enum Location<D, H> {
    Device(Arc<D>),
    /// Only on the host, with the time when it was computed.
    Host(Arc<H>, Duration),
    Nowhere,
}

/// A value that left the device, and is nowhere else.
pub(super) struct Victim<K, D> {
    pub(super) key: K,
    pub(super) value: Arc<D>,
    pub(super) born: Duration,
}

/// Values that left the device to make room: those that are nowhere else, and the bytes of all of them beyond the
/// needed room. These bytes are not available until [`super::table::Table::settle`], because the values stay until they
/// have been copied.
pub(super) struct Evicted<K, D> {
    pub(super) victims: Vec<Victim<K, D>>,
    pub(super) surplus: usize,
}

/// The result of an attempt to reserve room on the device.
pub(super) enum Reserved<K, D> {
    /// There is room, once these are gone.
    Room(Evicted<K, D>),
    /// Not before values that others evicted are gone.
    Later,
    /// Never: the budget is smaller, or handles hold too much.
    Never,
}

/// Values that are dropped outside the cache's lock: destructors may take long.
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
