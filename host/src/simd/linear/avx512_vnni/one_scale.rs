//! Ternary rows whose blocks have one scale, as those of a BitNet's matrix have: they are added up as a whole and scaled
//! once. That is the same integer, since Σ dot · scale = scale · Σ dot.

use half::f16;

use super::blocks::{self, Blocks};
use crate::simd::blocks::codes::fixed;
use crate::simd::linear::{Activations, Line, Rows, Vector};

/// A format whose blocks can be added up before they are scaled.
pub(super) trait OneScale: Blocks {
    /// Returns Σ code · x of two rows, without scales, the pattern of each one's first scale, and true if its blocks all
    /// have it. Two rows that are read in turns come faster from memory than one.
    ///
    /// # Safety
    /// The set must run here; the rows have as many bytes, of whole blocks, and the lines of activations for these.
    unsafe fn whole(rows: [&[u8]; 2], lines: &[Line]) -> ([i32; 2], [u16; 2], bool);
}

/// The kernel of a format for activations of 8 bits.
pub(super) fn vector<B: OneScale>() -> Vector {
    Vector {
        prepare: blocks::bytes::<B>,
        rows: Rows::Wide(rows::<B>),
    }
}

/// Processes rows in place, as a whole until one has several scales.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
pub(super) fn rows<B: OneScale>(bytes: &[u8], x: &Activations, out: &mut [i64]) {
    let row_bytes = x.len / B::FORMAT.len() * B::FORMAT.bytes();
    assert!(bytes.len() == out.len() * row_bytes);
    assert!(x.lines.len() * 4 * B::FORMAT.len() >= x.len * B::LINES);
    // A row's sum is at most 65,536 · 3 · 127.
    let less: i32 = x
        .start
        .iter()
        .map(|start| start.0.iter().sum::<i32>())
        .sum();
    let row = |number: usize| &bytes[number * row_bytes..][..row_bytes];
    for first in (0..out.len()).step_by(2) {
        // The last row of an odd number is paired with itself.
        let numbers = [first, (first + 1).min(out.len() - 1)];
        // SAFETY: the set runs where this is called; the rest was asserted.
        let (dots, scales, alike) =
            unsafe { B::whole([row(numbers[0]), row(numbers[1])], &x.lines) };
        if !alike {
            return blocks::wide::<B>(&bytes[first * row_bytes..], x, &mut out[first..]);
        }
        for ((number, dot), scale) in numbers.into_iter().zip(dots).zip(scales) {
            out[number] = i64::from(dot - less) * fixed(f16::from_bits(scale));
        }
    }
}

/// Returns the pattern of a scale.
#[inline(always)]
pub(super) fn scale(bytes: &[u8]) -> u16 {
    u16::from_le_bytes([bytes[0], bytes[1]])
}
