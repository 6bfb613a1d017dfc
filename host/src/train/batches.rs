//! Batches that are read while others are trained on.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use super::corpus::Corpus;

/// Batches that are read before they are asked for.
const AHEAD: usize = 2;

/// The tokens of a step.
#[derive(Debug)]
pub(super) struct BatchTokens {
    /// The step, from 0.
    pub(super) step: u64,
    /// Sequences one after another.
    pub(super) inputs: Vec<u32>,
    /// What follows each.
    pub(super) targets: Vec<u32>,
}

/// The batches of a corpus from a step on.
#[derive(Debug)]
pub struct Batches {
    next: Receiver<BatchTokens>,
    size: usize,
    context: usize,
}

impl Batches {
    /// Batches of `size` windows, the first that of `step`. A thread of its own reads them: it ends with this.
    pub fn new(corpus: &Arc<Corpus>, size: usize, step: u64) -> Self {
        let (sender, next) = sync_channel(AHEAD);
        let (corpus, context) = (Arc::clone(corpus), corpus.context());
        thread::spawn(move || {
            for step in step.. {
                let mut inputs = vec![0; size * context];
                let mut targets = inputs.clone();
                let windows = inputs.chunks_mut(context).zip(targets.chunks_mut(context));
                for (place, (inputs, targets)) in (step * size as u64..).zip(windows) {
                    corpus.window(place, inputs, targets);
                }
                let tokens = BatchTokens {
                    step,
                    inputs,
                    targets,
                };
                if sender.send(tokens).is_err() {
                    return;
                }
            }
        });
        Self {
            next,
            size,
            context,
        }
    }

    /// Windows of a batch, and positions of a window.
    pub(super) const fn shape(&self) -> (usize, usize) {
        (self.size, self.context)
    }

    pub(super) fn next(&self) -> BatchTokens {
        self.next
            .recv()
            .expect("the reader sends as long as there is who receives")
    }
}
