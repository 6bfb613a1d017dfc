//! Batches that are read while others are trained on.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use super::corpus::Corpus;

/// Number of batches that are read in advance.
const AHEAD: usize = 2;

/// The tokens of a step.
#[derive(Debug)]
pub(super) struct BatchTokens {
    /// The step, from 0.
    pub(super) step: u64,
    /// Sequences one after another.
    pub(super) inputs: Vec<u32>,
    /// The next token after each input.
    pub(super) targets: Vec<u32>,
}

/// The batches of a corpus from a step on.
#[derive(Debug)]
pub struct Batches {
    from: From,
    size: usize,
    context: usize,
}

/// The source of batches.
#[derive(Debug)]
enum From {
    /// A thread that reads in advance.
    Ahead(Receiver<BatchTokens>),
    /// This thread, if the system gives no other; with the next step.
    Here(Arc<Corpus>, Cell<u64>),
}

impl Batches {
    /// Returns batches of `size` windows, beginning with that of `step`. A separate thread reads them, if the system
    /// gives one; it ends when this is dropped.
    pub fn new(corpus: &Arc<Corpus>, size: usize, step: u64) -> Self {
        let (sender, next) = sync_channel(AHEAD);
        let context = corpus.context();
        let ahead = Arc::clone(corpus);
        let reads = thread::Builder::new().spawn(move || {
            let mut all = (step..).map(|step| read(&ahead, size, step));
            while all.next().is_some_and(|tokens| sender.send(tokens).is_ok()) {}
        });
        let from = match reads {
            Ok(_) => From::Ahead(next),
            Err(_) => From::Here(Arc::clone(corpus), Cell::new(step)),
        };
        Self {
            from,
            size,
            context,
        }
    }

    /// Returns the bytes of all batches of `size` windows of `context` tokens that are in memory at a time: those read
    /// in advance, the one that is being read, and the one in use.
    pub(super) const fn bytes(size: usize, context: usize) -> usize {
        let tokens = size.saturating_mul(context).saturating_mul(2);
        tokens.saturating_mul((AHEAD + 2) * size_of::<u32>())
    }

    /// Returns the windows per batch, and the positions per window.
    pub(super) const fn shape(&self) -> (usize, usize) {
        (self.size, self.context)
    }

    pub(super) fn next(&self) -> BatchTokens {
        match &self.from {
            From::Ahead(next) => next
                .recv()
                .expect("the reader sends as long as there is who receives"),
            From::Here(corpus, step) => {
                let tokens = read(corpus, self.size, step.get());
                step.set(step.get() + 1);
                tokens
            }
        }
    }
}

/// Returns the batch of a step.
fn read(corpus: &Corpus, size: usize, step: u64) -> BatchTokens {
    let context = corpus.context();
    let mut inputs = vec![0; size * context];
    let mut targets = inputs.clone();
    let windows = inputs.chunks_mut(context).zip(targets.chunks_mut(context));
    for (place, (inputs, targets)) in (step * size as u64..).zip(windows) {
        corpus.window(place, inputs, targets);
    }
    BatchTokens {
        step,
        inputs,
        targets,
    }
}
