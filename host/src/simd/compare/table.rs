//! Which loops compare rows, set by set.

use super::Rows;
use crate::simd::taken::take;
use crate::simd::{Backend, Isa};

impl Backend {
    /// The loop over rows; none where core's own is the backend's.
    pub(super) fn rows(self) -> Option<Rows> {
        match take(self.isa()) {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Avx512Vnni | Isa::Amx => Some(crate::simd::avx512::compare::rows),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::AvxVnni => Some(crate::simd::avx2::compare::rows),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Isa::Neon | Isa::DotProd => Some(crate::simd::neon::compare::rows),
            _ => None,
        }
    }
}
