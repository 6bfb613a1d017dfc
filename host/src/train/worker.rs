//! One worker's memory, and a part of a batch that runs through the model.

use tercet_core::engine::TrainEngine;
use tercet_core::model::{
    Cache, CacheShape, CacheType, Codes, Memory as ModelMemory, Model, Pattern, Place, Sequence,
};
use tercet_core::train::{Batch, Fault, Loss, Memory, Needs, Shapes, Transposed, gradients};

use super::image::NAME;
use crate::Error;
use crate::engine::EngineError;

/// Memory for some sequences at a time, and separate sums of gradients: sums of workers can be added in any order.
#[derive(Debug)]
pub(super) struct Worker<E> {
    engine: E,
    pub(super) sums: Vec<i64>,
    pub(super) loss: Loss,
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
    floats: Vec<f32>,
    bytes: Vec<i8>,
    ints: Vec<i32>,
    longs: Vec<i64>,
}

impl<E: TrainEngine<Failure: Into<EngineError>>> Worker<E> {
    /// Returns a worker without memory; it allocates as much as a batch needs.
    pub(super) const fn new(engine: E) -> Self {
        Self {
            engine,
            sums: Vec::new(),
            loss: 0,
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
            floats: Vec::new(),
            bytes: Vec::new(),
            ints: Vec::new(),
            longs: Vec::new(),
        }
    }

    /// Begins a step without gradients or loss.
    pub(super) fn begin(&mut self, values: usize) {
        self.sums.clear();
        self.sums.resize(values, 0);
        self.loss = 0;
    }

    /// Adds the gradients of some sequences.
    pub(super) fn add(
        &mut self,
        model: &Model<'_, '_>,
        transposed: &Transposed<'_>,
        batch: &Batch<'_>,
    ) -> Result<Result<(), Fault>, Error> {
        let refuse = |failure: EngineError| Error::unsupported(NAME.as_ref(), failure);
        let of_model =
            |error: tercet_core::model::ModelError| Error::unsupported(NAME.as_ref(), error);
        let rows = batch.tokens.len();
        let shape = (batch.length, rows);
        let needs =
            Needs::of(&self.engine, model, transposed, shape, batch.recompute).map_err(of_model)?;
        self.room(&needs);
        let context = batch.length as u32;
        let own = Sequence::pages(Pattern::FULL, context, context);
        let sequences = rows / batch.length;
        let pages = own * sequences;
        let shape = CacheShape::new(model.config(), CacheType::Int8);
        self.keys.resize(shape.codes() * pages, 0);
        self.values.resize(shape.codes() * pages, 0);
        self.scales.resize(2 * shape.scales() * pages, 0.0);
        self.free.resize(pages, 0);
        self.tables.resize(pages, 0);
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
            floats: &mut self.floats,
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
            &mut self.sums,
        );
        let found = found.map_err(|failure| refuse(failure.into()))?;
        Ok(found.map(|loss| self.loss += loss))
    }

    /// Allocates the needed memory.
    fn room(&mut self, needs: &Needs) {
        let model = &needs.model;
        self.places.resize(model.places, Place::default());
        self.model_floats.resize(model.floats, 0.0);
        self.model_bytes.resize(model.bytes, 0);
        self.halves.resize(model.halves, 0);
        self.model_longs.resize(model.longs, 0);
        self.words.resize(model.words, 0);
        self.floats.resize(needs.floats, 0.0);
        self.bytes.resize(needs.bytes, 0);
        self.ints.resize(needs.ints, 0);
        self.longs.resize(needs.longs, 0);
    }
}

/// Returns the number of sums of a model.
pub(super) fn values(model: &Model<'_, '_>) -> usize {
    Shapes::new(model.config()).values()
}
