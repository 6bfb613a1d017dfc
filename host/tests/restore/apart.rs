//! The reference engine as one of its own memory, which has no room for some calls or fails at them.

use std::fmt;
use std::ops::RangeInclusive;

use tercet_core::block::{self, BlockError, Format};
use tercet_core::cluster::{Points, Update};
use tercet_core::engine::{
    BlockEngine, Buffers, ClusterEngine, LinearEngine, MagnitudeBin, MagnitudeSpan, ModelEngine,
    Output, PaletteEngine, QuantizeEngine, QuantizeProblem, SearchEngine,
};
use tercet_core::linear::{I8Sym, Layer, LinearError, Rescale};
use tercet_core::number::{Element, Stats};
use tercet_core::palette::{self, IndexMatrix, Palette, PaletteError};
use tercet_core::quant::{Applied, Codes, Groups, Plan, QuantError, Rule, ScaleRule};
use tercet_core::scalar::{Scalar, Tensor};
use tercet_core::search::Rows;
use tercet_host::engine::{EngineError, FlowEngine};

/// What it counts are the calls that restore.
pub(crate) struct Apart {
    /// What does it.
    scalar: Scalar,
    fails: fn(usize) -> Option<Trouble>,
    /// Calls so far.
    pub(crate) calls: usize,
    /// Those that it did.
    pub(crate) done: usize,
    /// Values that it restored.
    pub(crate) values: u64,
}

/// Why it did not.
#[derive(Debug)]
pub(crate) enum Trouble {
    Quantize(QuantError),
    Block(BlockError),
    Palette(PaletteError),
    NoRoom,
    Broken,
    /// It refuses what nobody else does.
    Refused,
}

impl Apart {
    /// An engine that fails at some calls, counted from 0.
    pub(crate) fn new(fails: fn(usize) -> Option<Trouble>) -> Self {
        Self {
            scalar: Scalar,
            fails,
            calls: 0,
            done: 0,
            values: 0,
        }
    }

    fn call(&mut self, values: usize) -> Result<(), Trouble> {
        let trouble = (self.fails)(self.calls);
        self.calls += 1;
        match trouble {
            Some(trouble) => Err(trouble),
            None => {
                self.done += 1;
                self.values += values as u64;
                Ok(())
            }
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl From<QuantError> for Trouble {
    fn from(error: QuantError) -> Self {
        Self::Quantize(error)
    }
}

impl From<BlockError> for Trouble {
    fn from(error: BlockError) -> Self {
        Self::Block(error)
    }
}

impl From<PaletteError> for Trouble {
    fn from(error: PaletteError) -> Self {
        Self::Palette(error)
    }
}

impl From<Trouble> for EngineError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Quantize(error) => error.into(),
            Trouble::Block(error) => error.into(),
            Trouble::Palette(error) => error.into(),
            Trouble::NoRoom => Self::NoRoom("none is left".into()),
            Trouble::Broken => Self::Failed("it is broken".into()),
            Trouble::Refused => BlockError::ScaleNotFinite { block: 5 }.into(),
        }
    }
}

impl FlowEngine for Apart {
    fn name(&self) -> String {
        "apart".to_owned()
    }
}

impl BlockEngine for Apart {
    type Error = Trouble;

    fn encode_blocks<T: Element>(
        &mut self,
        format: Format,
        rule: Rule,
        scale: ScaleRule,
        values: &[T],
        out: &mut [u8],
    ) -> Result<block::Encoded, Trouble> {
        Ok(block::encode(format, rule, scale, values, out)?)
    }

    fn decode_blocks(
        &mut self,
        format: Format,
        bytes: &[u8],
        out: &mut [f32],
    ) -> Result<(), Trouble> {
        self.call(out.len())?;
        Ok(block::decode(format, bytes, out)?)
    }

    fn dot_blocks(
        &mut self,
        format: Format,
        bytes: &[u8],
        x: &[i8],
        scale: f32,
    ) -> Result<f32, Trouble> {
        Ok(block::dot(format, bytes, x, scale)?)
    }
}

impl PaletteEngine for Apart {
    type Error = Trouble;

    fn encode_palette<T: Element>(
        &mut self,
        layout: &IndexMatrix,
        values: &[T],
        importances: &[u32],
        out: palette::Output<'_>,
        scratch: &mut [u64],
    ) -> Result<palette::Encoded, Trouble> {
        Ok(palette::encode(layout, values, importances, out, scratch)?)
    }

    fn decode_palette(&mut self, palette: &Palette<'_>, out: &mut [f32]) -> Result<(), Trouble> {
        self.call(out.len())?;
        Ok(palette::decode(palette, out)?)
    }

    fn multiply_palette(
        &mut self,
        palette: &Palette<'_>,
        x: &[i8],
        x_scale: f32,
        out: &mut [f32],
    ) -> Result<(), Trouble> {
        Ok(palette::matvec(palette, x, x_scale, out)?)
    }
}

impl QuantizeEngine for Apart {
    type Error = Trouble;
    type Tensor<'a, T: Element> = Quantized<'a, T>;

    fn tensor<'a, T: Element>(
        &'a mut self,
        values: &'a [T],
        groups: Groups,
        out: Output<'a>,
    ) -> Result<Quantized<'a, T>, Trouble> {
        Ok(Quantized(self.scalar.tensor(values, groups, out)?))
    }

    fn dequantize(
        &mut self,
        codes: Codes<'_>,
        range: RangeInclusive<i8>,
        out: &mut [f32],
    ) -> Result<(), Trouble> {
        self.call(out.len())?;
        Ok(self.scalar.dequantize(codes, range, out)?)
    }
}

/// The reference engine's tensor.
pub(crate) struct Quantized<'a, T>(Tensor<'a, T>);

impl<T: Element> QuantizeProblem for Quantized<'_, T> {
    type Error = Trouble;

    fn groups(&self) -> Groups {
        self.0.groups()
    }

    fn stats(&mut self, group: usize) -> Result<Stats, Trouble> {
        Ok(self.0.stats(group)?)
    }

    fn extremes(&mut self, group: usize) -> Result<Stats, Trouble> {
        Ok(self.0.extremes(group)?)
    }

    fn read_magnitudes(&mut self, group: usize, out: &mut [u32]) -> Result<(), Trouble> {
        Ok(self.0.read_magnitudes(group, out)?)
    }

    fn magnitudes(
        &mut self,
        group: usize,
        span: MagnitudeSpan,
        bins: &mut [MagnitudeBin],
    ) -> Result<(), Trouble> {
        Ok(self.0.magnitudes(group, span, bins)?)
    }

    fn apply(&mut self, group: usize, plan: &Plan) -> Result<Applied, Trouble> {
        Ok(self.0.apply(group, plan)?)
    }

    fn set_scale(&mut self, group: usize, scale: f32, zero_point: i8) -> Result<(), Trouble> {
        Ok(self.0.set_scale(group, scale, zero_point)?)
    }
}

impl ClusterEngine for Apart {
    type Error = <Scalar as ClusterEngine>::Error;
    type Clusters<'a> = <Scalar as ClusterEngine>::Clusters<'a>;

    fn clusters<'a>(
        &'a mut self,
        points: Points<'a>,
        k: usize,
        update: Update,
        buffers: Buffers<'a>,
    ) -> Result<Self::Clusters<'a>, Self::Error> {
        self.scalar.clusters(points, k, update, buffers)
    }
}

impl SearchEngine for Apart {
    type Error = <Scalar as SearchEngine>::Error;
    type Base<'a, R: Rows + 'a> = <Scalar as SearchEngine>::Base<'a, R>;

    fn base<'a, R: Rows + 'a>(&'a mut self, rows: R) -> Result<Self::Base<'a, R>, Self::Error> {
        self.scalar.base(rows)
    }
}

impl ModelEngine for Apart {
    type Failure = EngineError;
}

impl LinearEngine for Apart {
    type Error = LinearError;

    fn sums(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        out: &mut [i64],
        scratch: &mut [u32],
    ) -> Result<(), LinearError> {
        self.scalar.sums(layer, x, out, scratch)
    }

    fn matvec(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scale: f32,
        out: &mut [f32],
        scratch: &mut [u32],
    ) -> Result<(), LinearError> {
        self.scalar.matvec(layer, x, x_scale, out, scratch)
    }

    fn dense(
        &mut self,
        layer: &Layer<'_>,
        rescale: &Rescale<'_>,
        x: I8Sym<'_>,
        out: &mut [i8],
        scratch: &mut [u32],
    ) -> Result<(), LinearError> {
        self.scalar.dense(layer, rescale, x, out, scratch)
    }
}
