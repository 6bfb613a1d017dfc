//! Which kernels cluster, set by set.

use super::{Cluster, SCALAR};
use crate::simd::taken::take;
use crate::simd::{Backend, Isa};

impl Backend {
    /// The kernels of clustering.
    pub(crate) fn cluster(self) -> &'static Cluster {
        match take(self.isa()) {
            #[cfg(target_arch = "x86_64")]
            Isa::Sse41 => &crate::simd::sse41::cluster::CLUSTER,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &crate::simd::avx2::cluster::CLUSTER,
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni => &crate::simd::avx_vnni::cluster::CLUSTER,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &crate::simd::avx512::cluster::CLUSTER,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => &crate::simd::avx512_vnni::cluster::CLUSTER,
            #[cfg(target_arch = "x86_64")]
            Isa::Amx => &crate::simd::amx::cluster::CLUSTER,
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Isa::Neon => &crate::simd::neon::cluster::CLUSTER,
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Isa::DotProd => &crate::simd::dotprod::cluster::CLUSTER,
            _ => &SCALAR,
        }
    }
}
