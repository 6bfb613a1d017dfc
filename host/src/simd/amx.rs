//! Kernels for AMX-int8: products of tiles of 16 rows of 64 bytes.
//!
//! What is not a product of matrices is the work of [`super::avx512_vnni`], which every processor with AMX runs.
//!
//! Where the processor has tiles, a small product is compared with plain sums before they are used (`check`); where it differed, there
//! would be no AMX.
//!
//! No tile instruction has an intrinsic in stable Rust, so they are assembly, all of it in [`tile`] and [`peak`].
//!
//! Clustering was timed on a Xeon of 2 cores (model 167; in registers 3,130 · 10⁹ multiply-adds a second and core). 64 points by 256
//! centroids of 128 coordinates, all from near caches, take 0.82 µs for the products, 1.19 with the sums stored and 1.75 with them
//! compared: a tile is stored in some 18 cycles, longer than a product takes, and the three hardly overlap. So the number of sums
//! decides, more than that of coordinates, up to 128 of them.
//!
//! Layers on the same processor, one thread: of 2,048 rows, columns and activations each, products take half of the time (from near caches
//! 1,940 · 10⁹ multiply-adds a second for pieces of 512 columns, of which loading and storing sums is a quarter; 1,400 for longer pieces,
//! whose operands come from the second cache). Writing the outputs takes a quarter: a row's part is a few lines, far from the next
//! row's. With 128 activations, unpacking and packing weights take as long as their products. A block of 32 columns ([`Layout`]) is half a
//! step, after which each of its sums is scaled in 64 bits: that takes longer than the product. Prefetches of the inner loop's operands
//! made it slower, and those of the next activations changed nothing.
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
use super::sets::{Kernels, Set};

/// The set.
pub(in crate::simd) static SET: Set = Set {
    isa: Isa::Amx,
    runs,
    kernels: Kernels {
        cluster: &cluster::KERNELS,
        linear: &linear::KERNELS,
        peak: &peak::KERNELS,
        search: &search::KERNELS,
        ..super::avx512_vnni::SET.kernels
    },
};

/// Whether this processor and its system run the set.
fn runs() -> bool {
    (super::avx512_vnni::SET.runs)() && detect::available()
}
