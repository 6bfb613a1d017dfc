//! Rows that are unpacked to codes before they are multiplied.

use tercet_core::linear::{Layout, Matrix, Sums};

use super::tiles::Unpack;
use super::{Activations, Line, codes};

/// Σ code · x of each so many codes, a multiple of 32, modulo 2³².
pub(super) type Dots = unsafe fn(&[u8], &[Line], usize, &mut [i32]);

/// Lines as they lie, and their sums.
pub(super) fn prepare(x: &[i8], activations: &mut Activations) {
    activations.set(x);
    let sum = |x: &[i8]| x.iter().map(|&x| i32::from(x)).sum();
    activations.sums = x.chunks(32).map(sum).collect();
}

/// The sums of a matrix's rows, by the functions of [`Rows::Codes`](super::Rows), which run on this machine.
pub(super) fn sums(
    matrix: &Matrix<'_>,
    x: &Activations,
    unpack: Unpack,
    dots: Dots,
    out: &mut impl Sums,
) {
    let (layout, cols) = (matrix.layout(), matrix.cols());
    let stride = cols.next_multiple_of(64);
    let span = match layout {
        Layout::Block(format) => format.len(),
        _ => stride,
    };
    let spans = cols.div_ceil(span);
    let sums = x.sums.chunks(span / 32);
    let less: Vec<i32> = sums
        .map(|sums| codes::offset(layout) * sums.iter().sum::<i32>())
        .collect();
    let mut codes = vec![0; layout.group_rows() * stride];
    let mut found = vec![0; layout.group_rows() * spans];
    let group_bytes = layout.group_bytes(cols).unwrap_or(1);
    for bytes in matrix.bytes().chunks_exact(group_bytes) {
        // SAFETY: a `Backend` that was found to run their set led to these.
        unsafe {
            unpack(layout, bytes, cols, &mut codes, stride);
            for (codes, found) in codes
                .chunks_exact(stride)
                .zip(found.chunks_exact_mut(spans))
            {
                dots(codes, &x.lines, span, found);
            }
        }
        if let Layout::Block(format) = layout {
            // Rows of blocks are groups of their own.
            let blocks = bytes.chunks_exact(format.bytes());
            let terms = blocks.zip(&found).zip(&less).map(|((block, found), less)| {
                codes::scale(format, block) * i64::from(found.wrapping_sub(*less))
            });
            out.wide(&[terms.sum()]);
        } else {
            found
                .iter_mut()
                .for_each(|found| *found = found.wrapping_sub(less[0]));
            out.narrow(&found);
        }
    }
}
