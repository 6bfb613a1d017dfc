//! The reference engine as an [`crate::engine`] value.

use super::{Clusters, Tensor};
use crate::block::{self, BlockError, Encoded, Format};
use crate::cluster::{ClusterError, Points, Update};
use crate::engine::{BlockEngine, Buffers, ClusterEngine, Output, QuantizeEngine};
use crate::number::Element;
use crate::quant::{Groups, QuantError, Rule, ScaleRule};

/// The reference engine: plain loops, no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scalar;

impl QuantizeEngine for Scalar {
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

impl BlockEngine for Scalar {
    type Error = BlockError;

    fn encode_blocks<T: Element>(
        &mut self,
        format: Format,
        rule: Rule,
        scale: ScaleRule,
        values: &[T],
        out: &mut [u8],
    ) -> Result<Encoded, BlockError> {
        block::encode(format, rule, scale, values, out)
    }

    fn decode_blocks(
        &mut self,
        format: Format,
        bytes: &[u8],
        out: &mut [f32],
    ) -> Result<(), BlockError> {
        block::decode(format, bytes, out)
    }

    fn dot_blocks(
        &mut self,
        format: Format,
        bytes: &[u8],
        x: &[i8],
        x_scale: f32,
    ) -> Result<f32, BlockError> {
        block::dot(format, bytes, x, x_scale)
    }
}

impl ClusterEngine for Scalar {
    type Error = ClusterError;
    type Clusters<'a> = Clusters<'a>;

    fn clusters<'a>(
        &'a mut self,
        points: Points<'a>,
        k: usize,
        update: Update,
        buffers: Buffers<'a>,
    ) -> Result<Clusters<'a>, ClusterError> {
        Clusters::new(points, k, update, buffers)
    }
}
