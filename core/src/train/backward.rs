//! The steps of a backward pass.

use super::attention::{AttentionGradient, Gradients};
use super::buffers::{BackwardBuffers, LayerTape};
use super::memory::Transposed;
use super::power::{WEIGHT_FLOOR, fixed};
use super::rows::{each_row, each_row_mut};
use super::step::{Batch, Fault, Loss};
use super::{GradientSums, Inputs, Parameter, Shapes, Tensor};
use crate::engine::{TrainEngine, WeightScratch};
use crate::model::{
    Cache, DecoderLayer, Gates, Heads, Pass, Rope, Sequence, Stage, Vectors, Weights, add, copy,
    symmetric,
};
use crate::quant::activations::Norm;

/// A backward pass in progress.
pub(super) struct Backward<'p, 'w, 'a, 'l, 's, E, S: ?Sized> {
    pub(super) pass: Pass<'p, 'w, 'a, 'l, E>,
    pub(super) shapes: Shapes<'s>,
    pub(super) transposed: &'s Transposed<'s>,
    /// Number of rows per sequence.
    pub(super) length: usize,
    pub(super) sums: &'s mut S,
    /// The first fault in the order of the steps, and the number of checks before it.
    pub(super) fault: Option<(usize, Fault)>,
    /// Number of checks of this part of the batch, in a layer.
    pub(super) checks: usize,
    /// True for the last part of the batch, which completes the sums of tensors.
    pub(super) is_last: bool,
}

impl<E: TrainEngine, S: GradientSums + ?Sized> Backward<'_, '_, '_, '_, '_, E, S> {
    /// Records the first tensor for which numbers were not within their bounds.
    fn note(&mut self, layer: usize, part: Parameter, within: bool) {
        let checks = self.checks;
        self.checks = checks.wrapping_add(1);
        // Another part may have failed at a later step of the same layer.
        if !within && self.fault.is_none_or(|(before, _)| checks < before) {
            let tensor = part.name();
            self.fault = Some((checks, Fault::Diverged { layer, tensor }));
        }
    }

    /// Reports a tensor whose gradients are complete after the last part, unless the step has failed.
    fn complete(&mut self, tensor: &Tensor) {
        if self.is_last && self.fault.is_none() {
            self.sums.complete(tensor);
        }
    }

    /// Computes the logits of all rows, some rows of a sequence at a time, their cost, and the gradients of the last
    /// residual.
    pub(super) fn head(
        &mut self,
        batch: &Batch<'_>,
        x: &[f32],
        dx: &mut [f32],
        work: &mut BackwardBuffers<'_>,
    ) -> Result<Loss, E::Failure> {
        let config = self.pass.model.config();
        let (width, vocabulary, layers) = (config.width.max(1), config.vocabulary, config.layers);
        let embedding = self.shapes.tensor(0, Parameter::Embedding);
        let layer = self.transposed.layer(&self.shapes, &embedding)?;
        let norm = self.shapes.tensor(0, Parameter::OutputNorm);
        let mut cost: Loss = 0;
        let (all, mut next) = (batch.tokens.len(), 0);
        while next < all {
            // At most to the end of a sequence.
            let left = self.length - next.checked_rem(self.length).unwrap_or(0);
            let (first, rows) = (next, left.min(work.head_rows).min(all - next).max(1));
            next = first.saturating_add(rows);
            let part = |row: usize| {
                row.saturating_mul(width)..row.saturating_add(rows).saturating_mul(width)
            };
            let x = x.get(part(first)).unwrap_or_default();
            let dx = dx.get_mut(part(first)).unwrap_or_default();
            let head = self.pass.model.head();
            let gains = (self.pass.model.norm(), layers, Stage::Head);
            self.pass.norm_rows(gains, (x, first, rows), &[head])?;
            let len = rows.saturating_mul(vocabulary);
            let logits = work.logits.get_mut(..len).unwrap_or_default();
            self.pass
                .work
                .product(self.pass.engine, config.wide(), rows, head, logits)?;
            let targets = batch.targets.iter().skip(first);
            for (row, (logits, &target)) in
                each_row_mut(logits, vocabulary).zip(targets).enumerate()
            {
                let row = first.saturating_add(row);
                let own = match &batch.soft {
                    None => super::loss(logits, target as usize),
                    Some(soft) => soft.loss(logits, row, target as usize),
                };
                match own.and_then(|own| cost.checked_add(own)) {
                    Some(sum) => cost = sum,
                    None => {
                        self.fault.get_or_insert((0, Fault::Logits { row }));
                        return Ok(cost);
                    }
                }
            }
            let inputs = Inputs {
                codes: plane(self.pass.work.bytes, rows, width),
                scales: self.pass.work.scales.get(..rows).unwrap_or_default(),
                length: self.length,
            };
            let mut scratch = WeightScratch {
                codes: work.group_codes,
                exponents: work.exponents,
                partial: work.partial,
            };
            let sums = self.sums.of(&embedding);
            let within = self
                .pass
                .engine
                .weight_gradient(logits, &inputs, &mut scratch, sums)?;
            for logits in each_row_mut(logits, vocabulary) {
                for (logit, &scale) in logits.iter_mut().zip(self.transposed.rows) {
                    *logit *= scale;
                }
            }
            let planes = work
                .codes
                .get_mut(..len.saturating_mul(2))
                .unwrap_or_default();
            let powers = work.powers.get_mut(..rows).unwrap_or_default();
            let finite = self.pass.engine.power_planes(logits, planes, powers)?;
            let out = work.a.get_mut(..x.len()).unwrap_or_default();
            let scratch = (&mut *work.attention.longs, &mut *self.pass.work.words);
            let planes = symmetric(planes, planes.len())?;
            self.pass
                .engine
                .matmat_wide(&layer, planes, powers, out, scratch)?;
            self.note(layers, Parameter::Embedding, within && finite);
            let gains = Norm {
                gains: self.pass.work.gains.get(..width).unwrap_or_default(),
                eps: config.eps,
            };
            let sums = self.sums.of(&norm);
            let within =
                self.pass
                    .engine
                    .norm_gradient((x, gains), out, (dx, false), sums, work.terms)?;
            self.note(layers, Parameter::OutputNorm, within);
        }
        self.complete(&norm);
        Ok(cost)
    }

    /// Computes the gradients of a layer's input from those of its output, in place in `dx`, for the rows of the pass.
    pub(super) fn layer(
        &mut self,
        (index, layer): (usize, &DecoderLayer<'_>),
        (cache, sequences): (&Cache<'_>, &[Sequence<'_>]),
        (input, tape): (&[f32], &mut LayerTape<'_>),
        dx: &mut [f32],
        (vectors, work): (&mut Vectors<'_>, &mut BackwardBuffers<'_>),
    ) -> Result<(), E::Failure> {
        let gate = self.pass.model.config().gate;
        // The feed-forward network. The input of down is computed again.
        let Gates {
            gate: gated,
            up: d_gated,
        } = vectors.parts.gates();
        copy(gated, tape.gate);
        self.pass.engine.gate(gate, gated, tape.up)?;
        let norm = (layer.feed_forward_sub_norm, index, Stage::Gate);
        self.pass.norm(norm, gated, &[&layer.down])?;
        self.matrix((index, Parameter::Down), dx, Into::A, work)?;
        let gains = (index, Parameter::FeedForwardSubNorm);
        self.norm(gains, gated, (&mut *d_gated, false), work)?;
        self.pass
            .engine
            .gate_gradient(gate, tape.gate, tape.up, d_gated)?;
        let norm = (layer.feed_forward_norm, index, Stage::FeedForwardNorm);
        self.pass
            .norm(norm, tape.middle, &[&layer.gate, &layer.up])?;
        self.matrix((index, Parameter::Gate), tape.gate, Into::A, work)?;
        self.matrix((index, Parameter::Up), tape.up, Into::B, work)?;
        self.norm(
            (index, Parameter::FeedForwardNorm),
            tape.middle,
            (dx, true),
            work,
        )?;
        // Attention.
        let norm = (layer.attention_sub_norm, index, Stage::Attention);
        self.pass.norm(norm, tape.attended, &[&layer.output])?;
        self.matrix((index, Parameter::Output), dx, Into::A, work)?;
        let gains = (index, Parameter::AttentionSubNorm);
        let Heads { queries, .. } = vectors.parts.heads();
        self.norm(gains, tape.attended, (queries, false), work)?;
        self.attention(index, (cache, sequences), tape, (vectors, work))?;
        let norm = (layer.attention_norm, index, Stage::AttentionNorm);
        let inputs: [&Weights<'_>; 3] = [&layer.query, &layer.key, &layer.value];
        self.pass.norm(norm, input, &inputs)?;
        self.matrix((index, Parameter::Query), tape.queries, Into::A, work)?;
        let Heads { keys, values, .. } = vectors.parts.heads();
        self.matrix((index, Parameter::Key), keys, Into::B, work)?;
        self.matrix((index, Parameter::Value), values, Into::B, work)?;
        self.norm((index, Parameter::AttentionNorm), input, (dx, true), work)
    }

    /// Computes the gradients of a matrix's weights, which are added to the sums, and of its input, which are written
    /// to `a`, or to `b` and added to `a`. The input is the activations that the pass computed last.
    fn matrix(
        &mut self,
        (layer, part): (usize, Parameter),
        dy: &[f32],
        into: Into,
        work: &mut BackwardBuffers<'_>,
    ) -> Result<(), E::Failure> {
        let tensor = self.shapes.tensor(layer, part);
        let transposed = self.transposed.layer(&self.shapes, &tensor)?;
        let rows = self.pass.places.len();
        let codes = work.codes.get_mut(..dy.len()).unwrap_or_default();
        let powers = work.powers.get_mut(..rows).unwrap_or_default();
        let finite = self.pass.engine.power_rows(dy, codes, powers)?;
        let len = rows.saturating_mul(tensor.cols);
        let out = match into {
            Into::A => &mut *work.a,
            Into::B => &mut *work.b,
        };
        let out = out.get_mut(..len).unwrap_or_default();
        let words = &mut *self.pass.work.words;
        self.pass.engine.matmat(
            &transposed,
            symmetric(codes, codes.len())?,
            powers,
            out,
            words,
        )?;
        if let Into::B = into {
            add(work.a, work.b.get(..len).unwrap_or_default());
        }
        let inputs = Inputs {
            codes: plane(self.pass.work.bytes, rows, tensor.cols),
            scales: self.pass.work.scales.get(..rows).unwrap_or_default(),
            length: self.length,
        };
        let mut scratch = WeightScratch {
            codes: work.group_codes,
            exponents: work.exponents,
            partial: work.partial,
        };
        let sums = self.sums.of(&tensor);
        let within = self
            .pass
            .engine
            .weight_gradient(dy, &inputs, &mut scratch, sums)?;
        self.note(layer, part, finite && within);
        self.complete(&tensor);
        Ok(())
    }

    /// Computes the gradients of a norm's input from those in `a`. The norm's gains are those that the pass used
    /// last.
    fn norm(
        &mut self,
        (layer, part): (usize, Parameter),
        x: &[f32],
        dx: (&mut [f32], bool),
        work: &mut BackwardBuffers<'_>,
    ) -> Result<(), E::Failure> {
        let tensor = self.shapes.tensor(layer, part);
        let norm = Norm {
            gains: self.pass.work.gains.get(..tensor.cols).unwrap_or_default(),
            eps: self.pass.model.config().eps,
        };
        let dy = work.a.get(..x.len()).unwrap_or_default();
        let sums = self.sums.of(&tensor);
        let within = self
            .pass
            .engine
            .norm_gradient((x, norm), dy, dx, sums, work.terms)?;
        self.note(layer, part, within);
        self.complete(&tensor);
        Ok(())
    }

    /// Computes the gradients of queries, keys and values. The gradients of queries replace the tape's queries. The
    /// input is the gradients of attention's output, which are in place of the pass's queries.
    fn attention(
        &mut self,
        index: usize,
        (cache, sequences): (&Cache<'_>, &[Sequence<'_>]),
        tape: &mut LayerTape<'_>,
        (vectors, work): (&mut Vectors<'_>, &mut BackwardBuffers<'_>),
    ) -> Result<(), E::Failure> {
        self.pass
            .ask(sequences, index, (tape.queries, vectors.angles));
        let Heads {
            queries,
            keys,
            values,
        } = vectors.parts.heads();
        let config = self.pass.model.config();
        let caches = (cache, sequences);
        let (attention, ..) = self
            .pass
            .work
            .attention(config, self.pass.places, caches, index);
        let job = AttentionGradient {
            attention,
            length: self.length,
            out: tape.attended,
            d_out: queries,
        };
        let mut out = Gradients {
            queries: work.b,
            keys: &mut *keys,
            values,
        };
        let within = self
            .pass
            .engine
            .attention_gradient(&job, &mut work.attention, &mut out)?;
        self.note(index, Parameter::AttentionSubNorm, within);
        let (head, rope) = (config.head, *self.pass.model.rope());
        copy(tape.queries, work.b);
        for (all, heads) in [(&mut *tape.queries, config.heads), (keys, config.kv_heads)] {
            let rows = each_row_mut(all, heads.saturating_mul(head));
            for (row, angles) in rows.zip(each_row(vectors.angles, head)) {
                for head in each_row_mut(row, head) {
                    rotate_back(head, &rope, angles);
                }
            }
        }
        Ok(())
    }

    /// Adds the gradients of the first residuals to those of the embedding's rows.
    pub(super) fn look_up(&mut self, tokens: &[u32], dx: &[f32]) {
        let embedding = self.shapes.tensor(0, Parameter::Embedding);
        let width = embedding.cols.max(1);
        let mut within = true;
        let sums = self.sums.of(&embedding);
        for (&token, dx) in tokens.iter().zip(each_row(dx, width)) {
            let sums = each_row_mut(sums, width)
                .nth(token as usize)
                .unwrap_or_default();
            for (sum, &dx) in sums.iter_mut().zip(dx) {
                match fixed(dx, WEIGHT_FLOOR) {
                    Some(term) => *sum = sum.wrapping_add(term),
                    None => within = false,
                }
            }
        }
        let layers = self.pass.model.config().layers;
        self.note(layers, Parameter::Embedding, within);
        self.complete(&embedding);
    }
}

/// Destination of the gradients of a matrix's input.
#[derive(Clone, Copy)]
enum Into {
    /// `a`.
    A,
    /// `b`; they are also added to those in `a`.
    B,
}

/// Converts the gradients of a rotated head to those before the rotation, in place.
fn rotate_back(head: &mut [f32], rope: &Rope<'_>, angles: &[f32]) {
    let turn = |a: &mut f32, b: &mut f32, angle: &[f32]| {
        if let [cosine, sine] = angle {
            (*a, *b) = (*a * cosine + *b * sine, *b * cosine - *a * sine);
        }
    };
    let angles = each_row(angles, 2);
    if rope.neighbours {
        for (pair, angle) in each_row_mut(head, 2).zip(angles) {
            if let [a, b] = pair {
                turn(a, b, angle);
            }
        }
        return;
    }
    let (first, second) = head.split_at_mut(head.len() / 2);
    for ((a, b), angle) in first.iter_mut().zip(second).zip(angles) {
        turn(a, b, angle);
    }
}

/// Returns the codes of rows of activations.
fn plane(codes: &[i8], rows: usize, cols: usize) -> &[i8] {
    codes.get(..rows.saturating_mul(cols)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rotate;

    /// The result of PyTorch's autograd, from `benches/train/autograd.py`. It is equal, since no sum here is rounded.
    #[test]
    fn rotating_back_is_autograd_s() {
        let of = |at: usize| (at * 5 % 11) as f32 / 8.0 - 0.625;
        let angles = core::array::from_fn::<f32, 16, _>(|at| match at % 2 {
            0 => (at / 2) as f32 / 8.0 - 0.375,
            _ => (7 - at / 2) as f32 / 16.0,
        });
        for (neighbours, name) in [(false, "rotation.halves "), (true, "rotation.neighbours ")] {
            let mut head = core::array::from_fn::<f32, 16, _>(of);
            let steps = &[];
            rotate_back(&mut head, &Rope { steps, neighbours }, &angles);
            let said = include_str!("../../tests/train_autograd.txt");
            let said = said.lines().find_map(|line| line.strip_prefix(name));
            let mut said = said.unwrap().split(' ').map(|x| x.parse::<f32>().unwrap());
            assert_eq!(head, [(); 16].map(|()| said.next().unwrap()), "{name}");
        }
    }

    #[test]
    fn rotating_back_undoes_a_rotation() {
        let head = [0.5f32, -1.0, 0.25, 3.0, -0.125, 2.0, 1.5, -0.75];
        for neighbours in [false, true] {
            let mut steps = [0; 4];
            Rope::fill(100.0, 1.0, &[], &mut steps).unwrap();
            let rope = Rope {
                steps: &steps,
                neighbours,
            };
            for position in [0, 1, 77, 100_000] {
                let (mut angles, mut turned) = ([0.0; 8], [0.0; 8]);
                rope.angles(position, &mut angles);
                rotate(&head, neighbours, &angles, &mut turned);
                rotate_back(&mut turned, &rope, &angles);
                for (found, expected) in turned.iter().zip(head) {
                    // The largest difference found was 2.4e-7, for values up to 3.
                    assert!((found - expected).abs() < 5e-7, "{found} {expected}");
                }
            }
        }
    }
}
