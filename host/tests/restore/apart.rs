//! The reference engine as one of its own memory, which has no room for some calls or fails at them.

use std::fmt;
use std::ops::RangeInclusive;

use tercet_core::block::{self, BlockError, Format};
use tercet_core::cluster::{Points, Update};
use tercet_core::engine::{
    BlockEngine, Buffers, ClusterEngine, LinearEngine, Output, PaletteEngine, QuantizeEngine,
    SearchEngine,
};
use tercet_core::linear::{I8Sym, Layer, LinearError, Rescale};
use tercet_core::number::Element;
use tercet_core::palette::{self, Layout, Palette, PaletteError};
use tercet_core::quant::{Codes, Groups, Rule, ScaleRule};
use tercet_core::scalar::Scalar;
use tercet_core::search::Rows;
use tercet_host::engine::{Fault, Worker};

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

impl From<Trouble> for Fault {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Block(error) => error.into(),
            Trouble::Palette(error) => error.into(),
            Trouble::NoRoom => Self::NoRoom("none is left".into()),
            Trouble::Broken => Self::Engine("it is broken".into()),
            Trouble::Refused => BlockError::ScaleNotFinite { block: 5 }.into(),
        }
    }
}

impl Worker for Apart {
    const OWN_MEMORY: bool = true;

    fn name(&self) -> String {
        "apart".to_owned()
    }

    fn dequantize(
        &mut self,
        codes: Codes<'_>,
        range: RangeInclusive<i8>,
        out: &mut [f32],
    ) -> Result<(), Fault> {
        self.call(out.len())?;
        self.scalar.dequantize(codes, range, out)
    }
}

impl BlockEngine for Apart {
    type Error = Trouble;

    fn encode<T: Element>(
        &mut self,
        format: Format,
        rule: Rule,
        scale: ScaleRule,
        values: &[T],
        out: &mut [u8],
    ) -> Result<block::Encoded, Trouble> {
        Ok(block::encode(format, rule, scale, values, out)?)
    }

    fn decode(&mut self, format: Format, bytes: &[u8], out: &mut [f32]) -> Result<(), Trouble> {
        self.call(out.len())?;
        Ok(block::decode(format, bytes, out)?)
    }

    fn dot(&mut self, format: Format, bytes: &[u8], x: &[i8], scale: f32) -> Result<f32, Trouble> {
        Ok(block::dot(format, bytes, x, scale)?)
    }
}

impl PaletteEngine for Apart {
    type Error = Trouble;

    fn encode<T: Element>(
        &mut self,
        layout: &Layout,
        values: &[T],
        importances: &[u32],
        out: palette::Output<'_>,
        scratch: &mut [u64],
    ) -> Result<palette::Encoded, Trouble> {
        Ok(palette::encode(layout, values, importances, out, scratch)?)
    }

    fn decode(&mut self, palette: &Palette<'_>, out: &mut [f32]) -> Result<(), Trouble> {
        self.call(out.len())?;
        Ok(palette::decode(palette, out)?)
    }

    fn matvec(
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
    type Error = <Scalar as QuantizeEngine>::Error;
    type Tensor<'a, T: Element> = <Scalar as QuantizeEngine>::Tensor<'a, T>;

    fn tensor<'a, T: Element>(
        &'a mut self,
        values: &'a [T],
        groups: Groups,
        out: Output<'a>,
    ) -> Result<Self::Tensor<'a, T>, Self::Error> {
        self.scalar.tensor(values, groups, out)
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
        LinearEngine::matvec(&mut self.scalar, layer, x, x_scale, out, scratch)
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
