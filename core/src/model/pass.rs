//! Steps of a pass of rows through a model.

use super::weights::Weights;
use super::work::StepBuffers;
use super::{Cache, Model, ModelError, Place, Row, Sequence, Stage, rotate};
use crate::engine::ModelEngine;
use crate::number::root::sqrt_f32;
use crate::quant::activations;

/// A pass: the rows' places, and the memory of products and norms.
pub(crate) struct Pass<'p, 'w, 'a, 'l, E> {
    pub(crate) engine: &'p mut E,
    pub(crate) model: &'p Model<'a, 'l>,
    pub(crate) places: &'p mut [Place],
    pub(crate) work: StepBuffers<'w>,
}

impl<E: ModelEngine> Pass<'_, '_, '_, '_, E> {
    /// Writes the embedding's rows for the tokens.
    pub(crate) fn embed(
        &mut self,
        tokens: impl Iterator<Item = u32>,
        x: &mut [f32],
    ) -> Result<(), ModelError> {
        let mut x = x.chunks_exact_mut(self.model.config().width.max(1));
        for token in tokens {
            let Some(x) = x.next() else { break };
            self.engine
                .embed(self.model.embedding(), token as usize, x)?;
        }
        Ok(())
    }

    /// Writes cosines and sines of every row's position. If there are sinks, those of the position to which its
    /// sinks' queries are rotated follow.
    pub(crate) fn angles(&mut self, sequences: &[Sequence<'_>], angles: &mut [f32]) {
        let (rope, head) = (self.model.rope(), self.model.config().head.max(1));
        let mut angles = angles.chunks_exact_mut(head);
        for place in self.places.iter() {
            let Some(angles) = angles.next() else { return };
            rope.angles(place.position, angles);
        }
        for place in self.places.iter() {
            let Some(angles) = angles.next() else { return };
            let sequence = sequences.get(place.sequence);
            let position =
                sequence.and_then(|sequence| sequence.pattern().sink_position(place.position));
            if let Some(position) = position {
                rope.angles(position, angles);
            }
        }
    }

    /// Computes activations from rows of vectors, in the forms for these matrices, with a norm if there are gains.
    pub(crate) fn norm(
        &mut self,
        (gains, layer, step): (&[u8], usize, Stage),
        x: &[f32],
        inputs: &[&Weights<'_>],
    ) -> Result<(), E::Failure> {
        let rows = self.places.len();
        self.norm_rows((gains, layer, step), (x, 0, rows), inputs)
    }

    /// Like [`Pass::norm`], for `rows` rows from the row `first` on.
    pub(crate) fn norm_rows(
        &mut self,
        (gains, layer, step): (&[u8], usize, Stage),
        (x, first, rows): (&[f32], usize, usize),
        inputs: &[&Weights<'_>],
    ) -> Result<(), E::Failure> {
        let places = &mut *self.places;
        let mut fault = |row: usize| {
            if let Some(place) = places.get_mut(first.saturating_add(row)) {
                place.fault.get_or_insert((layer, step));
            }
        };
        let config = self.model.config();
        self.work
            .norm(self.engine, config, (x, rows), gains, inputs, &mut fault)
    }

    /// Computes the products of a matrix with every row's activations.
    pub(crate) fn product(
        &mut self,
        weights: &Weights<'_>,
        out: &mut [f32],
    ) -> Result<(), E::Failure> {
        let (wide, rows) = (E::PARTS.wide(self.model.config()), self.places.len());
        self.work.product(self.engine, wide, rows, weights, out)
    }

    /// Computes the products of several matrices with the same number of columns.
    pub(crate) fn products<const N: usize>(
        &mut self,
        products: [(&Weights<'_>, &mut [f32]); N],
    ) -> Result<(), E::Failure> {
        let size = (E::PARTS.wide(self.model.config()), self.places.len());
        self.work.products(self.engine, size, products)
    }

    /// Rotates keys, and stores keys and values in the cache.
    pub(crate) fn keep(
        &mut self,
        (cache, sequences): (&mut Cache<'_>, &[Sequence<'_>]),
        layer: usize,
        (keys, values, angles): (&[f32], &[f32], &[f32]),
    ) {
        let (head, neighbours) = (
            self.model.config().head.max(1),
            self.model.rope().neighbours,
        );
        let (mut keys, mut values) = (keys.chunks_exact(head), values.chunks_exact(head));
        let mut angles = angles.chunks_exact(head);
        let rotated = self.work.rotated(head);
        for place in self.places.iter_mut() {
            let page = sequences
                .get(place.sequence)
                .and_then(|sequence| sequence.page(place.position));
            let (Some(angles), Some(page)) = (angles.next(), page) else {
                return;
            };
            for head in 0..self.model.config().kv_heads {
                let (Some(key), Some(value)) = (keys.next(), values.next()) else {
                    return;
                };
                rotate(key, neighbours, angles, rotated);
                let (key, value) = cache.keep(
                    E::PARTS,
                    (page, layer, head),
                    place.position,
                    (rotated, value),
                );
                if !key {
                    place.fault.get_or_insert((layer, Stage::Keys));
                }
                if !value {
                    place.fault.get_or_insert((layer, Stage::Values));
                }
            }
        }
    }

    /// Rotates and quantizes queries, including those for sinks.
    pub(crate) fn ask(
        &mut self,
        sequences: &[Sequence<'_>],
        layer: usize,
        (queries, angles): (&[f32], &[f32]),
    ) {
        let config = self.model.config();
        let (head, neighbours) = (config.head.max(1), self.model.rope().neighbours);
        let factor = 1.0 / sqrt_f32(config.head as f32);
        let StepBuffers {
            gains,
            halves,
            query_scales,
            ..
        } = &mut self.work;
        let rotated = gains.get_mut(..head).unwrap_or_default();
        let mut codes = halves.chunks_exact_mut(head);
        let mut scales = query_scales.iter_mut();
        let mut angles = angles.chunks_exact(head);
        for far in [false, true] {
            let mut queries = queries.chunks_exact(head);
            for place in self.places.iter_mut() {
                let Some(angles) = angles.next() else { return };
                let sequence = sequences.get(place.sequence);
                let sink =
                    sequence.and_then(|sequence| sequence.pattern().sink_position(place.position));
                for _ in 0..config.heads {
                    let (Some(query), Some(codes), Some(scale)) =
                        (queries.next(), codes.next(), scales.next())
                    else {
                        return;
                    };
                    if far && sink.is_none() {
                        continue;
                    }
                    rotate(query, neighbours, angles, rotated);
                    let found = activations::row(rotated, None, codes);
                    if found.is_nan() {
                        place.fault.get_or_insert((layer, Stage::Queries));
                    }
                    *scale = if found.is_nan() { 0.0 } else { found * factor };
                }
            }
        }
    }

    /// Computes the attention of every head; the results replace the queries.
    pub(crate) fn attend(
        &mut self,
        (cache, sequences): (&Cache<'_>, &[Sequence<'_>]),
        layer: usize,
        out: &mut [f32],
    ) -> Result<(), E::Failure> {
        let config = self.model.config();
        let caches = (cache, sequences);
        let (attention, scores, longs) = self.work.attention(config, self.places, caches, layer);
        let sums = longs.get_mut(..config.head).unwrap_or_default();
        self.engine.attend(&attention, scores, sums, out)
    }

    /// Computes the logits of the rows that need them, one run of such rows at a time.
    pub(crate) fn head(
        &mut self,
        rows: &[Row],
        x: &[f32],
        logits: &mut [f32],
    ) -> Result<(), E::Failure> {
        let config = self.model.config();
        let (mut first, mut rest, mut logits) = (0usize, rows, logits);
        while let Some(asked) = rest.first().map(|row| row.logits) {
            let alike = rest.iter().take_while(|row| row.logits == asked).count();
            let (run, next) = rest.split_at_checked(alike).unwrap_or_default();
            rest = next;
            let x = x
                .get(first.wrapping_mul(config.width)..)
                .unwrap_or_default();
            let x = x
                .get(..run.len().wrapping_mul(config.width))
                .unwrap_or_default();
            if asked {
                let len = run.len().saturating_mul(config.vocabulary);
                let (out, rest) = logits.split_at_mut_checked(len).unwrap_or_default();
                let head = self.model.head();
                let norm = (self.model.norm(), config.layers, Stage::Head);
                self.norm_rows(norm, (x, first, run.len()), &[head])?;
                self.work
                    .product(self.engine, E::PARTS.wide(config), run.len(), head, out)?;
                logits = rest;
            }
            first = first.wrapping_add(run.len());
        }
        Ok(())
    }
}
