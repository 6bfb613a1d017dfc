//! A step of a run.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rayon::prelude::*;
use tercet_core::engine::TrainEngine;
use tercet_core::model::{Config, NLL_UNIT};
use tercet_core::train::{AdamW, Batch, Fault, Schedule, Shapes};
use tracing::trace_span;

use super::batches::{BatchTokens, Batches};
use super::image::{NAME, with_model};
use super::in_place::Places;
use super::profile::until_now;
use super::teacher::{Ask, Teacher};
use super::trainer::Trainer;
use crate::Error;
use crate::engine::EngineError;

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Its number, from 1.
    pub step: u64,
    /// The cost of its targets, in units of 2⁻³² nats: a sum of integers.
    pub loss: i64,
    /// Number of targets.
    pub targets: u64,
    /// The learning rate.
    pub rate: f32,
    /// The norm of the gradients, before clipping.
    pub norm: f64,
}

impl StepReport {
    /// Returns nats per target.
    pub fn mean(&self) -> f64 {
        self.loss as f64 / NLL_UNIT as f64 / self.targets as f64
    }
}

impl<E: TrainEngine<Failure: Into<EngineError>> + Send> Trainer<E> {
    /// Trains on the next batch: computes its gradients and updates all weights. If gradients fail, the weights are
    /// unchanged, unless tensors are updated during the pass ([`TrainOptions::is_in_place`](super::TrainOptions::is_in_place)): a
    /// failure then ends the run.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for numbers that are not finite or too large, with step, layer and tensor;
    /// [`Error::Tensor`] for weights that have no codes after the update, which ends the run; [`Error::Options`] for
    /// batches of another size, or of another step than the next one.
    pub fn step(&mut self, batches: &Batches) -> Result<StepReport, Error> {
        let (options, state) = (&self.options, &self.state);
        let schedule = Schedule {
            fall: options.fall,
            rate: options.rate,
            last: options.last,
            warmup: options.warmup.min(options.steps),
            steps: options.steps,
        };
        let rate = schedule.at(state.steps) * state.watched.factor();
        let adamw = match schedule.decays(state.steps) {
            true => options.adamw,
            false => AdamW {
                decay: 0.0,
                ..options.adamw
            },
        };
        self.step_with(batches, rate, &adamw)
    }

    /// Does [`Trainer::step`] with a learning rate.
    pub(super) fn step_with(
        &mut self,
        batches: &Batches,
        rate: f32,
        adamw: &AdamW,
    ) -> Result<StepReport, Error> {
        let options = &self.options;
        let number = self.state.steps + 1;
        let _span = trace_span!("training_step", number).entered();
        let start = Instant::now();
        let tokens = trace_span!("batch").in_scope(|| batches.next());
        if batches.shape() != (options.batch, options.context()) || tokens.step != self.state.steps
        {
            return Err(Error::options(
                "these batches are not those of the run's next step",
            ));
        }
        self.whole()?;
        let start = until_now(start, &mut self.stages.data);
        let passes = || self.passes(&tokens, adamw, rate);
        let (config, updated) = trace_span!("passes").in_scope(passes)?;
        let start = until_now(start, &mut self.stages.passes);
        let loss = trace_span!("merge").in_scope(|| self.merge());
        let start = until_now(start, &mut self.stages.merge);
        let (options, state) = (&self.options, &mut self.state);
        let targets = (options.batch * options.context()) as u64;
        let sums = (&self.workers[0].sums[..], targets);
        let rule = (adamw, options.seed);
        let update = || state.update(&config, rule, rate, sums);
        let norm = updated.unwrap_or_else(|| trace_span!("update").in_scope(update));
        let start = until_now(start, &mut self.stages.update);
        let (rule, image) = ((options.rule, options.zeros), &mut self.image);
        trace_span!("encode").in_scope(|| state.encode(&config, rule, image))?;
        until_now(start, &mut self.stages.encode);
        self.stages.steps += 1;
        Ok(StepReport {
            step: number,
            loss,
            targets,
            rate,
            norm,
        })
    }

    /// Fails if an earlier step failed between the updates of two tensors.
    pub(super) fn whole(&self) -> Result<(), Error> {
        match self.torn {
            false => Ok(()),
            true => Err(Error::options(
                "a step of this run failed after it had updated some of the tensors",
            )),
        }
    }

    /// Computes the gradients of a batch, each part by one of the workers. If tensors are updated meanwhile, the norm of
    /// the gradients is returned.
    fn passes(
        &mut self,
        tokens: &BatchTokens,
        adamw: &AdamW,
        rate: f32,
    ) -> Result<(Config, Option<f64>), Error> {
        let config = with_model(self.image.bytes(), |model| Ok(*model.config()))?;
        let (options, state, workers) = (&self.options, &mut self.state, &mut self.workers);
        let number = state.steps + 1;
        let values = Shapes::new(&config).values();
        let targets = (options.batch * options.context()) as u64;
        let (transposed, in_place) = match (options.is_in_place(workers.len()), &mut workers[..]) {
            (true, [worker]) => {
                let sums = (std::mem::take(&mut worker.sums), targets);
                let places = Places::of(&config, options.recompute);
                let (transposed, own) = state.in_place(places, (adamw, options.seed), rate, sums);
                (transposed, Some(Mutex::new(own)))
            }
            _ => (state.transposed(), None),
        };
        let teacher = self.teacher.as_ref();
        let (length, micro) = (options.context(), options.micro.min(options.batch));
        let pieces: Vec<(&[u32], &[u32])> = tokens
            .inputs
            .chunks(micro * length)
            .zip(tokens.targets.chunks(micro * length))
            .collect();
        let next = AtomicUsize::new(0);
        let fault: Mutex<Option<(usize, Fault)>> = Mutex::new(None);
        let done = with_model(self.image.bytes(), |model| {
            workers.par_iter_mut().try_for_each(|worker| {
                worker.begin(if in_place.is_some() { 0 } else { values });
                let (start, before) = (Instant::now(), worker.busy);
                let mut soft = std::mem::take(&mut worker.soft);
                let mut sums = std::mem::take(&mut worker.sums);
                let mut work = |mut ask: Option<(&Teacher, Ask<'_>)>| loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(tokens, targets)) = pieces.get(index) else {
                        return Ok(());
                    };
                    let _span = trace_span!("part", index).entered();
                    let soft = match &mut ask {
                        Some((teacher, ask)) => {
                            ask(tokens, &mut soft)?;
                            teacher.targets(&soft)
                        }
                        None => None,
                    };
                    let batch = Batch {
                        tokens,
                        targets,
                        soft,
                        length,
                        recompute: options.recompute,
                        activations: options.activations,
                    };
                    let model = (model, &transposed);
                    let added = match &in_place {
                        // The one worker's.
                        Some(own) => {
                            worker.add(model, &batch, &mut *own.lock().expect("no holder panics"))
                        }
                        None => worker.add(model, &batch, &mut sums[..]),
                    };
                    if let Err(found) = added? {
                        let mut first = fault.lock().expect("no holder panics");
                        // The first of the batch, whichever worker found it.
                        if first.is_none_or(|(earlier, _)| index < earlier) {
                            *first = Some((index, found));
                        }
                    }
                };
                let done = match teacher {
                    Some(teacher) => teacher.run(length, |ask| work(Some((teacher, ask)))),
                    None => work(None),
                };
                (worker.soft, worker.sums) = (soft, sums);
                if teacher.is_some() {
                    let own = worker.busy - before;
                    worker.teaching += start.elapsed().saturating_sub(own);
                }
                done
            })
        });
        let fault = fault.into_inner().expect("no holder panics");
        let failed = done.is_err() || fault.is_some();
        let updated = in_place.map(|own| own.into_inner().expect("no holder panics").end());
        let mut norm = None;
        if let Some(updated) = updated {
            match failed {
                true => self.torn = updated.tensors > 0,
                false => norm = Some(state.end(&updated, targets)),
            }
            // It is counted as the update's.
            self.stages.passes = self.stages.passes.saturating_sub(updated.spent);
            self.stages.update += updated.spent;
            workers[0].busy = workers[0].busy.saturating_sub(updated.spent);
            workers[0].sums = updated.sums;
        }
        done?;
        match fault {
            None => Ok((config, norm)),
            Some((_, fault)) => {
                let reason = format!("step {number}: {fault}");
                Err(Error::unsupported(NAME.as_ref(), reason))
            }
        }
    }

    /// Adds the sums of all workers to those of the first, and returns the loss.
    fn merge(&mut self) -> i64 {
        let (first, others) = self.workers.split_first_mut().expect("there is one");
        let mut loss = first.loss;
        for other in others {
            loss += other.loss;
            let pieces = first.sums.par_chunks_mut(1 << 14);
            pieces
                .zip(other.sums.par_chunks(1 << 14))
                .for_each(|(sums, others)| {
                    for (sum, &other) in sums.iter_mut().zip(others) {
                        *sum += other;
                    }
                });
        }
        loss
    }
}
