//! The atomics of the list, from the target, a feature or loom.

/// The word that is swapped at once: 64 bits if the target can.
#[cfg(target_has_atomic = "64")]
pub(super) type Word = u64;
#[cfg(not(target_has_atomic = "64"))]
pub(super) type Word = u32;

#[cfg(not(all(test, loom)))]
mod imp {
    // Links are only loaded and stored, which every target can do.
    #[cfg(not(target_has_atomic = "64"))]
    pub(crate) use AtomicU32 as AtomicWord;
    pub(crate) use core::sync::atomic::AtomicU16;
    #[cfg(target_has_atomic = "32")]
    pub(crate) use core::sync::atomic::AtomicU32;
    #[cfg(target_has_atomic = "64")]
    pub(crate) use core::sync::atomic::AtomicU64 as AtomicWord;
    #[cfg(not(target_has_atomic = "32"))]
    pub(crate) use portable_atomic::AtomicU32;
}

#[cfg(all(test, loom))]
mod imp {
    pub(crate) use loom::sync::atomic::{AtomicU16, AtomicU32, AtomicU64 as AtomicWord};
}

pub(super) use imp::{AtomicU16, AtomicU32, AtomicWord};
