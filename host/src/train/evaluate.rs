//! How well a model predicts the held-out text.

use rayon::prelude::*;

use super::corpus::Corpus;
use crate::Error;
use crate::engine::FlowEngine;
use crate::language::{Cost, LanguageFile, RunOptions, View, Windows, perplexity, run};

impl Corpus {
    /// Returns the cost of the held-out text for a model with the corpus' tokens, such as that with which a run begins:
    /// in windows of the corpus' context, also if the model's own is another. `bytes` returns the number of bytes of a
    /// token. The threads of the current rayon pool share the windows; the sum is one of integers.
    ///
    /// # Errors
    /// Those of [`View::model`] and [`perplexity`], also for no tokens.
    pub fn cost<F: FlowEngine>(
        &self,
        file: &LanguageFile,
        engine: impl Fn() -> F + Sync,
        bytes: &(dyn Fn(u32) -> usize + Sync),
    ) -> Result<Cost, Error> {
        let windows = Windows {
            context: self.context(),
            begin: self.begin(),
            second_half: false,
        };
        let options = RunOptions {
            context: u32::try_from(self.context()).ok(),
            ..RunOptions::default()
        };
        let pieces: Vec<&[u32]> = self.pieces(rayon::current_num_threads()).collect();
        let costs = pieces.par_iter().map(|tokens| {
            let mut view = View::of(file)?;
            let model = view.model(file)?;
            // Alone: steps of one model do not wake the threads that have their own windows.
            let (cost, _) = run(&mut engine(), file, &model, &options, |decoder| {
                perplexity(decoder, tokens, &windows, bytes, &mut |_| {})
            })?;
            Ok(cost)
        });
        let costs: Vec<Cost> = costs.collect::<Result<_, Error>>()?;
        if costs.is_empty() {
            return Err(Error::options("there is no text to evaluate on"));
        }
        Ok(costs.iter().fold(Cost::default(), |all, own| Cost {
            sum: all.sum + own.sum,
            count: all.count + own.count,
            bytes: all.bytes + own.bytes,
        }))
    }
}
