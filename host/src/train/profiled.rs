//! An engine that measures another one.

use std::time::Instant;

use tercet_core::block::Format;
use tercet_core::engine::{
    LinearEngine, ModelEngine, Output, QuantizeEngine, TrainEngine, WeightScratch,
};
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix, Rescale};
use tercet_core::model::attention::Attention;
use tercet_core::model::{FloatMatrix, Gate};
use tercet_core::number::Element;
use tercet_core::quant::Groups;
use tercet_core::quant::activations::{Activations, Norm};
use tercet_core::train::{AttentionGradient, AttentionGradients, AttentionScratch, Inputs};

use super::profile::{MEASURED, Spent, StepOperation};

/// An engine that adds up the time and the products of each operation that a [`Trainer`](super::Trainer) asks for, for
/// [`Trainer::profile`](super::Trainer::profile). Its results are those of the engine within; it reads the clock twice
/// per operation.
#[derive(Clone, Debug)]
pub struct Profiled<E> {
    engine: E,
    spent: [Spent; MEASURED],
    /// In a step's head: the end of its first product, until gradients are asked for.
    product: Option<Instant>,
    /// True in a step's head, whose products are counted together.
    in_head: bool,
}

impl<E> Profiled<E> {
    /// Returns the engine with nothing measured.
    pub const fn new(engine: E) -> Self {
        const NONE: Spent = Spent {
            time: std::time::Duration::ZERO,
            calls: 0,
            multiply_adds: 0,
        };
        Self {
            engine,
            spent: [NONE; MEASURED],
            product: None,
            in_head: false,
        }
    }

    /// Returns what was measured, in the order of the operations.
    pub(super) const fn spent(&self) -> &[Spent; MEASURED] {
        &self.spent
    }

    fn measure<T>(
        &mut self,
        operation: StepOperation,
        multiply_adds: usize,
        work: impl FnOnce(&mut E) -> T,
    ) -> T {
        let start = Instant::now();
        let done = work(&mut self.engine);
        self.add(operation, start, multiply_adds);
        done
    }

    /// Adds a call that began at `start` and ends now, and returns its end.
    fn add(&mut self, operation: StepOperation, start: Instant, multiply_adds: usize) -> Instant {
        let now = Instant::now();
        let spent = &mut self.spent[operation as usize];
        spent.time += now - start;
        spent.calls += 1;
        spent.multiply_adds += multiply_adds as u64;
        now
    }

    /// Returns the operation of a product: the embedding is the only matrix of that type in a trained file, and those
    /// by columns have a layout of their own.
    fn kind(&mut self, layer: &Layer<'_>) -> StepOperation {
        match layer.weights().layout() {
            Layout::Block(Format::Q8_0) => {
                self.in_head = true;
                StepOperation::Head
            }
            _ if self.in_head => StepOperation::Head,
            Layout::Int8 => StepOperation::InputGradients,
            _ => StepOperation::Products,
        }
    }
}

fn size(layer: &Layer<'_>, rows: usize) -> usize {
    layer.weights().rows() * layer.weights().cols() * rows
}

impl<E: QuantizeEngine> QuantizeEngine for Profiled<E> {
    type Error = E::Error;
    type Tensor<'a, T: Element>
        = E::Tensor<'a, T>
    where
        Self: 'a;

    fn tensor<'a, T: Element>(
        &'a mut self,
        values: &'a [T],
        groups: Groups,
        out: Output<'a>,
    ) -> Result<Self::Tensor<'a, T>, Self::Error> {
        self.engine.tensor(values, groups, out)
    }

    fn norm_quantize(
        &mut self,
        x: &[f32],
        norm: Option<Norm<'_>>,
        out: Activations<'_>,
        scales: &mut [f32],
    ) -> Result<(), Self::Error> {
        self.measure(StepOperation::Norms, 0, |engine| {
            engine.norm_quantize(x, norm, out, scales)
        })
    }
}

impl<E: LinearEngine> LinearEngine for Profiled<E> {
    type Error = E::Error;

    fn product_scratch_len(&self, weights: &Matrix<'_>) -> usize {
        self.engine.product_scratch_len(weights)
    }

    fn sums(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        out: &mut [i64],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error> {
        self.engine.sums(layer, x, out, scratch)
    }

    fn matvec(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scale: f32,
        out: &mut [f32],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error> {
        self.engine.matvec(layer, x, x_scale, out, scratch)
    }

    fn dense(
        &mut self,
        layer: &Layer<'_>,
        rescale: &Rescale<'_>,
        x: I8Sym<'_>,
        out: &mut [i8],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error> {
        self.engine.dense(layer, rescale, x, out, scratch)
    }

    fn matmat(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scales: &[f32],
        out: &mut [f32],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error> {
        let (operation, start) = (self.kind(layer), Instant::now());
        let done = self.engine.matmat(layer, x, x_scales, out, scratch);
        let end = self.add(operation, start, size(layer, x_scales.len()));
        self.product = self.in_head.then_some(end);
        done
    }

    fn matmat_each<const N: usize>(
        &mut self,
        products: [(&Layer<'_>, &mut [f32]); N],
        x: I8Sym<'_>,
        x_scales: &[f32],
        scratch: &mut [u32],
    ) -> Result<(), Self::Error> {
        let sizes = products
            .iter()
            .map(|(layer, _)| size(layer, x_scales.len()));
        let all = sizes.sum();
        self.measure(StepOperation::Products, all, |engine| {
            engine.matmat_each(products, x, x_scales, scratch)
        })
    }
}

impl<E: ModelEngine> ModelEngine for Profiled<E> {
    type Failure = E::Failure;

    fn multiply_floats(
        &mut self,
        weights: &FloatMatrix<'_>,
        x: &[f32],
        out: &mut [f32],
    ) -> Result<(), Self::Failure> {
        self.engine.multiply_floats(weights, x, out)
    }

    fn matmat_wide(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        x_scales: &[f32],
        out: &mut [f32],
        room: (&mut [i64], &mut [u32]),
    ) -> Result<(), Self::Failure> {
        let operation = self.kind(layer);
        // Two planes.
        let products = 2 * size(layer, x_scales.len());
        self.measure(operation, products, |engine| {
            engine.matmat_wide(layer, x, x_scales, out, room)
        })
    }

    fn attend(
        &mut self,
        attention: &Attention<'_, '_>,
        scores: &mut [f32],
        sums: &mut [i64],
        out: &mut [f32],
    ) -> Result<(), Self::Failure> {
        self.measure(StepOperation::Attention, 0, |engine| {
            engine.attend(attention, scores, sums, out)
        })
    }

    fn gate(&mut self, gate: Gate, x: &mut [f32], up: &[f32]) -> Result<(), Self::Failure> {
        self.measure(StepOperation::Gates, 0, |engine| engine.gate(gate, x, up))
    }
}

impl<E: TrainEngine> TrainEngine for Profiled<E> {
    fn power_rows(
        &mut self,
        dy: &[f32],
        codes: &mut [i8],
        scales: &mut [f32],
    ) -> Result<bool, Self::Failure> {
        self.measure(StepOperation::Codes, 0, |engine| {
            engine.power_rows(dy, codes, scales)
        })
    }

    fn power_planes(
        &mut self,
        dy: &[f32],
        planes: &mut [i8],
        scales: &mut [f32],
    ) -> Result<bool, Self::Failure> {
        self.measure(StepOperation::Codes, 0, |engine| {
            engine.power_planes(dy, planes, scales)
        })
    }

    fn weight_gradient(
        &mut self,
        dy: &[f32],
        x: &Inputs<'_>,
        scratch: &mut WeightScratch<'_>,
        sums: &mut [i64],
    ) -> Result<bool, Self::Failure> {
        // What is between the head's product and its gradient is the loss.
        if let Some(end) = self.product.take() {
            self.add(StepOperation::Loss, end, 0);
        }
        let operation = match self.in_head {
            true => StepOperation::Head,
            false => StepOperation::MatrixGradients,
        };
        self.measure(operation, dy.len() * x.cols(), |engine| {
            engine.weight_gradient(dy, x, scratch, sums)
        })
    }

    fn norm_gradient(
        &mut self,
        x: (&[f32], Norm<'_>),
        dy: &[f32],
        dx: (&mut [f32], bool),
        gains: &mut [i64],
        scratch: &mut [f32],
    ) -> Result<bool, Self::Failure> {
        // The head's last step.
        self.in_head = false;
        self.measure(StepOperation::NormGradients, 0, |engine| {
            engine.norm_gradient(x, dy, dx, gains, scratch)
        })
    }

    fn gate_gradient(
        &mut self,
        gate: Gate,
        x: &mut [f32],
        up: &mut [f32],
        dh: &[f32],
    ) -> Result<(), Self::Failure> {
        self.measure(StepOperation::Gates, 0, |engine| {
            engine.gate_gradient(gate, x, up, dh)
        })
    }

    fn attention_gradient(
        &mut self,
        job: &AttentionGradient<'_, '_, '_>,
        scratch: &mut AttentionScratch<'_>,
        out: &mut AttentionGradients<'_>,
    ) -> Result<bool, Self::Failure> {
        self.measure(StepOperation::AttentionGradients, 0, |engine| {
            engine.attention_gradient(job, scratch, out)
        })
    }
}
