//! Data that calls come back to: with the host, and on the device where that pays.
//!
//! The handles ([`ResidentPoints`] tells of them) have the dispatcher's operations. [`Held`] knows where the data lies and whether it is to
//! cross, and [`Residency`] is what a device does with it; the processor's engines have the host's data.

mod calls;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod held;

pub use calls::{ResidentLayer, ResidentPoints, ResidentRows};
pub use device::Residency;
pub(super) use held::Held;

use super::Engine;

/// The device among engines that are not to do a call, a bit each.
const DEVICE: u8 = 1 << Engine::Cuda as u8;
