//! Rows of weights times activations, 16 bytes at a time: generic in how byte products are added; DotProd has an
//! instruction for it.

use std::arch::aarch64::*;

use crate::simd::linear::Line;

pub(in crate::simd) mod halves;
pub(in crate::simd) mod int8;
pub(in crate::simd) mod ternary_lanes;
pub(in crate::simd) mod tiles;
pub(in crate::simd) mod tq2_0;

pub(in crate::simd) use by_neon::KERNELS;

/// Byte products, added up in lanes of 32 bits.
pub(in crate::simd) trait Products {
    /// Adds the products of four bytes to each lane. Two of them must fit 16 bits: −128 meets no −128.
    ///
    /// # Safety
    /// The set must run here.
    unsafe fn add(sum: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t;
}

/// With NEON only: products of 16 bits, added in pairs twice.
pub(in crate::simd) struct Neon;

impl Products for Neon {
    #[inline(always)]
    unsafe fn add(sum: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
        // SAFETY: the set runs here.
        unsafe {
            let low = vmull_s8(vget_low_s8(a), vget_low_s8(b));
            let high = vmull_high_s8(a, b);
            // 2·128·127 fits.
            vpadalq_s16(sum, vpaddq_s16(low, high))
        }
    }
}

/// Loads sixteen bytes of a line, from a multiple of 16 on.
///
/// # Safety
/// The set must run here.
#[inline(always)]
unsafe fn quarter(line: &Line, number: usize) -> int8x16_t {
    // SAFETY: as the caller promises; sixteen bytes lie there.
    unsafe { vld1q_s8(line.0[16 * number..][..16].as_ptr()) }
}

/// Defines the kernels of a set, with its [`Products`].
macro_rules! kernels {
    ($products:ty, $set:literal) => {
        use tercet_core::block::Format;
        use tercet_core::linear::Layout;

        use $crate::simd::linear::{
            Activations, Group, Linear, Multiply, Order, Rows, TileSums, Tiles, Vector, Word, lanes,
        };
        use $crate::simd::neon::linear as generic;

        /// The kernels of layers.
        pub(in crate::simd) const KERNELS: Linear = Linear {
            vector,
            halves: generic::halves::halves,
            half_tiles: generic::halves::half_tiles,
            tiles: Some(Tiles {
                order: Order::COLUMNS,
                unpack: generic::tiles::unpack,
                pack: generic::tiles::pack,
                multiply: Multiply::Strips {
                    any: multiply,
                    nibbles: multiply_small,
                    two_bits: multiply_small,
                },
                in_place: None,
                add: generic::tiles::add,
            }),
        };

        /// Returns the kernel for rows of a layout times a vector; core processes other layouts.
        fn vector(layout: Layout) -> Option<Vector> {
            let (prepare, rows): (unsafe fn(&[i8], &mut Activations), _) = match layout {
                Layout::Int8 => (generic::int8::prepare, Rows::Narrow(int8_rows)),
                Layout::Block(Format::Tq2_0) => (generic::tq2_0::prepare, Rows::Wide(tq2_0_rows)),
                Layout::TernaryLanes => (lanes::prepare, Rows::Narrow(ternary_lanes_rows)),
                _ => return None,
            };
            Some(Vector { prepare, rows })
        }

        /// Rows of int8; see [`generic::int8`].
        #[target_feature(enable = $set)]
        fn int8_rows(bytes: &[u8], x: &Activations, out: &mut [i32]) {
            // SAFETY: the set runs here.
            unsafe { generic::int8::rows::<$products>(bytes, x, out) }
        }

        /// Rows of TQ2_0; see [`generic::tq2_0`].
        #[target_feature(enable = $set)]
        fn tq2_0_rows(bytes: &[u8], x: &Activations, out: &mut [i64]) {
            // SAFETY: the set runs here.
            unsafe { generic::tq2_0::rows::<$products>(bytes, x, out) }
        }

        /// Rows of lanes; see [`generic::ternary_lanes`].
        #[target_feature(enable = $set)]
        fn ternary_lanes_rows(bytes: &[u8], x: &Activations, out: &mut [i32]) {
            // SAFETY: the set runs here.
            unsafe { generic::ternary_lanes::rows::<$products>(bytes, x, out) }
        }

        /// Tiles of codes of 0 to 255; see [`generic::tiles`].
        #[target_feature(enable = $set)]
        fn multiply(panel: &[Group], strip: &[Word], sums: &mut [TileSums<i32>]) {
            // SAFETY: the set runs here.
            unsafe { generic::tiles::multiply::<$products, true>(panel, strip, sums) }
        }

        /// Tiles of codes of 0 to 15.
        #[target_feature(enable = $set)]
        fn multiply_small(panel: &[Group], strip: &[Word], sums: &mut [TileSums<i32>]) {
            // SAFETY: the set runs here.
            unsafe { generic::tiles::multiply::<$products, false>(panel, strip, sums) }
        }
    };
}
pub(in crate::simd) use kernels;

/// With NEON.
mod by_neon {
    super::kernels!(super::Neon, "neon");
}
