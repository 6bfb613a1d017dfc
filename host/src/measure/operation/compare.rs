//! Comparison of a restored tensor with its original.

use std::sync::Arc;

use tercet_core::engine::QuantizeEngine;
use tercet_core::quant::Comparison;

use super::{Bits, Operation, legal};
use crate::measure::clock::Clock;
use crate::measure::contender::{Contender, with_engine};
use crate::measure::work::LeastWork;
use crate::measure::{Traffic, input};

/// Sums of both tensors, their products and errors, in one pass.
pub(in crate::measure) struct Compare {
    original: Arc<[f32]>,
    restored: Vec<f32>,
}

impl Compare {
    /// Over `values` values of each tensor.
    pub(in crate::measure) fn new(values: usize) -> (LeastWork, Self) {
        let work = LeastWork::pass(values, Traffic::Read, values * 8);
        let original = input::normals(values);
        let restored = original.iter().map(|x| (x * 32.0).round() / 32.0).collect();
        (work, Self { original, restored })
    }
}

impl Operation for Compare {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let mut comparison = Comparison::new();
        clock.time(&mut || {
            comparison = Comparison::new();
            with_engine!(by, engine => {
                legal(engine.compare(&mut comparison, &self.original, &self.restored));
            });
        });
        let found = comparison.finish().map(|found| {
            let measures = [
                found.squared_error,
                found.energy,
                found.cosine,
                found.max_error,
            ];
            (measures.map(f64::to_bits), found.max_index)
        });
        Bits::default().with(found.as_slice()).finish()
    }
}
