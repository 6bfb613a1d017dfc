//! Values that a cache returns.

use std::error::Error;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A value on the device, which stays there as long as this lives: it is not evicted, and if the cache has removed it,
/// only this handle owns it.
pub struct Pinned<D> {
    pub(super) value: Arc<D>,
}

impl<D> Deref for Pinned<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.value
    }
}

impl<D> Clone for Pinned<D> {
    fn clone(&self) -> Self {
        Self {
            value: Arc::clone(&self.value),
        }
    }
}

impl<D: fmt::Debug> fmt::Debug for Pinned<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pinned").field(&self.value).finish()
    }
}

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheError<C, T> {
    /// It could not be computed.
    Compute(C),
    /// It could not be copied to the device.
    Tier(T),
}

impl<C: fmt::Display, T: fmt::Display> fmt::Display for CacheError<C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compute(error) => error.fmt(f),
            Self::Tier(error) => error.fmt(f),
        }
    }
}

impl<C: Error, T: Error> Error for CacheError<C, T> {}
