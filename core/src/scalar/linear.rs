//! The linear layer as an [`crate::engine`] value, for all layouts and for some.

use super::{Scalar, Tensor};
use crate::engine::{LinearEngine, ModelEngine, Output, QuantizeEngine};
use crate::linear::{I8Sym, Layer, LinearError, Rescale, product};
use crate::model::attention::Attention;
use crate::model::{ModelError, ModelParts, Weights};
use crate::number::Element;
use crate::quant::{Groups, QuantError};

/// The reference engine for some layouts only: those that a firmware uses, so that the code of the others is not
/// linked.
///
/// Use [`Layout::set`](crate::linear::Layout::set) to compute `SET`. Other layouts return [`LinearError::LeftOut`].
/// `PARTS` are the [`ModelParts`] of language models that it runs, all without a number. A model that asks for others is
/// [`ModelError::LeftOut`] before its first step.
///
/// ```
/// use tercet_core::engine::LinearEngine;
/// use tercet_core::linear::{I8Sym, Layer, Layout, LinearError, Matrix};
/// use tercet_core::scalar::Only;
///
/// const BYTES: u32 = Layout::set(&[Layout::Int8]);
/// let layer = Layer::new(Matrix::new(Layout::Int8, 1, 2, &[3, 4])?);
/// let (mut out, mut scratch) = ([0], [0; Layout::Int8.scratch_len(1, 2)]);
/// Only::<BYTES>.sums(&layer, I8Sym::new(&[10, 1])?, &mut out, &mut scratch)?;
/// assert_eq!(out, [34]);
///
/// const LANES: u32 = Layout::set(&[Layout::TernaryLanes]);
/// let refused = Only::<LANES>.sums(&layer, I8Sym::new(&[10, 1])?, &mut out, &mut scratch);
/// assert_eq!(refused, Err(LinearError::LeftOut));
/// # Ok::<(), LinearError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Only<const SET: u32, const PARTS: u32 = { u32::MAX }>;

macro_rules! of_a_set {
    ($set:expr, impl $([$($generic:tt)*])? for $engine:ty) => {
        impl $(<$($generic)*>)? LinearEngine for $engine {
            type Error = LinearError;

            fn sums(
                &mut self,
                layer: &Layer<'_>,
                x: I8Sym<'_>,
                out: &mut [i64],
                scratch: &mut [u32],
            ) -> Result<(), LinearError> {
                product::sums_of::<{ $set }>(layer, x, out, scratch)
            }

            fn matvec(
                &mut self,
                layer: &Layer<'_>,
                x: I8Sym<'_>,
                x_scale: f32,
                out: &mut [f32],
                scratch: &mut [u32],
            ) -> Result<(), LinearError> {
                product::matvec_of::<{ $set }>(layer, x, x_scale, out, scratch)
            }

            fn matmat_each<const N: usize>(
                &mut self,
                products: [(&Layer<'_>, &mut [f32]); N],
                x: I8Sym<'_>,
                x_scales: &[f32],
                scratch: &mut [u32],
            ) -> Result<(), LinearError> {
                if let &[x_scale] = x_scales {
                    return product::matvec_each_of::<{ $set }, N>(products, x, x_scale, scratch);
                }
                for (layer, out) in products {
                    self.matmat(layer, x, x_scales, out, scratch)?;
                }
                Ok(())
            }

            fn dense(
                &mut self,
                layer: &Layer<'_>,
                rescale: &Rescale<'_>,
                x: I8Sym<'_>,
                out: &mut [i8],
                scratch: &mut [u32],
            ) -> Result<(), LinearError> {
                product::dense_of::<{ $set }>(layer, rescale, x, out, scratch)
            }
        }
    };
}
of_a_set!(SET, impl [const SET: u32, const PARTS: u32] for Only<SET, PARTS>);

impl<const SET: u32, const PARTS: u32> QuantizeEngine for Only<SET, PARTS> {
    type Error = QuantError;
    type Tensor<'a, T: Element> = Tensor<'a, T>;

    fn tensor<'a, T: Element>(
        &'a mut self,
        values: &'a [T],
        groups: Groups,
        out: Output<'a>,
    ) -> Result<Tensor<'a, T>, QuantError> {
        Tensor::new(values, groups, out.codes, out.scales, out.zero_points)
    }
}

/// Language models of these parts whose matrices have these layouts.
impl<const SET: u32, const PARTS: u32> ModelEngine for Only<SET, PARTS> {
    type Failure = ModelError;

    const PARTS: ModelParts = ModelParts::from_bits(PARTS);

    fn embed(
        &mut self,
        embedding: &Weights<'_>,
        row: usize,
        out: &mut [f32],
    ) -> Result<(), ModelError> {
        embedding.embed_of::<SET>(row, out)
    }

    fn attend(
        &mut self,
        attention: &Attention<'_, '_>,
        scores: &mut [f32],
        sums: &mut [i64],
        out: &mut [f32],
    ) -> Result<(), ModelError> {
        attention.heads_of::<PARTS>(scores, sums, out);
        Ok(())
    }
}

of_a_set!(u32::MAX, impl for Scalar);
