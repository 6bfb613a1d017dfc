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
//! Of the rest, what to expect, by Intel's figures for Sapphire Rapids; nothing else here was timed on one. A product of full tiles,
//! `tdpbssd` and its kin, is 16 · 16 · 64 multiply-adds, and one begins every 16 cycles: 1,024 a cycle and core, eight times what two
//! `vpdpbusd` of 512 bits do.
//! As compiled, a step of the inner loop is four products, four loads of 1 KiB (one a product), and five instructions that count: 64
//! cycles of products in which 4 KiB are read. Half of them, a piece of a panel, lie in the first cache when a layer is multiplied. A
//! block of 32 columns ([`Layout`]) is half a step, after which each of its sums is scaled in 64 bits: that takes longer than the
//! product.
//!
//! [`Layout`]: tercet_core::linear::Layout

mod check;
pub(super) mod cluster;
pub(super) mod detect;
pub(super) mod linear;
mod nearest;
pub(super) mod peak;
pub(super) mod search;
mod tile;
