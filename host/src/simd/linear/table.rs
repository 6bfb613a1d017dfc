//! Which kernels multiply layers, set by set.

use tercet_core::block::Format;
use tercet_core::linear::Layout;

use super::{Activations, Multiply, Order, Rows, Tiles, Vector, lanes};
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use super::{NarrowRows, WideRows};
use crate::simd::taken::take;
use crate::simd::{Backend, Isa};

#[cfg(target_arch = "x86_64")]
static AMX_TILES: Tiles = {
    use crate::simd::amx::linear;
    Tiles {
        order: linear::ORDER,
        multiply: Multiply::All(linear::multiply_all),
        ..AVX512_VNNI_TILES
    }
};

#[cfg(target_arch = "x86_64")]
static AVX512_VNNI_TILES: Tiles = {
    use crate::simd::avx512_vnni::linear::tiles;
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
    use crate::simd::avx2::linear::tiles;
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
    use crate::simd::neon::linear::{by_neon, tiles};
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
    use crate::simd::dotprod::linear;
    Tiles {
        multiply: Multiply::Strips {
            any: linear::multiply,
            nibbles: linear::multiply_small,
            two_bits: linear::multiply_small,
        },
        ..NEON_TILES
    }
};

impl Backend {
    /// The kernels of tiles.
    pub(super) fn tiles(self) -> Option<Tiles> {
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
    pub(super) fn vector(self, layout: Layout) -> Option<Vector> {
        match take(self.isa()) {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni | Isa::Amx => avx512_vnni(layout),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::AvxVnni | Isa::Avx512 => avx2(layout),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Isa::Neon => {
                use crate::simd::neon::linear::by_neon::*;
                aarch64(layout, int8_rows, tq2_0_rows, ternary_lanes_rows)
            }
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Isa::DotProd => {
                use crate::simd::dotprod::linear::*;
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
    use crate::simd::avx512_vnni::linear::*;
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
    use crate::simd::avx2::linear::*;
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
    use crate::simd::neon::linear::{int8, tq2_0};
    let (prepare, rows): (unsafe fn(&[i8], &mut Activations), _) = match layout {
        Layout::Int8 => (int8::prepare, Rows::Narrow(int8_rows)),
        Layout::Block(Format::Tq2_0) => (tq2_0::prepare, Rows::Wide(tq2_0_rows)),
        Layout::TernaryLanes => (lanes::prepare, Rows::Narrow(lanes_rows)),
        _ => return None,
    };
    Some(Vector { prepare, rows })
}
