//! Where values lie, and how they get from one place to the other.

/// A device and a host as a cache sees them.
///
/// Values never change. A method that panics leaves the cache as it was without the value concerned.
pub trait Tiers {
    /// A value on the device.
    type Device;
    /// The same value on the host.
    type Host;
    /// What can fail.
    type Error;

    /// Copies a value to the device.
    ///
    /// # Errors
    /// The device's; where it has no room ([`Tiers::is_full`]) the cache makes some and tries again.
    fn upload(&self, host: &Self::Host) -> Result<Self::Device, Self::Error>;

    /// Copies a value to the host, as it leaves the device.
    ///
    /// # Errors
    /// The device's. The value is then no longer in the cache.
    fn download(&self, device: &Self::Device) -> Result<Self::Host, Self::Error>;

    /// Bytes that a value takes on the device.
    fn device_bytes(&self, device: &Self::Device) -> usize;

    /// Bytes that a value takes on the host.
    fn host_bytes(&self, host: &Self::Host) -> usize;

    /// Bytes that a value will take on the device, where it is on the host.
    fn uploaded_bytes(&self, host: &Self::Host) -> usize;

    /// Whether an upload failed for want of memory.
    fn is_full(&self, error: &Self::Error) -> bool {
        let _ = error;
        false
    }
}

/// What computing a value gives: it, in either place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Computed<D, H> {
    /// On the device. It took its memory before the cache could make room.
    Device(D),
    /// On the host. The cache makes room, then uploads it, and keeps this copy as long as nothing else needs the memory.
    Host(H),
}
