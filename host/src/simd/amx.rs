//! Kernels for AMX-int8: products of tiles of 16 rows of 64 bytes.
//!
//! All work except matrix products is done by [`super::avx512_vnni`], which every processor with AMX supports.
//!
//! If the processor has tiles, a small product is compared with plain sums before they are used (`check`); if it
//! differs, AMX counts as absent.
//!
//! Stable Rust has no intrinsics for tile instructions, so they are written in assembly, all of it in [`tile`] and
//! [`peak`].
//!
//! Clustering was timed on a Xeon with 2 cores (model 167; in registers 3,130 · 10⁹ multiply-adds per second and core).
//! 64 points by 256 centroids of 128 coordinates, all from near caches, take 0.82 µs for the products, 1.19 µs with the
//! sums stored and 1.75 µs with them compared: storing a tile takes some 18 cycles, longer than a product, and the
//! three hardly overlap. So up to 128 coordinates, the number of sums matters more than that of coordinates.
//!
//! Layers on the same processor, with one thread: for 2,048 rows, columns and activations each, products take half of
//! the time (from near caches 1,940 · 10⁹ multiply-adds per second for pieces of 512 columns, of which loading and
//! storing sums is a quarter; 1,400 for longer pieces, whose operands come from the second-level cache). Writing the
//! outputs takes a quarter, because a row's part has only a few lines, far from the next row's. With 128 activations,
//! unpacking and packing weights take as long as their products. A block of 32 columns ([`Layout`]) is half a step,
//! after which each of its sums is scaled in 64 bits: that takes longer than the product. Prefetching the inner loop's
//! operands made it slower, and prefetching the next activations changed nothing.
//!
//! [`Layout`]: tercet_core::linear::Layout

mod check;
mod detect;
mod tile;

#[path = "cluster/amx/mod.rs"]
pub(in crate::simd) mod cluster;
#[path = "linear/amx.rs"]
pub(in crate::simd) mod linear;
#[path = "peak/amx.rs"]
pub(in crate::simd) mod peak;
#[path = "search/amx.rs"]
pub(in crate::simd) mod search;

use super::Isa;
use super::sets::Kernels;

/// Its kernels.
pub(in crate::simd) const KERNELS: Kernels = Kernels {
    isa: Isa::Amx,
    runs,
    cluster: &cluster::KERNELS,
    linear: &linear::KERNELS,
    peak: &peak::KERNELS,
    search: &search::KERNELS,
    ..super::avx512_vnni::KERNELS
};

/// Returns true if this processor and its system support the set.
pub(in crate::simd) fn runs() -> bool {
    super::avx512_vnni::runs() && detect::available()
}
