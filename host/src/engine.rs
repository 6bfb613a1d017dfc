//! Engines that whole flows run on: clustering, search, calibration, conversions of files and looks at them, and integer networks.
//!
//! [`crate::quantize`], [`crate::dequantize`], [`crate::compare`], [`crate::inspect`], [`crate::calibrate()`], [`crate::search::search`]
//! and the functions of [`crate::cluster::data`] and [`crate::network`] run on all threads of the processor. Beside each stands one of
//! the same name with `_with`, which is given the engine: a [`Worker`]. The flow is the same code, and so are the bits.
//!
//! Where an engine has no room for a piece of work, the threads of the processor do that piece, and what comes back says so
//! ([`By`]). Any other failure of the engine ends the flow with [`Error::Engine`].

use std::error::Error as StdError;
use std::fmt;
use std::ops::RangeInclusive;

use tercet_core::block::BlockError;
use tercet_core::cluster::{ClusterError, Points};
use tercet_core::engine::{
    BlockEngine, ClusterEngine, LinearEngine, PaletteEngine, QuantizeEngine, SearchEngine,
};
use tercet_core::linear::LinearError;
use tercet_core::palette::PaletteError;
use tercet_core::quant::{Codes, QuantError, int8};
use tercet_core::scalar::Scalar;
use tercet_core::search::SearchError;

use crate::Error;
use crate::parallel::Threads;

mod memory;
mod shared;

pub(crate) use memory::Memory;
use memory::nearest_in_parts;
pub(crate) use shared::Shared;

/// An engine that flows over files run on.
pub trait Worker:
    QuantizeEngine<Error: Into<Fault>>
    + BlockEngine<Error: Into<Fault>>
    + ClusterEngine<Error: Into<Fault>>
    + SearchEngine<Error: Into<Fault>>
    + PaletteEngine<Error: Into<Fault>>
    + LinearEngine<Error: Into<Fault>>
    + Send
    + 'static
{
    /// Whether points and their clusters lie in memory of the engine's own: it then gets no [`tercet_core::engine::Buffers`] to
    /// work in.
    const OWN_MEMORY: bool;

    /// What reports call it.
    fn name(&self) -> String;

    /// Writes `fl((code − zero_point) · scale)`, for codes of a range.
    ///
    /// # Errors
    /// Those of core's decoders: lengths first, then [`QuantError::CodeRange`] with the lowest index ([`check_codes`] finds both); the
    /// engine's.
    fn dequantize(
        &mut self,
        codes: Codes<'_>,
        range: RangeInclusive<i8>,
        out: &mut [f32],
    ) -> Result<(), Fault>;

    /// Gives every point the nearest of `centroids`, the lowest of equals, and its squared distance to that. There may be more
    /// centroids than points; both slices are as long as there are points.
    ///
    /// Provided through [`tercet_core::engine::ClusterProblem::measure`], which says what any engine must give.
    ///
    /// # Errors
    /// [`ClusterError::Length`] where centroids are none, or no whole ones; the engine's.
    fn nearest(
        &mut self,
        points: Points<'_>,
        centroids: &[i8],
        labels: &mut [u32],
        distances: &mut [u32],
    ) -> Result<(), Fault>
    where
        Self: Sized,
    {
        nearest_in_parts(self, points, centroids, labels, distances)
    }
}

impl Worker for Threads {
    const OWN_MEMORY: bool = false;

    /// Its instruction set's.
    fn name(&self) -> String {
        self.backend().to_string()
    }

    fn dequantize(
        &mut self,
        codes: Codes<'_>,
        range: RangeInclusive<i8>,
        out: &mut [f32],
    ) -> Result<(), Fault> {
        Ok(Self::dequantize(self, codes, range, out)?)
    }

    /// All centroids in one pass, however many there are.
    #[cfg(feature = "clustering")]
    fn nearest(
        &mut self,
        points: Points<'_>,
        centroids: &[i8],
        labels: &mut [u32],
        distances: &mut [u32],
    ) -> Result<(), Fault> {
        self.nearest_of(points, centroids, labels, distances);
        Ok(())
    }
}

impl Worker for Scalar {
    const OWN_MEMORY: bool = false;

    fn name(&self) -> String {
        "scalar".to_owned()
    }

    fn dequantize(
        &mut self,
        codes: Codes<'_>,
        range: RangeInclusive<i8>,
        out: &mut [f32],
    ) -> Result<(), Fault> {
        check_codes(&codes, &range, out.len())?;
        Ok(int8::dequantize(codes, out)?)
    }
}

/// What core's decoders refuse of codes of a range before they begin, for engines whose own take all 256: O(codes) at most.
///
/// # Errors
/// Those of [`Codes::check`] for `len` values; [`QuantError::CodeRange`] with the lowest index.
pub fn check_codes(
    codes: &Codes<'_>,
    range: &RangeInclusive<i8>,
    len: usize,
) -> Result<(), QuantError> {
    codes.check(len)?;
    if *range == int8::RANGE {
        return Ok(());
    }
    match codes.codes.iter().position(|code| !range.contains(code)) {
        None => Ok(()),
        Some(index) => Err(QuantError::CodeRange {
            index: index as u64,
        }),
    }
}

/// Why an engine did not do what it was asked.
#[derive(Debug)]
#[non_exhaustive]
pub enum Fault {
    /// What every engine's quantizer refuses.
    Quantize(QuantError),
    /// What every engine's block formats refuse.
    Block(BlockError),
    /// What every engine's clustering refuses.
    Cluster(ClusterError),
    /// What every engine's search refuses.
    Search(SearchError),
    /// What every engine's palettes refuse.
    Palette(PaletteError),
    /// What every engine's layers refuse.
    Linear(LinearError),
    /// The engine's memory has no room for it. The engine is as it was.
    NoRoom(Box<dyn StdError + Send + Sync>),
    /// The engine itself failed.
    Engine(Box<dyn StdError + Send + Sync>),
}

impl Fault {
    /// The error of a flow: an engine's own under the engine's `name`, and what all refuse as `refuse` tells it.
    pub(crate) fn told(
        self,
        name: String,
        refuse: impl FnOnce(&dyn fmt::Display) -> Error,
    ) -> Error {
        match self {
            Self::NoRoom(source) | Self::Engine(source) => Error::Engine {
                engine: name,
                source,
            },
            refusal => refuse(&refusal),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantize(error) => error.fmt(f),
            Self::Block(error) => error.fmt(f),
            Self::Cluster(error) => error.fmt(f),
            Self::Search(error) => error.fmt(f),
            Self::Palette(error) => error.fmt(f),
            Self::Linear(error) => error.fmt(f),
            Self::NoRoom(error) | Self::Engine(error) => error.fmt(f),
        }
    }
}

impl From<QuantError> for Fault {
    fn from(error: QuantError) -> Self {
        Self::Quantize(error)
    }
}

impl From<BlockError> for Fault {
    fn from(error: BlockError) -> Self {
        Self::Block(error)
    }
}

impl From<ClusterError> for Fault {
    fn from(error: ClusterError) -> Self {
        Self::Cluster(error)
    }
}

impl From<SearchError> for Fault {
    fn from(error: SearchError) -> Self {
        Self::Search(error)
    }
}

impl From<PaletteError> for Fault {
    fn from(error: PaletteError) -> Self {
        Self::Palette(error)
    }
}

impl From<LinearError> for Fault {
    fn from(error: LinearError) -> Self {
        Self::Linear(error)
    }
}

/// Who did the work.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct By {
    /// The name of the engine that did it.
    pub engine: String,
    /// Why that is not the engine that was to do it; `None` where it is.
    pub note: Option<String>,
}

impl By {
    /// The work of the engine of this name.
    pub(crate) const fn name(engine: String) -> Self {
        Self { engine, note: None }
    }

    /// What the engine of this name has done, or, where it had no room, what the processor's threads then do.
    pub(crate) fn or_threads<T>(
        name: String,
        done: Result<T, impl Into<Fault>>,
        threads: impl FnOnce(&mut Threads) -> Result<T, Fault>,
    ) -> Result<(T, Self), Fault> {
        let reason = match done.map_err(Into::into) {
            Ok(done) => return Ok((done, Self::name(name))),
            Err(Fault::NoRoom(reason)) => reason,
            Err(fault) => return Err(fault),
        };
        let mut engine = Threads::default();
        let done = threads(&mut engine)?;
        let by = Self {
            engine: engine.name(),
            note: Some(no_room(&name, &reason)),
        };
        Ok((done, by))
    }
}

/// Why an engine's work was done by the processor.
pub(crate) fn no_room(name: &str, reason: &dyn fmt::Display) -> String {
    format!("{name} had no room for it: {reason}")
}
