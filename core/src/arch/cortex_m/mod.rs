//! Kernels for Cortex-M processors with the DSP extension (Armv7E-M, and Armv8-M Mainline if it has it).
#![allow(
    unsafe_code,
    reason = "inline assembly: compilers' scalar code takes several times the instructions"
)]

mod attention;
mod batch;
#[cfg(not(tercet_mve))]
mod dot;
mod dsp;
mod five_trits;
mod int4;
mod int8;
mod int8_pairs;
#[cfg(not(tercet_mve))]
mod nearest;
mod q8_0;
mod ternary_lanes;
mod tq1_0;
mod tq2_0;
mod trits;

pub(crate) use attention::Products;
#[cfg(not(tercet_mve))]
pub(crate) use dot::{dot, norm};
#[cfg(not(tercet_mve))]
pub(crate) use nearest::{for_each_nearest, nearest};
#[cfg(not(tercet_mve))]
pub(crate) use tq1_0::Dsp as Tq1_0;

use crate::block::Format;
use crate::linear::{I8Sym, Layout, Matrix, Sums};

// Not inline assembly: the compiler has no floats' registers for it on these targets.
#[cfg(target_abi = "eabihf")]
core::arch::global_asm!(
    ".fpu fpv4-sp-d16",
    ".section .text.tercet_root,\"ax\",%progbits",
    ".global tercet_root",
    ".type tercet_root,%function",
    ".thumb_func",
    "tercet_root:",
    "vsqrt.f32 s0, s0",
    "bx lr",
    ".size tercet_root, . - tercet_root",
);

#[cfg(target_abi = "eabihf")]
unsafe extern "C" {
    /// Returns the root of its argument, rounded once. Targets with this ABI have the instruction, and pass both in s0.
    safe fn tercet_root(x: f32) -> f32;
}

/// Returns the root of a number that is not below zero, rounded once.
#[cfg(target_abi = "eabihf")]
pub(crate) fn root(x: f32) -> f32 {
    tercet_root(x)
}

/// Does [`crate::arch::plain::linear::sums`] with kernels, for the layouts in a set. Returns false and does nothing
/// if a layout has no kernel, or none for the address.
#[inline]
pub fn sums<const SET: u32>(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    out: &mut impl Sums,
) -> bool {
    const TQ1_0: Layout = Layout::Block(Format::Tq1_0);
    const TQ2_0: Layout = Layout::Block(Format::Tq2_0);
    const Q8_0: Layout = Layout::Block(Format::Q8_0);
    // Each arm's guard is a constant.
    match matrix.layout() {
        Layout::Int8 if Layout::Int8.is_in(SET) => {
            int8::sums(matrix, x, scratch, out);
            true
        }
        Layout::Int8Pairs if Layout::Int8Pairs.is_in(SET) => match words(matrix.bytes()) {
            Some(words) => {
                int8_pairs::sums(words, x, scratch, out);
                true
            }
            None => false,
        },
        Layout::Int4 if Layout::Int4.is_in(SET) => match words(matrix.bytes()) {
            Some(words) => {
                int4::sums(words, x, scratch, out);
                true
            }
            None => false,
        },
        Layout::TernaryLanes if Layout::TernaryLanes.is_in(SET) => {
            ternary_lanes::sums(matrix, x, scratch, out)
        }
        Layout::FiveTrits if Layout::FiveTrits.is_in(SET) => {
            five_trits::sums(matrix, x, scratch, out)
        }
        TQ1_0 if TQ1_0.is_in(SET) => tq1_0::sums(matrix, x, scratch, out),
        TQ2_0 if TQ2_0.is_in(SET) => tq2_0::sums(matrix, x, scratch, out),
        Q8_0 if Q8_0.is_in(SET) => q8_0::sums(matrix, x, scratch, out),
        _ => false,
    }
}

/// Returns bytes as little-endian words, if they begin at a multiple of 4.
fn words(bytes: &[u8]) -> Option<&[u32]> {
    // SAFETY: Every pattern is a u32; these processors are compiled for little-endian.
    let (before, words, after) = unsafe { bytes.align_to() };
    (before.is_empty() && after.is_empty()).then_some(words)
}
