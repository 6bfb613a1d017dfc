//! Kernels for the instruction sets of desktop processors, and the choice between them.
//!
//! An operation has a table of its kernels (`quantize.rs`, `blocks.rs` …): one function a kernel, over slices, for the part
//! of the work that one thread does. A set's table takes from a lesser set what it has no kernel of its own for, and
//! [`Isa::Scalar`]'s holds the functions of [`tercet_core::scalar`]. The kernels lie in a folder for each set, a file an
//! operation. Every one of them gives the bits of [`tercet_core::scalar`]; the conformance suite runs over each [`Backend`].

use std::any::TypeId;

use tercet_core::number::Element;

mod backend;
mod isa;
pub(crate) mod linear;
pub(crate) mod quantize;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_vnni;

pub use backend::{Backend, BackendError};
pub use isa::Isa;

/// The values as f32, where that is what they are.
pub(crate) fn as_f32<T: Element>(values: &[T]) -> Option<&[f32]> {
    if TypeId::of::<T>() != TypeId::of::<f32>() {
        return None;
    }
    // SAFETY: the type is f32, so this is the slice itself.
    Some(unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) })
}
