//! The places of values, and the copies between them.

/// A device and a host as a cache sees them.
///
/// Values never change. A method that panics leaves the cache as it was without the value concerned.
pub trait Tiers {
    /// A value on the device.
    type Device;
    /// The same value on the host.
    type Host;
    /// The error of a copy.
    type Error;

    /// Copies a value to the device.
    ///
    /// # Errors
    /// The device's. If it has no room ([`Tiers::is_full`]), the cache makes some and tries again.
    fn upload(&self, host: &Self::Host) -> Result<Self::Device, Self::Error>;

    /// Copies a value to the host when it leaves the device.
    ///
    /// # Errors
    /// The device's. The value is then no longer in the cache.
    fn download(&self, device: &Self::Device) -> Result<Self::Host, Self::Error>;

    /// Returns the bytes that a value takes on the device.
    fn device_bytes(&self, device: &Self::Device) -> usize;

    /// Returns the bytes that a value takes on the host.
    fn host_bytes(&self, host: &Self::Host) -> usize;

    /// Returns the bytes that a value on the host will take on the device.
    fn uploaded_bytes(&self, host: &Self::Host) -> usize;

    /// True if an upload failed for lack of memory.
    fn is_full(&self, error: &Self::Error) -> bool {
        let _ = error;
        false
    }
}

/// A computed value, in either place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Computed<D, H> {
    /// On the device. It took its memory before the cache could make room.
    Device(D),
    /// On the host. The cache makes room, then uploads it, and keeps this copy as long as nothing else needs the
    /// memory.
    Host(H),
}
