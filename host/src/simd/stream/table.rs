//! Which loops measure memory, set by set.

use super::{SCALAR, Stream};
use crate::simd::Backend;
#[cfg(target_arch = "x86_64")]
use crate::simd::Isa;

#[cfg(target_arch = "x86_64")]
const AVX2: Stream = {
    use crate::simd::avx2::stream::{copy, narrow, read, widen, write};
    Stream {
        read: [read::<false>, read::<true>],
        write: [write::<false>, write::<true>],
        copy: [copy::<false>, copy::<true>],
        narrow: [narrow::<false>, narrow::<true>],
        widen: [widen::<false>, widen::<true>],
    }
};

#[cfg(target_arch = "x86_64")]
const AVX512: Stream = {
    use crate::simd::avx512::stream::{copy, narrow, read, widen, write};
    Stream {
        read: [read::<false>, read::<true>],
        write: [write::<false>, write::<true>],
        copy: [copy::<false>, copy::<true>],
        narrow: [narrow::<false>, narrow::<true>],
        widen: [widen::<false>, widen::<true>],
    }
};

impl Backend {
    /// The loops that measure memory.
    pub(crate) const fn stream(self) -> &'static Stream {
        match self.isa() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::AvxVnni => &AVX2,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Avx512Vnni | Isa::Amx => &AVX512,
            _ => &SCALAR,
        }
    }
}
