//! The CUDA engine, in one binary, on the device that `support` finds: every operation, its memory, its failures, and
//! what is built on it.
#![cfg(all(feature = "cuda", target_os = "linux"))]

mod cuda_activations;
mod cuda_batch;
mod cuda_block;
mod cuda_cluster;
mod cuda_cluster_calls;
mod cuda_conformance;
mod cuda_dispatch;
mod cuda_driver;
mod cuda_fp8;
mod cuda_graph;
mod cuda_linear;
mod cuda_memory;
mod cuda_palette;
mod cuda_quantize;
mod cuda_quantize_edges;
mod cuda_room;
mod cuda_search;
mod cuda_search_many;
mod cuda_wgmma;
mod support;
