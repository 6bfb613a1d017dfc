//! The nearest centroids of four points at once.
//!
//! Contract: the result of [`crate::arch::plain::nearest`], for points and centroids at any address, including −128.
//! Four coordinates of a centroid times four points take 13 instructions (0.81 per multiplication), the rest of a
//! centroid about 44.
//!
//! Exact: every lane is a sign-extended byte, and a product is at most 2¹⁴. 64 of them, their doubled sum and a
//! squared length stay below 2²².

#![allow(unsafe_code, reason = "a loop in assembler")]

use core::arch::asm;
use core::mem::offset_of;
use core::slice;

use super::dot::{dot, norm};
use super::dsp::{even_bytes, multiply_add, odd_bytes, partial_word};
use crate::arch::plain::Nearest;

/// Largest number of coordinates of points that are processed four at a time: their words take 512 bytes of stack.
const DIMS: usize = 64;

/// Four coordinates of four points: first the even ones of each point, then the odd ones of each.
type Words = [u32; 8];

/// Calls `each` with the nearest centroid of each point, in order.
#[inline]
pub(crate) fn for_each_nearest(
    points: &[i8],
    dims: usize,
    centroids: &[i8],
    norms: &[i32],
    mut each: impl FnMut(Nearest),
) {
    let dims = dims.max(1);
    let mut rest = points;
    if dims <= DIMS {
        let mut words = [[0; 8]; DIMS / 4];
        let words = words.get_mut(..dims.div_ceil(4)).unwrap_or_default();
        while let Some((four, next)) = rest.split_at_checked(4 * dims) {
            for found in &four_points(four, dims, centroids, norms, words) {
                each(*found);
            }
            rest = next;
        }
    }
    for point in rest.chunks_exact(dims) {
        each(nearest(point, centroids, norms));
    }
}

/// Returns the nearest centroids of four points of at most [`DIMS`] coordinates; `words` is space for their words.
#[inline(never)]
fn four_points(
    points: &[i8],
    dims: usize,
    centroids: &[i8],
    norms: &[i32],
    words: &mut [Words],
) -> [Nearest; 4] {
    let mut found = [Nearest {
        label: 0,
        distance: 0,
    }; 4];
    let points = points.chunks_exact(dims.max(1)).enumerate();
    for (found, (index, point)) in found.iter_mut().zip(points) {
        found.distance = widen(point, words, index);
    }
    let mut search = Search::default();
    search.scan(centroids, dims, norms, words);
    // The last few centroids, whose last word would exceed the end, are copied first.
    let next = search.next as usize;
    let rest = centroids.get(next * dims..).unwrap_or_default();
    let norms = norms.get(next..).unwrap_or_default();
    for (centroid, norm) in rest.chunks_exact(dims.max(1)).zip(norms) {
        let mut copy = [0; DIMS];
        for (copy, &value) in copy.iter_mut().zip(centroid) {
            *copy = value;
        }
        search.scan(&copy, DIMS, slice::from_ref(norm), words);
    }
    let best = search.best.iter().zip(&search.labels);
    for (found, (&score, &label)) in found.iter_mut().zip(best) {
        found.label = label;
        // As in the plain loop: between 0 and 2³², even if something wraps.
        found.distance = found.distance.wrapping_add_signed(score);
    }
    found
}

/// Writes a point as the `index`-th of four, and returns its squared length.
#[inline(never)]
fn widen(point: &[i8], words: &mut [Words], index: usize) -> u32 {
    let Some((whole, rest)) = point.split_at_checked(point.len() & !3) else {
        return 0;
    };
    let Some((words, last)) = words.split_at_mut_checked(whole.len() / 4) else {
        return 0;
    };
    if index >= 4 {
        return 0;
    }
    let mut length = 0;
    if !whole.is_empty() {
        // SAFETY: Reads `whole` and writes words `index` and `index + 4` of each of `words`, one for four values. LDR
        // takes any address on these cores, as compiled code for this target takes for granted.
        unsafe {
            asm!(
                "2:",
                "ldr {odd}, [{values}], #4",
                "sxtb16 {even}, {odd}",
                "sxtb16 {odd}, {odd}, ror #8",
                "smlad {length}, {even}, {even}, {length}",
                "smlad {length}, {odd}, {odd}, {length}",
                "str {odd}, [{place}, #16]",
                "str {even}, [{place}], #32",
                "cmp {values}, {end}",
                "bne 2b",
                values = inout(reg) whole.as_ptr() => _,
                end = in(reg) whole.as_ptr_range().end,
                place = inout(reg) words.as_mut_ptr().cast::<u32>().wrapping_add(index) => _,
                length = inout(reg) length,
                even = out(reg) _,
                odd = out(reg) _,
                options(nostack),
            );
        }
    }
    if let Some((evens, odds)) = last.first_mut().map(|words| words.split_at_mut(4))
        && let (Some(even), Some(odd)) = (evens.get_mut(index), odds.get_mut(index))
    {
        let word = partial_word(rest);
        (*even, *odd) = (even_bytes(word), odd_bytes(word));
        length = multiply_add(length, *even, *even);
        length = multiply_add(length, *odd, *odd);
    }
    length as u32
}

/// The best of the centroids so far.
#[repr(C)]
struct Search {
    /// By point: the smallest score.
    best: [i32; 4],
    /// By point: the centroid with this score.
    labels: [u32; 4],
    /// The next centroid.
    next: u32,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            best: [i32::MAX; 4],
            labels: [0; 4],
            next: 0,
        }
    }
}

/// The values for which the assembly loop has no registers.
#[repr(C)]
struct Frame {
    search: *mut Search,
    words: *const Words,
    words_end: *const Words,
    /// Norm of the centroid after the current one.
    norms: *const i32,
    norms_end: *const i32,
    /// Distance from the end of a centroid's words to the next centroid.
    skip: isize,
    /// Steps that the first round leaves out.
    entry: usize,
}

/// One point: its score, and the label if the score is less than the best.
macro_rules! compare {
    ($dot:literal, $best:literal, $place:literal) => {
        concat!(
            "sub ",
            $dot,
            ", r8, ",
            $dot,
            ", lsl #1\n",
            "cmp ",
            $dot,
            ", ",
            $best,
            "\n",
            "itt lt\n",
            "movlt ",
            $best,
            ", ",
            $dot,
            "\n",
            "strlt r0, [r1, #{labels} + ",
            $place,
            "]\n",
        )
    };
}

impl Search {
    /// Continues with centroids of `dims` coordinates: as many as have a norm and can be read in whole words.
    #[inline(never)]
    fn scan(&mut self, centroids: &[i8], dims: usize, norms: &[i32], words: &[Words]) {
        let Some(spare) = centroids.len().checked_sub(4 * words.len()) else {
            return;
        };
        let count = (spare / dims.max(1) + 1).min(norms.len());
        if words.is_empty() || count == 0 {
            return;
        }
        let mut frame = Frame {
            search: self,
            words: words.as_ptr(),
            words_end: words.as_ptr_range().end,
            norms: norms.as_ptr(),
            norms_end: norms.as_ptr().wrapping_add(count),
            skip: dims as isize - 4 * words.len() as isize,
            entry: words.len().wrapping_neg() & 3,
        };
        // SAFETY: Reads 4 · words.len() bytes from each of `count` centroids on, `dims` apart, which end within
        // `centroids` by the choice of `count`; as many norms; and all of `words`. LDR takes any address on these
        // cores, as compiled code for this target takes for granted. Writes only to `self` through `frame`, and its own
        // registers: all are named here but r6 and r7, which are restored. The four steps of a round have 52 bytes
        // each; the table holds halfwords from itself to each, so that the first round is entered at the point from
        // which a multiple of four steps remains.
        unsafe {
            asm!(
                "push {{r6, r7}}",
                "mov r7, r1",
                "ldr r6, [r7, #{words_end}]",
                "3:",
                "ldr r1, [r7, #{words}]",
                "ldr r3, [r7, #{entry}]",
                "mov.w r10, #0",
                "mov.w r11, #0",
                "mov.w r12, #0",
                "mov.w lr, #0",
                "tbb [pc, r3]",
                ".byte 2, 28, 54, 80",
                "2:",
                ".rept 4",
                "ldr.w r8, [r0], #4",
                "ldmia.w r1!, {{r2, r3, r4, r5}}",
                "sxtb16 r9, r8",
                "smlad r10, r9, r2, r10",
                "smlad r11, r9, r3, r11",
                "smlad r12, r9, r4, r12",
                "smlad lr, r9, r5, lr",
                "ldmia.w r1!, {{r2, r3, r4, r5}}",
                "sxtb16 r8, r8, ror #8",
                "smlad r10, r8, r2, r10",
                "smlad r11, r8, r3, r11",
                "smlad r12, r8, r4, r12",
                "smlad lr, r8, r5, lr",
                ".endr",
                "cmp r1, r6",
                "bne 2b",
                // The norm; r9 keeps the centroid, r0 becomes the label.
                "mov r9, r0",
                "ldr r8, [r7, #{norms}]",
                "ldr r1, [r7, #{search}]",
                "ldr r0, [r1, #{next}]",
                "ldmia.w r1, {{r2, r3, r4, r5}}",
                "ldr r8, [r8]",
                compare!("r10", "r2", "0"),
                compare!("r11", "r3", "4"),
                compare!("r12", "r4", "8"),
                compare!("lr", "r5", "12"),
                "stmia.w r1, {{r2, r3, r4, r5}}",
                "adds r0, #1",
                "str r0, [r1, #{next}]",
                "ldrd r2, r3, [r7, #{norms}]",
                "adds r2, #4",
                "str r2, [r7, #{norms}]",
                "ldr r0, [r7, #{skip}]",
                "add r0, r9",
                "cmp r2, r3",
                "bne 3b",
                "pop {{r6, r7}}",
                search = const offset_of!(Frame, search),
                words = const offset_of!(Frame, words),
                words_end = const offset_of!(Frame, words_end),
                norms = const offset_of!(Frame, norms),
                skip = const offset_of!(Frame, skip),
                entry = const offset_of!(Frame, entry),
                labels = const offset_of!(Search, labels),
                next = const offset_of!(Search, next),
                inout("r0") centroids.as_ptr() => _,
                inout("r1") &raw mut frame => _,
                out("r2") _, out("r3") _, out("r4") _, out("r5") _, out("r8") _, out("r9") _,
                out("r10") _, out("r11") _, out("r12") _, out("lr") _,
            );
        }
    }
}

/// Returns the nearest centroid of a point: [`crate::arch::plain::nearest`] with this processor's dot products.
pub(crate) fn nearest(point: &[i8], centroids: &[i8], norms: &[i32]) -> Nearest {
    let mut best = (i32::MAX, 0);
    let rows = centroids.chunks_exact(point.len().max(1));
    for (label, (centroid, &norm)) in (0u32..).zip(rows.zip(norms)) {
        let score = norm.wrapping_sub(dot(point, centroid).wrapping_mul(2));
        if score < best.0 {
            best = (score, label);
        }
    }
    Nearest {
        label: best.1,
        distance: norm(point).wrapping_add_signed(best.0),
    }
}
