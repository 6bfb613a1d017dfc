//! Data for repeated calls: on the host, and on the device if that pays off.
//!
//! The handles have the dispatcher's operations ([`ResidentPoints`] explains them). [`DeviceCopy`] records where the
//! data is and decides when to copy it. [`Residency`] is the device's side. The engines of the processor use the host's
//! data.

mod calls;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod cudas;
mod device;
mod device_copy;

pub use calls::{ResidentLayer, ResidentPoints, ResidentRows};
pub use device::Residency;
pub(super) use device_copy::DeviceCopy;

use super::Engine;

/// The device in a set of excluded engines, one bit each.
const DEVICE: u8 = 1 << Engine::Cuda as u8;
