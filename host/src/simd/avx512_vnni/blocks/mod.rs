//! GGUF's block formats.

pub(in crate::simd) mod dot;
mod sum;
