//! Several CUDA devices as one engine, in one binary, and what NCCL does between them.
#![cfg(all(feature = "cuda", target_os = "linux"))]

mod cuda_cudas;
mod cuda_cudas_faults;
mod cuda_cudas_operations;
mod cuda_cudas_resident;
mod cuda_histogram;
mod cuda_nccl;
mod cuda_observe;
mod support;
