//! Inner loops: plain ones ([`plain`]), kernels for one kind of processor each, and which of them the target takes.
//!
//! A kernel gives the plain loop's bits for every legal input; its proof of that is at its head. Which are compiled in,
//! `build.rs` decides by the target. Nothing here knows a driver or an engine: both are built on these loops.

#[cfg(tercet_dsp)]
pub mod cortex_m;
#[cfg(tercet_mve)]
pub mod mve;
pub mod plain;
pub mod portable;
#[cfg(tercet_thumb1)]
mod thumb1;

use crate::linear::{I8Sym, Matrix, Sums};
#[cfg(not(tercet_mve))]
use crate::{block::Format, linear::Layout};
use plain::Nearest;

/// [`plain::linear::sums`] by the best code here, of the layouts in a set; false, and nothing done, for another. `scratch` has
/// [`Matrix::scratch_len`] words or more, and `x` an activation a column.
#[inline]
pub(crate) fn sums<const SET: u32>(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    out: &mut impl Sums,
) -> bool {
    sums_each::<SET, _>(&mut [(matrix, out)], x, scratch)
}

/// [`sums`] of matrices of as many columns, each into what stands beside it.
#[inline]
pub(crate) fn sums_each<const SET: u32, S: Sums>(
    products: &mut [(&Matrix<'_>, S)],
    x: I8Sym<'_>,
    scratch: &mut [u32],
) -> bool {
    #[cfg(all(tercet_dsp, not(tercet_mve)))]
    use cortex_m::Tq1_0;
    #[cfg(not(any(tercet_dsp, tercet_mve)))]
    use portable::Tq1_0;
    // Vectors take TQ1_0 without tables.
    #[cfg(not(tercet_mve))]
    if Layout::Block(Format::Tq1_0).is_in(SET)
        && portable::one_scale::sums::<Tq1_0, S>(products, x, scratch)
    {
        return true;
    }
    let mut products = products.iter_mut();
    products.all(|(matrix, out)| sums_alone::<SET>(matrix, x, scratch, out))
}

fn sums_alone<const SET: u32>(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    out: &mut impl Sums,
) -> bool {
    #[cfg(tercet_mve)]
    if mve::sums::<SET>(matrix, x, scratch, out) {
        return true;
    }
    #[cfg(tercet_dsp)]
    if cortex_m::sums::<SET>(matrix, x, scratch, out) {
        return true;
    }
    if portable::sums::<SET>(matrix, x, scratch, out) {
        return true;
    }
    plain::linear::sums_of::<SET>(matrix, x, out)
}

#[cfg(all(tercet_dsp, not(tercet_mve)))]
pub(crate) use cortex_m::{dot, nearest, norm};
#[cfg(tercet_mve)]
pub(crate) use mve::{dot, nearest, norm};
// As in `portable::sums`: only where there are no vectors.
#[cfg(all(not(any(tercet_dsp, tercet_mve)), not(target_os = "none")))]
pub(crate) use plain::{dot, nearest, norm};
#[cfg(all(not(any(tercet_dsp, tercet_mve)), target_os = "none"))]
pub(crate) use portable::{dot, nearest, norm};

#[cfg(not(tercet_dsp))]
pub(crate) use crate::model::attention::PlainProducts as Products;
/// What attention multiplies with.
#[cfg(tercet_dsp)]
pub(crate) use cortex_m::Products;

/// Calls `each` with what [`plain::nearest`] gives for each point, in order, by the best code here.
#[inline]
pub(crate) fn for_each_nearest(
    points: &[i8],
    dims: usize,
    centroids: &[i8],
    norms: &[i32],
    mut each: impl FnMut(Nearest),
) {
    #[cfg(tercet_mve)]
    mve::for_each_nearest(points, dims, centroids, norms, &mut each);
    #[cfg(all(tercet_dsp, not(tercet_mve)))]
    cortex_m::for_each_nearest(points, dims, centroids, norms, &mut each);
    #[cfg(not(any(tercet_dsp, tercet_mve)))]
    for point in points.chunks_exact(dims.max(1)) {
        each(nearest(point, centroids, norms));
    }
}
