//! Inner loops: plain ones ([`plain`]), kernels for one kind of processor each, and the selection for the target.
//!
//! A kernel returns the same bits as the plain loop for every valid input; the docs at its head prove this.
//! `build.rs` decides by the target which ones are compiled. Nothing here knows a driver or an engine: both are built
//! on these loops.

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

/// Does [`plain::linear::sums`] with the best code here, for the layouts in a set. Returns false and does nothing for
/// another. `scratch` has at least [`Matrix::scratch_len`] words, and `x` has one activation per column.
#[inline]
pub(crate) fn sums<const SET: u32>(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    out: &mut impl Sums,
) -> bool {
    sums_each::<SET, _>(&mut [(matrix, out)], x, scratch)
}

/// Does [`sums`] for matrices with the same number of columns, each into its own receiver.
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
    // With vectors, TQ1_0 needs no tables.
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
// As in `portable::sums`: targets with an operating system have vectors, for which the plain loops are better.
#[cfg(all(not(any(tercet_dsp, tercet_mve)), not(target_os = "none")))]
pub(crate) use plain::{dot, nearest, norm};
#[cfg(all(not(any(tercet_dsp, tercet_mve)), target_os = "none"))]
pub(crate) use portable::{dot, nearest, norm};

#[cfg(all(tercet_dsp, target_abi = "eabihf"))]
pub(crate) use cortex_m::root;

#[cfg(not(tercet_dsp))]
pub(crate) use crate::model::attention::PlainProducts as Products;
/// Attention's products.
#[cfg(tercet_dsp)]
pub(crate) use cortex_m::Products;

/// Calls `each` with the result of [`plain::nearest`] for each point, in order, computed with the best code here.
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
