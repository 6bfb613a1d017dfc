//! Kernels for the instruction sets of desktop processors, and the choice between them.
//!
//! Each operation has a folder (`blocks`, `cluster`, `linear` …). It contains the operation's table, which has one
//! function per kernel, over slices, for the work of one thread; the loops that sets share, written once; and, for each
//! set with its own kernels, a file or a folder with the set's name and its table `KERNELS`. The file of a set here
//! (`avx2.rs`) combines its tables, and uses a lesser set's tables if it has none. The tables of [`Isa::Scalar`] hold
//! the functions of [`tercet_core::scalar`]. Every kernel gives the bits of [`tercet_core::scalar`]; the conformance
//! suite runs over each [`Backend`].

#![cfg_attr(
    not(all(feature = "simd", target_arch = "x86_64")),
    allow(
        dead_code,
        unused_imports,
        unused_macros,
        reason = "loops are written for all sets: aarch64 has no kernels for some, other processors and builds without `simd` have none at all"
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
mod model;
pub(crate) mod palette;
mod past;
pub(crate) mod peak;
pub(crate) mod quantize;
pub(crate) mod search;
mod sets;
mod staging;
mod stores;
pub(crate) mod stream;
mod taken;
pub(crate) mod train;
mod vectors;

#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod amx;
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod avx2;
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod avx512;
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod avx512_vnni;
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod avx_vnni;
#[cfg(all(feature = "simd", target_arch = "aarch64", target_endian = "little"))]
mod dotprod;
#[cfg(all(feature = "simd", target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod scalar;
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod sse41;

pub use backend::{Backend, BackendError};
pub(crate) use counts::Counts;
pub use isa::Isa;
pub(crate) use staging::Staging;
pub(crate) use stores::{Ahead, Stores, ask_to_write};
pub use taken::{Taken, taken};

/// Returns the values as f32, if they are f32.
pub(crate) fn as_f32<T: Element>(values: &[T]) -> Option<&[f32]> {
    cast(values)
}

/// Returns the slice itself, if `T` is `U`.
fn cast<T: 'static, U: 'static>(values: &[T]) -> Option<&[U]> {
    if TypeId::of::<T>() != TypeId::of::<U>() {
        return None;
    }
    // SAFETY: the types are one.
    Some(unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) })
}
