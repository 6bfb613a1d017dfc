//! One worker's memory, and a part of a batch that runs through the model.

use std::path::Path;
use std::time::{Duration, Instant};

use tercet_core::engine::TrainEngine;
use tercet_core::model::{
    Cache, CacheShape, CacheType, Codes, Memory as ModelMemory, Model, ModelError, Pattern, Place,
    Sequence,
};
use tercet_core::train::{
    Activations, Batch, Fault, GradientSums, Loss, Memory, Needs, Transposed, gradients,
};

use super::image::NAME;
use super::offload::Offloaded;
use crate::Error;
use crate::engine::EngineError;

/// Memory for some sequences at a time, and separate sums of gradients: sums of workers can be added in any order.
#[derive(Debug)]
pub(super) struct Worker<E> {
    engine: E,
    pub(super) sums: Vec<i64>,
    pub(super) loss: Loss,
    /// The time with work, of all steps, and that of the teacher beside it.
    pub(super) busy: Duration,
    pub(super) teaching: Duration,
    /// A teacher's probabilities for some sequences.
    pub(super) soft: Vec<f32>,
    keys: Vec<i8>,
    values: Vec<i8>,
    scales: Vec<f32>,
    free: Vec<u32>,
    tables: Vec<u32>,
    places: Vec<Place>,
    model_floats: Vec<f32>,
    model_bytes: Vec<i8>,
    halves: Vec<i16>,
    model_longs: Vec<i64>,
    words: Vec<u32>,
    floats: Offloaded<f32>,
    kept: Offloaded<u8>,
    bytes: Vec<i8>,
    ints: Vec<i32>,
    longs: Vec<i64>,
}

impl<E> Worker<E> {
    pub(super) const fn engine(&self) -> &E {
        &self.engine
    }
}

impl<E: TrainEngine<Failure: Into<EngineError>>> Worker<E> {
    /// Returns a worker without memory; it allocates as much as a batch needs.
    pub(super) const fn new(engine: E) -> Self {
        Self {
            engine,
            sums: Vec::new(),
            loss: 0,
            busy: Duration::ZERO,
            teaching: Duration::ZERO,
            soft: Vec::new(),
            keys: Vec::new(),
            values: Vec::new(),
            scales: Vec::new(),
            free: Vec::new(),
            tables: Vec::new(),
            places: Vec::new(),
            model_floats: Vec::new(),
            model_bytes: Vec::new(),
            halves: Vec::new(),
            model_longs: Vec::new(),
            words: Vec::new(),
            floats: Offloaded::Memory(Vec::new()),
            kept: Offloaded::Memory(Vec::new()),
            bytes: Vec::new(),
            ints: Vec::new(),
            longs: Vec::new(),
        }
    }

    /// Keeps the values of layers, and other floats of the backward pass, in a file in a folder.
    pub(super) fn offload(&mut self, folder: &Path) {
        self.floats = Offloaded::in_folder(folder.to_owned());
        self.kept = Offloaded::in_folder(folder.to_owned());
    }

    /// Begins a step without gradients or loss.
    pub(super) fn begin(&mut self, values: usize) {
        let start = Instant::now();
        self.sums.clear();
        self.sums.resize(values, 0);
        self.loss = 0;
        self.busy += start.elapsed();
    }

    /// Adds the gradients of some sequences to sums: those of this worker, or others.
    pub(super) fn add(
        &mut self,
        (model, transposed): (&Model<'_, '_>, &Transposed<'_>),
        batch: &Batch<'_>,
        sums: &mut (impl GradientSums + ?Sized),
    ) -> Result<Result<(), Fault>, Error> {
        let start = Instant::now();
        let refuse = |failure: EngineError| Error::unsupported(NAME.as_ref(), failure);
        let of_model = |error: ModelError| Error::unsupported(NAME.as_ref(), error);
        let rows = batch.tokens.len();
        let shape = (batch.length, rows / batch.length);
        let kept = (batch.recompute, batch.activations);
        let room = Room::of(&self.engine, (model, transposed), shape, kept);
        let room = room.map_err(of_model)?;
        self.room(&room);
        let (context, own) = (batch.length as u32, room.pages / shape.1.max(1));
        let shape = room.cache;
        let (keys, values) = (
            Codes::Narrow(&mut self.keys),
            Codes::Narrow(&mut self.values),
        );
        let cache = Cache::new(shape, keys, values, &mut self.scales, &mut self.free);
        let mut cache = cache.map_err(of_model)?;
        let tables = self.tables.chunks_mut(own.max(1));
        let sequences = tables
            .map(|table| Sequence::new(Pattern::FULL, CacheType::Int8, context, context, table));
        let mut sequences: Vec<Sequence<'_>> =
            sequences.collect::<Result<_, _>>().map_err(of_model)?;
        let mut memory = Memory {
            model: ModelMemory {
                places: &mut self.places,
                floats: &mut self.model_floats,
                bytes: &mut self.model_bytes,
                halves: &mut self.halves,
                longs: &mut self.model_longs,
                words: &mut self.words,
            },
            floats: self.floats.of(room.needs.floats)?,
            kept: self.kept.of(room.needs.kept)?,
            bytes: &mut self.bytes,
            ints: &mut self.ints,
            longs: &mut self.longs,
        };
        let found = gradients(
            &mut self.engine,
            (model, transposed),
            batch,
            (&mut cache, &mut sequences),
            &mut memory,
            sums,
        );
        let found = found.map_err(|failure| refuse(failure.into()))?;
        self.busy += start.elapsed();
        Ok(found.map(|loss| self.loss += loss))
    }

    /// Allocates the needed memory.
    fn room(&mut self, room: &Room) {
        let Room { needs, pages, .. } = *room;
        self.keys.resize(room.codes(), 0);
        self.values.resize(room.codes(), 0);
        self.scales.resize(room.scales(), 0.0);
        self.free.resize(pages, 0);
        self.tables.resize(pages, 0);
        let model = &needs.model;
        self.places.resize(model.places, Place::default());
        self.model_floats.resize(model.floats, 0.0);
        self.model_bytes.resize(model.bytes, 0);
        self.halves.resize(model.halves, 0);
        self.model_longs.resize(model.longs, 0);
        self.words.resize(model.words, 0);
        self.bytes.resize(needs.bytes, 0);
        self.ints.resize(needs.ints, 0);
        self.longs.resize(needs.longs, 0);
    }
}

/// The memory that a worker needs for some sequences, besides its sums.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    needs: Needs,
    cache: CacheShape,
    /// Pages of the cache, of all sequences together.
    pages: usize,
}

impl Room {
    /// Returns the memory for `sequences` sequences of `length` rows. O(layers).
    pub(super) fn of<E: TrainEngine>(
        engine: &E,
        (model, transposed): (&Model<'_, '_>, &Transposed<'_>),
        (length, sequences): (usize, usize),
        kept: (bool, Activations),
    ) -> Result<Self, ModelError> {
        let rows = sequences.checked_mul(length).ok_or(ModelError::TooLarge)?;
        let context = u32::try_from(length).map_err(|_| ModelError::TooLarge)?;
        let own = Sequence::pages(Pattern::FULL, context, context);
        Ok(Self {
            needs: Needs::of(engine, model, transposed, (length, rows), kept)?,
            cache: CacheShape::new(model.config(), CacheType::Int8),
            pages: own.saturating_mul(sequences),
        })
    }

    /// Returns the number of codes of keys, which is that of values.
    const fn codes(&self) -> usize {
        self.cache.codes().saturating_mul(self.pages)
    }

    /// Returns the number of scales of keys and values.
    const fn scales(&self) -> usize {
        self.cache
            .scales()
            .saturating_mul(self.pages)
            .saturating_mul(2)
    }

    /// Returns the bytes that can be in files ([`Worker::offload`]).
    pub(super) const fn offloaded(&self) -> usize {
        let floats = self.needs.floats.saturating_mul(size_of::<f32>());
        floats.saturating_add(self.needs.kept)
    }

    /// Returns the total size in bytes.
    pub(super) const fn bytes(&self) -> usize {
        // A page is also one of the free ones and one of its sequence's table.
        let page = self.cache.bytes().saturating_add(2 * size_of::<u32>());
        let cache = page.saturating_mul(self.pages);
        self.needs.total_bytes().saturating_add(cache)
    }
}
