//! Runs a network over whole data sets.

use std::path::{Path, PathBuf};

use tercet_core::engine::Output;
use tercet_core::linear::I8Sym;
use tercet_core::linear::network::{Buffers, Network};
use tercet_core::quant::{Groups, Method, QuantError};

use super::activations::symmetric;
use super::{BATCH, MAX_LAYERS};
use crate::Error;
use crate::engine::{DoneBy, EngineError, FlowEngine, WithFallback};
use crate::file::map::Map;
use crate::parallel::each::{chunks, chunks_mut, items_mut};
use crate::parallel::{Rows, moved};
use crate::points::{Points, Values};
use crate::simd::{Backend, Stores};
use crate::source::TILE;

/// The file of a network.
#[derive(Debug)]
pub struct NetworkFile {
    path: PathBuf,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Map),
    Owned(Vec<u8>),
}

/// The outputs of a network for every point.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answers {
    /// Logits per point.
    pub outputs: usize,
    /// The exact sums of the last layer, point after point.
    pub sums: Vec<i64>,
    /// The logits as f32, point after point.
    pub logits: Vec<f32>,
    /// For every point the row of the largest logit, with ties to the lowest.
    pub classes: Vec<usize>,
    /// The engine that multiplied the layers; two names if each did a part of the points.
    pub by: DoneBy,
}

impl NetworkFile {
    /// Maps a file and checks it completely.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::UnknownFile`]; [`Error::BadFile`] for a file that is no network.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::checked(path.to_path_buf(), Bytes::Mapped(Map::open(path)?))
    }

    /// Reads a file from memory; errors use `name` as its path.
    ///
    /// # Errors
    /// [`Error::BadFile`] if it is no network.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, Error> {
        Self::checked(name.into(), Bytes::Owned(bytes))
    }

    fn checked(path: PathBuf, bytes: Bytes) -> Result<Self, Error> {
        let file = Self { path, bytes };
        file.network().map(drop)?;
        Ok(file)
    }

    /// Returns the file's bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map.bytes(),
            Bytes::Owned(bytes) => bytes,
        }
    }

    /// Returns the bytes, copied if they were mapped.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self.bytes {
            Bytes::Mapped(map) => map.bytes().to_vec(),
            Bytes::Owned(bytes) => bytes,
        }
    }

    /// Returns the network in the file.
    ///
    /// # Errors
    /// None, unless the mapped file has changed since it was opened.
    pub fn network(&self) -> Result<Network<'_, MAX_LAYERS>, Error> {
        Network::new(self.bytes()).map_err(|error| Error::bad(&self.path, "network", error))
    }

    /// Runs every point on an engine, with the same bits on every engine.
    ///
    /// [`BATCH`] points go through the layers together ([`Network::run_many`]), so beside the points and the answers
    /// only their activations are in memory. The processor's threads convert values to inputs with
    /// [`Network::quantize`]: int8 data with the network's scale stays unchanged. They also run a batch that the engine
    /// has no room for.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the points have another number of values than the network has inputs, or a value is
    /// not finite; [`Error::Engine`].
    pub fn run<E: FlowEngine>(&self, engine: &mut E, points: &Points) -> Result<Answers, Error> {
        let network = self.network()?;
        let (inputs, outputs) = (network.inputs(), network.outputs());
        if points.dims() != inputs {
            let reason = format!(
                "points have {} values, but {} takes {inputs}",
                points.dims(),
                self.path.display()
            );
            return Err(points.refuse(&reason));
        }
        let mut shared = WithFallback::new(engine);
        let mut sums = vec![0; outputs * points.rows()];
        let batch = BATCH.min(points.rows());
        let mut codes = vec![0; inputs * batch];
        let mut activations = vec![0; network.activations_len_many(batch)];
        let mut scratch = vec![0; network.scratch_len_on(shared.engine)];
        for (number, sums) in sums.chunks_mut(outputs * BATCH).enumerate() {
            let codes = &mut codes[..sums.len() / outputs * inputs];
            quantize(&network, points, number * BATCH, codes)?;
            let mut buffers = Buffers {
                activations: &mut activations,
                scratch: &mut scratch,
            };
            let mut run = || -> Result<(), EngineError> {
                let x = I8Sym::new(codes)?;
                let done = network.run_many(shared.engine, x, &mut buffers, sums);
                shared.or_threads(done, |threads| {
                    Ok(network.run_many(threads, x, &mut buffers, sums)?)
                })
            };
            run().map_err(|fault| shared.error(fault, |refusal| points.refuse(refusal)))?;
        }
        let (mut logits, mut classes) = (vec![0.0; sums.len()], vec![0; sums.len() / outputs]);
        chunks(&sums, outputs)
            .zip(chunks_mut(&mut logits, outputs))
            .zip(items_mut(&mut classes))
            .each(|_, ((sums, logits), class)| {
                for (row, (logit, &sum)) in logits.iter_mut().zip(sums).enumerate() {
                    *logit = network.logit(row, sum);
                }
                *class = network.class(sums);
            });
        Ok(Answers {
            outputs,
            logits,
            classes,
            by: shared.by(),
            sums,
        })
    }
}

/// Writes the codes of the points from `first` on, as many as there is room for, on all threads, as
/// [`Network::quantize`] does.
fn quantize(
    network: &Network<'_, MAX_LAYERS>,
    points: &Points,
    first: usize,
    codes: &mut [i8],
) -> Result<(), Error> {
    let (inputs, scale) = (network.inputs(), network.input_scale());
    let start = first * inputs;
    match points.values() {
        // A code times the scale divided by the scale, rounded twice to 24 bits, is still nearest to that code.
        Values::I8 { codes: own, grid }
            if grid.zero_point == 0 && grid.scale == scale && (128.0 * scale).is_finite() =>
        {
            let own = &own[start..][..codes.len()];
            let pairs = codes.iter_mut().zip(own);
            pairs.for_each(|(code, &own)| *code = own.max(-127));
            return Ok(());
        }
        _ => {}
    }
    // Points per task: about a tile of values.
    let some = (TILE / inputs).max(1);
    let parts = chunks_mut(codes, some * inputs);
    let done = parts.try_each_with(Vec::new, |buffer, part, codes| {
        let at = start + part * some * inputs;
        let values = points.view(at, codes.len(), buffer);
        let groups = Groups::tensor(codes.len())?;
        let out = Output {
            codes,
            scales: &mut [0.0],
            zero_points: &mut [],
        };
        Rows::new(values, groups, out, Backend::default(), Stores::Cached)
            .quantize(Method::Fixed(symmetric(scale)), &mut [])
            .map(drop)
            .map_err(|error| moved(error, at as u64))
    });
    let refuse = |error| match error {
        QuantError::NotFinite { index } => {
            let (row, column) = (index / inputs as u64, index % inputs as u64);
            points.refuse(&format!(
                "row {row}, column {column} (from 0) is not finite as f32"
            ))
        }
        error => points.refuse(&error),
    };
    done.map_err(refuse)
}
