//! Rows of activations, normalized and quantized.

use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use tercet_core::engine::QuantizeEngine;
use tercet_core::quant::activations::{Activations, Norm};

use super::quantize::ROW;
use super::{Bits, Operation, legal};
use crate::measure::clock::Clock;
use crate::measure::contender::{Contender, with_engine};
use crate::measure::task::Task;
use crate::measure::work::LeastWork;
use crate::measure::{Traffic, input};

/// Keeps a root mean square above 0.
const EPS: f32 = 1e-5;

/// A type of codes.
pub(in crate::measure) trait Code:
    Default + Clone + Hash + Send + Sync + 'static
{
    /// Bits per code.
    const BITS: u8;

    /// Returns codes to write.
    fn out(codes: &mut [Self]) -> Activations<'_>;
}

impl Code for i8 {
    const BITS: u8 = 8;

    fn out(codes: &mut [Self]) -> Activations<'_> {
        Activations::A8(codes)
    }
}

impl Code for i16 {
    const BITS: u8 = 16;

    fn out(codes: &mut [Self]) -> Activations<'_> {
        Activations::A16(codes)
    }
}

/// Codes of rows, with a scale for each.
pub(in crate::measure) struct NormQuantize<C> {
    values: Arc<[f32]>,
    gains: Vec<f32>,
    codes: PhantomData<C>,
}

impl<C: Code> NormQuantize<C> {
    /// Returns the operation over `values` values, a multiple of [`ROW`]. A row stays in the nearest cache between its
    /// two passes.
    pub(in crate::measure) fn new(values: usize) -> (LeastWork, Self) {
        let codes = values * size_of::<C>();
        let bytes = values * 4 + codes + values / ROW * 4;
        let this = Self {
            values: input::normals(values),
            gains: input::normals(ROW).iter().map(|x| 1.0 + x / 8.0).collect(),
            codes: PhantomData,
        };
        (LeastWork::pass(values, Traffic::Narrow, bytes), this)
    }

    fn norm(&self) -> Norm<'_> {
        Norm {
            gains: &self.gains,
            eps: EPS,
        }
    }
}

impl<C: Code> Operation for NormQuantize<C> {
    fn run(&self, by: Contender, clock: &mut dyn Clock) -> u64 {
        let mut codes = vec![C::default(); self.values.len()];
        let mut scales = vec![0.0; self.values.len() / ROW];
        clock.time(&mut || {
            with_engine!(by, engine => {
                let out = C::out(&mut codes);
                legal(engine.norm_quantize(&self.values, Some(self.norm()), out, &mut scales));
            });
        });
        Bits::default().with(&codes).with_floats(&scales).finish()
    }

    fn task(&self) -> Option<Task<'_>> {
        Some(Task::NormQuantize {
            values: &self.values,
            norm: self.norm(),
            bits: C::BITS,
        })
    }
}
