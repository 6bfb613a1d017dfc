//! Data for repeated calls: on the host, and on the device if that pays off.
//!
//! The handles have the dispatcher's operations ([`ResidentPoints`] explains them). [`Held`] records where the data is
//! and decides when to copy it. [`Residency`] is the device's side. The engines of the processor use the host's data.

mod calls;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod held;

pub use calls::{ResidentLayer, ResidentPoints, ResidentRows};
pub use device::Residency;
pub(super) use held::Held;

use super::Engine;

/// The device in a set of excluded engines, one bit each.
const DEVICE: u8 = 1 << Engine::Cuda as u8;
