//! A network over whole data sets.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use tercet_core::linear::network::{Buffers, Network};
use tercet_core::scalar::Scalar;

use super::MAX_LAYERS;
use crate::Error;
use crate::file::map::Map;
use crate::points::Points;

/// A network's file.
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

/// What a network says to every point.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answers {
    /// Logits of a point.
    pub outputs: usize,
    /// The last layer's exact sums, point after point.
    pub sums: Vec<i64>,
    /// The logits as f32, point after point.
    pub logits: Vec<f32>,
    /// The row of the largest logit, the lowest of equals, of every point.
    pub classes: Vec<usize>,
}

impl NetworkFile {
    /// Maps a file and checks all of it.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::UnknownFile`]; [`Error::BadFile`] for a file that is no network.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::checked(path.to_path_buf(), Bytes::Mapped(Map::open(path)?))
    }

    /// Takes a file from memory; `name` stands for its path in errors.
    ///
    /// # Errors
    /// [`Error::BadFile`] where it is no network.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, Error> {
        Self::checked(name.into(), Bytes::Owned(bytes))
    }

    fn checked(path: PathBuf, bytes: Bytes) -> Result<Self, Error> {
        let file = Self { path, bytes };
        file.network().map(drop)?;
        Ok(file)
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map.bytes(),
            Bytes::Owned(bytes) => bytes,
        }
    }

    /// The bytes, copied where they were mapped.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self.bytes {
            Bytes::Mapped(map) => map.bytes().to_vec(),
            Bytes::Owned(bytes) => bytes,
        }
    }

    /// The network in it.
    ///
    /// # Errors
    /// None where it was opened, unless the mapped file has changed since.
    pub fn network(&self) -> Result<Network<'_, MAX_LAYERS>, Error> {
        Network::new(self.bytes()).map_err(|error| Error::bad(&self.path, "network", error))
    }

    /// Runs every point, on all threads.
    ///
    /// Values become inputs by [`Network::quantize`]: int8 data whose scale is the network's stay as they are.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the points have another number of values than the network has inputs.
    pub fn run(&self, points: &Points) -> Result<Answers, Error> {
        let network = self.network()?;
        let (inputs, outputs) = (network.inputs(), network.outputs());
        let refuse = |error: &dyn std::fmt::Display| points.refuse(error);
        if points.dims() != inputs {
            let reason = format!(
                "points of {} values, where {} takes {inputs}",
                points.dims(),
                self.path.display()
            );
            return Err(refuse(&reason));
        }
        let mut sums = vec![0; outputs * points.rows()];
        sums.par_chunks_mut(outputs).enumerate().try_for_each_init(
            || Memory::of(&network),
            |memory, (row, sums)| {
                let Memory {
                    values,
                    codes,
                    activations,
                    scratch,
                } = memory;
                // There is such a row, and it has so many values.
                points.read_row(row, values);
                let x = network
                    .quantize(values, codes)
                    .map_err(|error| refuse(&error))?;
                let mut buffers = Buffers {
                    activations,
                    scratch,
                };
                network
                    .run(&mut Scalar, x, &mut buffers, sums)
                    .map_err(|error| refuse(&error))
            },
        )?;
        let logit = |(at, &sum): (usize, &i64)| network.logit(at % outputs, sum);
        Ok(Answers {
            outputs,
            logits: sums.iter().enumerate().map(logit).collect(),
            classes: sums
                .chunks(outputs)
                .map(|sums| network.class(sums))
                .collect(),
            sums,
        })
    }
}

/// What a thread runs with.
struct Memory {
    values: Vec<f32>,
    codes: Vec<i8>,
    activations: Vec<i8>,
    scratch: Vec<u32>,
}

impl Memory {
    fn of(network: &Network<'_, MAX_LAYERS>) -> Self {
        Self {
            values: vec![0.0; network.inputs()],
            codes: vec![0; network.inputs()],
            activations: vec![0; network.activations_len()],
            scratch: vec![0; network.scratch_len()],
        }
    }
}
