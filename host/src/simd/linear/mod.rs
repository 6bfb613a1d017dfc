//! The tables of the kernels that multiply layers.

mod activations;
mod batch;
pub(in crate::simd) mod codes;
pub(in crate::simd) mod lanes;
mod tiles;

use tercet_core::block::Format;
use tercet_core::linear::{self, I8Sym, Layout, Matrix, Sums};

pub(in crate::simd) use activations::{Activations, Line, Start};
pub(in crate::simd) use codes::unpack;
pub(crate) use tiles::{Found, Panels, ROWS, Strips};
pub(in crate::simd) use tiles::{
    Group, Multiply, Order, STRIP, Scales, Sums as TileSums, Tiles, Word, add, pack,
};

use super::taken::take;
use super::{Backend, Isa};

/// Rows whose sums a kernel gives at once: whole groups of every layout.
const CHUNK: usize = 64;

/// The fewest rows of activations that are worth packing weights for.
const FEW: usize = 5;
/// The fewest sums that are worth packing both sides for: a tile has room for 32 rows of each.
const FEW_SUMS: usize = 40;

#[cfg(target_arch = "x86_64")]
static AMX_TILES: Tiles = {
    use super::amx::linear;
    Tiles {
        order: linear::ORDER,
        multiply: Multiply::All(linear::multiply_all),
        ..AVX512_VNNI_TILES
    }
};

#[cfg(target_arch = "x86_64")]
static AVX512_VNNI_TILES: Tiles = {
    use super::avx512_vnni::linear::tiles;
    Tiles {
        order: Order::COLUMNS,
        unpack: tiles::unpack,
        pack: tiles::pack,
        multiply: Multiply::Strips {
            any: tiles::multiply,
            nibbles: tiles::multiply,
            two_bits: tiles::multiply,
        },
        add: tiles::add,
    }
};

#[cfg(target_arch = "x86_64")]
static AVX2_TILES: Tiles = {
    use super::avx2::linear::tiles;
    Tiles {
        order: Order::COLUMNS,
        unpack: tiles::unpack,
        pack: tiles::pack,
        multiply: Multiply::Strips {
            any: tiles::multiply,
            nibbles: tiles::multiply_nibbles,
            two_bits: tiles::multiply_two_bits,
        },
        add: tiles::add,
    }
};

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
static NEON_TILES: Tiles = {
    use super::neon::linear::{by_neon, tiles};
    Tiles {
        order: Order::COLUMNS,
        unpack: tiles::unpack,
        pack: tiles::pack,
        multiply: Multiply::Strips {
            any: by_neon::multiply,
            nibbles: by_neon::multiply_small,
            two_bits: by_neon::multiply_small,
        },
        add: tiles::add,
    }
};

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
static DOTPROD_TILES: Tiles = {
    use super::dotprod::linear;
    Tiles {
        multiply: Multiply::Strips {
            any: linear::multiply,
            nibbles: linear::multiply_small,
            two_bits: linear::multiply_small,
        },
        ..NEON_TILES
    }
};

/// What one instruction set multiplies a layout's rows by a vector with.
///
/// The functions may use that set, so they are called through [`Product`], which a [`Backend`] leads to.
#[derive(Clone, Copy, Debug)]
struct Vector {
    /// Brings activations into the order that `rows` takes them in.
    prepare: unsafe fn(&[i8], &mut Activations),
    rows: Rows,
}

/// The sums of the rows that lie in the bytes, which are as many as there are sums, at most [`CHUNK`].
#[derive(Clone, Copy, Debug)]
enum Rows {
    /// Of layouts whose sums fit 32 bits.
    Narrow(NarrowRows),
    /// Of blocks.
    Wide(WideRows),
}

type NarrowRows = unsafe fn(&[u8], &Activations, &mut [i32]);
type WideRows = unsafe fn(&[u8], &Activations, &mut [i64]);

/// The product of some layers' rows with one vector of activations, by one backend.
pub(crate) struct Product<'a> {
    x: I8Sym<'a>,
    kernel: Option<(Rows, Activations)>,
}

impl Backend {
    /// Makes ready to multiply rows that lie as a matrix's do by activations, one for each of its columns. O(cols).
    pub(crate) fn product<'a>(self, matrix: &Matrix<'_>, x: I8Sym<'a>) -> Product<'a> {
        let kernel = self.vector(matrix.layout()).map(|vector| {
            let mut activations = Activations::new();
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (vector.prepare)(x.get(), &mut activations) };
            (vector.rows, activations)
        });
        Product { x, kernel }
    }

    /// Activations packed to be multiplied in tiles with matrices of this one's layout and columns, and room for their weights; none
    /// where the set has no tiles, or they do not pay: for a few rows of activations. Up to `alone` activations are packed on the calling
    /// thread. O(rows · cols).
    pub(crate) fn strips(self, matrix: &Matrix<'_>, x: I8Sym<'_>, alone: usize) -> Option<Strips> {
        let tiles = self.tiles()?;
        // Pairs can hold a weight of 128, which has no code.
        let has_codes = matrix.layout() != Layout::Int8Pairs;
        let rows = x.len() / matrix.cols().max(1);
        let many = rows >= FEW && rows.saturating_mul(matrix.rows()) >= FEW_SUMS;
        (many && has_codes).then(|| Strips::new(matrix, x, tiles.order, alone))
    }

    /// Room for a tile's weights; none where the set has no tiles.
    pub(crate) fn panels(self) -> Option<Panels> {
        self.tiles().map(Panels::new)
    }

    /// The kernels of tiles.
    fn tiles(self) -> Option<Tiles> {
        match take(self.isa()) {
            #[cfg(target_arch = "x86_64")]
            Isa::Amx => Some(AMX_TILES),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => Some(AVX512_VNNI_TILES),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::AvxVnni | Isa::Avx512 => Some(AVX2_TILES),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Isa::Neon => Some(NEON_TILES),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Isa::DotProd => Some(DOTPROD_TILES),
            _ => None,
        }
    }

    /// The kernels for a layout; none where the core does the work.
    fn vector(self, layout: Layout) -> Option<Vector> {
        match take(self.isa()) {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni | Isa::Amx => avx512_vnni(layout),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::AvxVnni | Isa::Avx512 => avx2(layout),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Isa::Neon => {
                use super::neon::linear::by_neon::*;
                aarch64(layout, int8_rows, tq2_0_rows, ternary_lanes_rows)
            }
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Isa::DotProd => {
                use super::dotprod::linear::*;
                aarch64(layout, int8_rows, tq2_0_rows, ternary_lanes_rows)
            }
            _ => {
                let _ = layout;
                None
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn avx512_vnni(layout: Layout) -> Option<Vector> {
    use super::avx512_vnni::linear::*;
    let (prepare, rows): (unsafe fn(&[i8], &mut Activations), _) = match layout {
        Layout::Int8 => (int8::prepare, Rows::Narrow(int8::rows)),
        Layout::Block(Format::Tq1_0) => (tq1_0::prepare, Rows::Wide(tq1_0::rows)),
        Layout::Block(Format::Tq2_0) => (tq2_0::prepare, Rows::Wide(tq2_0::rows)),
        Layout::Block(Format::Q2_0) => (q2_0::prepare, Rows::Wide(q2_0::rows)),
        Layout::Block(Format::Q8_0) => (q8_0::prepare, Rows::Wide(q8_0::rows)),
        Layout::Block(Format::Q4_0) => (q4_0::prepare, Rows::Wide(q4_0::rows)),
        Layout::TernaryLanes => (ternary_lanes::prepare, Rows::Narrow(ternary_lanes::rows)),
        Layout::Int8Pairs => (int8_pairs::prepare, Rows::Narrow(int8_pairs::rows)),
        Layout::Int4 => (int4::prepare, Rows::Narrow(int4::rows)),
        Layout::FiveTrits => (five_trits::prepare, Rows::Narrow(five_trits::rows)),
        // A layout that this crate does not know.
        _ => return None,
    };
    Some(Vector { prepare, rows })
}

#[cfg(target_arch = "x86_64")]
fn avx2(layout: Layout) -> Option<Vector> {
    use super::avx2::linear::*;
    let (prepare, rows): (unsafe fn(&[i8], &mut Activations), _) = match layout {
        Layout::Int8 => (int8::prepare, Rows::Narrow(int8::rows)),
        Layout::Block(Format::Tq1_0) => (tq1_0::prepare, Rows::Wide(tq1_0::rows)),
        Layout::Block(Format::Tq2_0) => (tq2_0::prepare, Rows::Wide(tq2_0::rows)),
        Layout::Block(Format::Q2_0) => (q2_0::prepare, Rows::Wide(q2_0::rows)),
        Layout::Block(Format::Q8_0) => (q8_0::prepare, Rows::Wide(q8_0::rows)),
        Layout::Block(Format::Q4_0) => (q4_0::prepare, Rows::Wide(q4_0::rows)),
        Layout::FiveTrits => (five_trits::prepare, Rows::Narrow(five_trits::rows)),
        Layout::Int4 => (int4::prepare, Rows::Narrow(int4::rows)),
        Layout::Int8Pairs => (int8_pairs::prepare, Rows::Narrow(int8_pairs::rows)),
        Layout::TernaryLanes => (lanes::prepare, Rows::Narrow(ternary_lanes::rows)),
        // A layout that this crate does not know.
        _ => return None,
    };
    Some(Vector { prepare, rows })
}

/// Kernels of AArch64's sets; other layouts are the core's.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
fn aarch64(
    layout: Layout,
    int8_rows: NarrowRows,
    tq2_0_rows: WideRows,
    lanes_rows: NarrowRows,
) -> Option<Vector> {
    use super::neon::linear::{int8, tq2_0};
    let (prepare, rows): (unsafe fn(&[i8], &mut Activations), _) = match layout {
        Layout::Int8 => (int8::prepare, Rows::Narrow(int8_rows)),
        Layout::Block(Format::Tq2_0) => (tq2_0::prepare, Rows::Wide(tq2_0_rows)),
        Layout::TernaryLanes => (lanes::prepare, Rows::Narrow(lanes_rows)),
        _ => return None,
    };
    Some(Vector { prepare, rows })
}

impl Product<'_> {
    /// Gives `out` the exact sums of a matrix's rows, as [`linear::row_sums`] does. The matrix has the columns and the layout that
    /// the product was made for.
    pub(crate) fn sums(&self, matrix: &Matrix<'_>, out: &mut impl Sums) {
        let Some((rows, activations)) = &self.kernel else {
            let mut scratch = vec![0; matrix.scratch_len()];
            // The lengths were checked.
            let done = linear::row_sums(matrix, self.x, &mut scratch, out);
            return debug_assert_eq!(done, Ok(()));
        };
        let layout = matrix.layout();
        let group = layout.group_bytes(matrix.cols()).unwrap_or(1);
        let parts = matrix
            .bytes()
            .chunks((CHUNK / layout.group_rows() * group).max(1));
        let mut left = matrix.rows();
        for bytes in parts {
            let count = left.min(CHUNK);
            left -= count;
            match rows {
                Rows::Narrow(kernel) => {
                    let mut sums = [0; CHUNK];
                    // SAFETY: as in `product`.
                    unsafe { kernel(bytes, activations, &mut sums[..count]) };
                    out.narrow(&sums[..count]);
                }
                Rows::Wide(kernel) => {
                    let mut sums = [0; CHUNK];
                    // SAFETY: as in `product`.
                    unsafe { kernel(bytes, activations, &mut sums[..count]) };
                    out.wide(&sums[..count]);
                }
            }
        }
    }
}
