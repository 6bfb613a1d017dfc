//! The processor's engines, in one binary: every instruction set and any number of threads, against core's.

mod conformance;
mod parallel;
mod parallel_palette;
mod parallel_scores;
mod parallel_search;
mod simd_activations;
mod simd_blocks;
mod simd_cluster;
mod simd_compare;
mod simd_fp8;
mod simd_gradients;
mod simd_histogram;
mod simd_linear;
mod simd_palette;
mod simd_quantize;
mod simd_search;
mod simd_two_bits;
