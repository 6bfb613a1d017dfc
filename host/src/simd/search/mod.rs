//! The table of the kernels of integer search.

pub(in crate::simd) mod dots;
pub(in crate::simd) mod passing;
mod ternary;

use tercet_core::scalar;
use tercet_core::search::Bar;

use super::taken::take;
use super::{Backend, Isa};
pub(crate) use ternary::TernaryQuery;

/// Rows in a block: as many as a mask has bits.
pub(crate) const BLOCK: usize = 64;

/// Dot products of a query with the rows of a block.
pub(crate) type Dots = [i32; BLOCK];
/// Squared lengths of the rows of a block.
pub(crate) type Norms = [u32; BLOCK];

/// What a search does with int8 and ternary rows, for one instruction set.
///
/// A block has up to [`BLOCK`] rows; places beyond them are left alone.
#[derive(Debug)]
pub(crate) struct Search {
    dots: unsafe fn(&[i8], &[i8], &mut Dots),
    dots_and_norms: unsafe fn(&[i8], &[i8], &mut Dots, &mut Norms),
    passing: unsafe fn(Bar, &Dots, &Norms) -> u64,
    many: Option<Many>,
    /// Words that a packed block of rows of so many values takes.
    packed_len: fn(usize) -> usize,
    ternary_dots: unsafe fn(&TernaryQuery, &[u8], &mut Dots),
    ternary_norms: unsafe fn(&TernaryQuery, &[u8], &mut Norms),
}

/// Products of a block with many queries: its rows are packed once, as a query's four bytes meet all of them.
#[derive(Clone, Copy, Debug)]
struct Many {
    pack: unsafe fn(&[i8], usize, &mut [u32]),
    dots: unsafe fn(&[u32], Queries<'_>, &mut [Dots]),
}

/// Queries of one length, and their sums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queries<'a> {
    /// One after another.
    pub(crate) values: &'a [i8],
    /// Values of each.
    pub(crate) dim: usize,
    /// Σ q of each.
    pub(crate) sums: &'a [i32],
}

const SCALAR: Search = Search {
    dots,
    dots_and_norms,
    passing,
    many: None,
    packed_len: |_| 0,
    ternary_dots: ternary::dots,
    ternary_norms: ternary::norms,
};

fn dots(query: &[i8], rows: &[i8], dots: &mut Dots) {
    for (row, dot) in rows.chunks_exact(query.len()).zip(dots) {
        *dot = scalar::dot(query, row);
    }
}

fn dots_and_norms(query: &[i8], rows: &[i8], dots: &mut Dots, norms: &mut Norms) {
    for ((row, dot), norm) in rows.chunks_exact(query.len()).zip(dots).zip(norms) {
        *dot = scalar::dot(query, row);
        *norm = scalar::norm(row);
    }
}

fn passing(bar: Bar, dots: &Dots, norms: &Norms) -> u64 {
    let rows = dots.iter().zip(norms).enumerate();
    rows.fold(0, |mask, (row, (&dot, &norm))| {
        mask | u64::from(bar.admits(dot, norm)) << row
    })
}

#[cfg(target_arch = "x86_64")]
const SSE41: Search = Search {
    dots: super::sse41::search::dots,
    dots_and_norms: super::sse41::search::dots_and_norms,
    many: Some(Many {
        pack: super::sse41::many_search::pack,
        dots: super::sse41::many_search::dots,
    }),
    packed_len: super::sse41::many_search::packed_len,
    passing: super::sse41::search::passing,
    ..SCALAR
};

#[cfg(target_arch = "x86_64")]
const AVX2: Search = Search {
    dots: super::avx2::search::dots,
    dots_and_norms: super::avx2::search::dots_and_norms,
    many: Some(Many {
        pack: super::avx2::many_search::pack,
        dots: super::avx2::many_search::dots,
    }),
    packed_len: super::avx2::many_search::packed_len,
    passing: super::avx2::search::passing,
    ternary_dots: super::avx2::ternary_search::dots,
    ternary_norms: super::avx2::ternary_search::norms,
};

#[cfg(target_arch = "x86_64")]
const AVX_VNNI: Search = Search {
    dots: super::avx_vnni::search::dots,
    dots_and_norms: super::avx_vnni::search::dots_and_norms,
    many: Some(Many {
        pack: super::avx_vnni::many_search::pack,
        dots: super::avx_vnni::many_search::dots,
    }),
    packed_len: super::avx_vnni::many_search::packed_len,
    ..AVX2
};

#[cfg(target_arch = "x86_64")]
const AVX512: Search = Search {
    dots: super::avx512::search::dots,
    dots_and_norms: super::avx512::search::dots_and_norms,
    many: Some(Many {
        pack: super::avx512::many_search::pack,
        dots: super::avx512::many_search::dots,
    }),
    packed_len: super::avx512::many_search::packed_len,
    passing: super::avx512::search::passing,
    ..AVX2
};

#[cfg(target_arch = "x86_64")]
const AVX512_VNNI: Search = Search {
    dots: super::avx512_vnni::search::dots,
    dots_and_norms: super::avx512_vnni::search::dots_and_norms,
    many: Some(Many {
        pack: super::avx512_vnni::many_search::pack,
        dots: super::avx512_vnni::many_search::dots,
    }),
    packed_len: super::avx512_vnni::many_search::packed_len,
    ternary_dots: super::avx512_vnni::ternary_search::dots,
    ternary_norms: super::avx512_vnni::ternary_search::norms,
    ..AVX512
};

#[cfg(target_arch = "x86_64")]
const AMX: Search = Search {
    many: Some(Many {
        pack: super::avx512_vnni::many_search::pack,
        dots: super::amx::search::dots,
    }),
    ..AVX512_VNNI
};

#[cfg(target_arch = "aarch64")]
const NEON: Search = Search {
    dots: super::neon::search::dots,
    dots_and_norms: super::neon::search::dots_and_norms,
    many: Some(Many {
        pack: super::neon::many_search::pack,
        dots: super::neon::many_search::dots,
    }),
    packed_len: super::neon::many_search::packed_len,
    passing: super::neon::search::passing,
    ..SCALAR
};

#[cfg(target_arch = "aarch64")]
const DOT_PROD: Search = Search {
    dots: super::dotprod::search::dots,
    dots_and_norms: super::dotprod::search::dots_and_norms,
    many: Some(Many {
        pack: super::dotprod::many_search::pack,
        dots: super::dotprod::many_search::dots,
    }),
    packed_len: super::dotprod::many_search::packed_len,
    ..NEON
};

impl Backend {
    /// The kernels of integer search.
    pub(crate) fn search(self) -> &'static Search {
        match take(self.isa()) {
            #[cfg(target_arch = "x86_64")]
            Isa::Sse41 => &SSE41,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &AVX2,
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni => &AVX_VNNI,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &AVX512,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => &AVX512_VNNI,
            #[cfg(target_arch = "x86_64")]
            Isa::Amx => &AMX,
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => &NEON,
            #[cfg(target_arch = "aarch64")]
            Isa::DotProd => &DOT_PROD,
            _ => &SCALAR,
        }
    }
}

impl Search {
    /// The dot products of a query with up to [`BLOCK`] rows of its length, which is not 0.
    #[inline]
    pub(crate) fn dots(&self, query: &[i8], rows: &[i8], dots: &mut Dots) {
        check(query.len(), rows.len());
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.dots)(query, rows, dots) }
    }

    /// [`Search::dots`] and the squared lengths of the rows, in one pass.
    #[inline]
    pub(crate) fn dots_and_norms(
        &self,
        query: &[i8],
        rows: &[i8],
        dots: &mut Dots,
        norms: &mut Norms,
    ) {
        check(query.len(), rows.len());
        // SAFETY: as in `dots`.
        unsafe { (self.dots_and_norms)(query, rows, dots, norms) }
    }

    /// A bit for each row of a block: at least those that the bar admits.
    #[inline]
    pub(crate) fn passing(&self, bar: Bar, dots: &Dots, norms: &Norms) -> u64 {
        // SAFETY: as in `dots`.
        unsafe { (self.passing)(bar, dots, norms) }
    }

    /// The dot products of a query with up to [`BLOCK`] packed ternary rows, their magnitudes left out.
    #[inline]
    pub(crate) fn ternary_dots(&self, query: &TernaryQuery, rows: &[u8], dots: &mut Dots) {
        check(query.row_bytes(), rows.len());
        // SAFETY: as in `dots`.
        unsafe { (self.ternary_dots)(query, rows, dots) }
    }

    /// The squared lengths of up to [`BLOCK`] packed ternary rows of a query's length, their magnitudes left out.
    #[inline]
    pub(crate) fn ternary_norms(&self, query: &TernaryQuery, rows: &[u8], norms: &mut Norms) {
        check(query.row_bytes(), rows.len());
        // SAFETY: as in `dots`.
        unsafe { (self.ternary_norms)(query, rows, norms) }
    }

    /// Whether there are kernels for many queries at once.
    pub(crate) fn takes_many(&self) -> bool {
        self.many.is_some()
    }

    /// Words that a packed block of rows takes.
    pub(crate) fn packed_len(&self, dim: usize) -> usize {
        (self.packed_len)(dim)
    }

    /// Packs a block of up to [`BLOCK`] rows for [`Search::many_dots`]; what places beyond them hold does not matter.
    pub(crate) fn pack(&self, rows: &[i8], dim: usize, packed: &mut [u32]) {
        check(dim, rows.len());
        assert_eq!(packed.len(), self.packed_len(dim));
        if let Some(many) = self.many {
            // SAFETY: as in `dots`.
            unsafe { (many.pack)(rows, dim, packed) }
        }
    }

    /// The dot products of queries with a packed block, a block of them for each query.
    pub(crate) fn many_dots(&self, packed: &[u32], queries: Queries<'_>, dots: &mut [Dots]) {
        assert_eq!(packed.len(), self.packed_len(queries.dim));
        assert_eq!(queries.values.len(), queries.dim * dots.len());
        assert_eq!(queries.sums.len(), dots.len());
        if let Some(many) = self.many {
            // SAFETY: as in `dots`.
            unsafe { (many.dots)(packed, queries, dots) }
        }
    }
}

/// Whole rows, no more than a block.
#[inline]
fn check(row: usize, rows: usize) {
    assert!(row > 0 && rows.is_multiple_of(row) && rows / row <= BLOCK);
}
