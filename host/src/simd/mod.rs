//! Kernels for the instruction sets of desktop processors, and the choice between them.
//!
//! An operation has a table of its kernels (`quantize.rs`, `blocks.rs` …): one function a kernel, over slices, for the part
//! of the work that one thread does. A set's table takes from a lesser set what it has no kernel of its own for, and
//! [`Isa::Scalar`]'s holds the functions of [`tercet_core::scalar`]. The kernels lie in a folder for each set, a file an
//! operation; where the sets differ in their width alone, a loop is written once beside the table (`quantize/`, `cluster/`, `search/`), and
//! the set's file says what its vectors are. Every one of them gives the bits of [`tercet_core::scalar`]; the conformance suite runs over each [`Backend`].

#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(
        dead_code,
        unused_imports,
        unused_macros,
        reason = "loops are written for all sets: aarch64 has no kernels for some, other processors have none at all"
    )
)]

use std::any::TypeId;

use tercet_core::number::Element;

mod backend;
pub(crate) mod blocks;
pub(crate) mod cluster;
mod compare;
mod counts;
mod exact;
pub(crate) mod float_search;
mod isa;
pub(crate) mod linear;
mod magnitudes;
mod many_search;
pub(crate) mod palette;
mod past;
pub(crate) mod peak;
pub(crate) mod quantize;
pub(crate) mod search;
mod staging;
mod stores;
pub(crate) mod stream;
mod taken;

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_vnni;
#[cfg(target_arch = "x86_64")]
mod avx_vnni;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod dotprod;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
#[cfg(target_arch = "x86_64")]
mod sse41;

pub use backend::{Backend, BackendError};
pub(crate) use counts::Counts;
pub use isa::Isa;
pub(crate) use staging::Staging;
pub(crate) use stores::{Ahead, Stores, ask_to_write};
pub use taken::{Taken, taken};

/// The values as f32, where that is what they are.
pub(crate) fn as_f32<T: Element>(values: &[T]) -> Option<&[f32]> {
    cast(values)
}

/// The slice itself, where `T` is `U`.
fn cast<T: 'static, U: 'static>(values: &[T]) -> Option<&[U]> {
    if TypeId::of::<T>() != TypeId::of::<U>() {
        return None;
    }
    // SAFETY: the types are one.
    Some(unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) })
}
