//! Kernels for AVX-512 with VNNI, VBMI, VBMI2, BITALG and VPOPCNTDQ.

pub(super) mod linear;
