//! The linear layer: a matrix in each layout times one int8 vector.

use crate::peers::naive;
use crate::{Case, Traffic, Who, codes, normals};
use std::rc::Rc;
use tercet_core::block;
use tercet_core::engine::LinearEngine;
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix, pack};
use tercet_core::number::Random;
use tercet_core::quant::{Rule, ScaleRule};
use tercet_core::scalar::Scalar;
use tercet_host::parallel::Threads;

/// Weights in a row.
const ROW: usize = 4096;

/// A matrix as it lies in memory.
struct Encoded {
    layout: Layout,
    rows: usize,
    bytes: Vec<u8>,
}

impl Encoded {
    /// Blocks hold `values`, the other layouts random codes of their range.
    fn new(layout: Layout, values: &[f32]) -> Self {
        let rows = values.len() / ROW;
        let len = layout.bytes(rows, ROW).expect("whole blocks");
        let mut bytes = vec![0; len];
        match layout {
            Layout::Block(format) => {
                let rule = (Rule::AbsMax, ScaleRule::Rule);
                block::encode(format, rule.0, rule.1, values, &mut bytes).expect("finite values");
            }
            _ => pack::pack(layout, rows, ROW, &random(layout, values.len()), &mut bytes)
                .expect("codes of the layout"),
        }
        Self {
            layout,
            rows,
            bytes,
        }
    }

    fn layer(&self) -> Layer<'_> {
        let matrix = Matrix::new(self.layout, self.rows, ROW, &self.bytes);
        let matrix = matrix.unwrap_or_else(|error| panic!("{error}"));
        match self.layout {
            // Their scales lie in the blocks.
            Layout::Block(_) => Layer::new(matrix),
            _ => Layer::new(matrix.with_scale(0.01).expect("a scale")),
        }
    }
}

/// Random codes of a layout; the same ones on every machine.
fn random(layout: Layout, len: usize) -> Vec<i8> {
    let (lowest, highest) = layout.codes();
    let codes = (i32::from(highest) - i32::from(lowest) + 1) as u64;
    let mut random = Random::new(10);
    (0..len)
        .map(|_| (random.below(codes) as i32 + i32::from(lowest)) as i8)
        .collect()
}

/// The cases over `values` weights (a multiple of 4,096) in rows of 4,096, each built when it is asked for. The naive loop
/// multiplies f32 weights, so it reads several times the bytes.
pub fn linear(values: usize) -> impl Iterator<Item = Case> {
    let input = normals(values);
    Layout::ALL.into_iter().map(move |layout| {
        let encoded = Rc::new(Encoded::new(layout, &input));
        let out = vec![0.0; encoded.rows];
        let bytes = encoded.bytes.len() + ROW + out.len() * 4;
        let x = codes(ROW);
        let floats: Vec<f32> = x.iter().map(|&x| f32::from(x) * 0.01).collect();
        let name = format!("matvec {}", layout.name());
        Case::new(name, values, bytes, Traffic::Read)
            .with(Who::Scalar, &encoded, out.clone(), product(Scalar, &x))
            .with(
                Who::Threads,
                &encoded,
                out.clone(),
                product(Threads::default(), &x),
            )
            .with(Who::Naive, &input, out, move |weights, out| {
                naive::dot(weights, &floats, out);
            })
    })
}

/// The whole call: checks, the widening of activations, products, scales.
fn product<E: LinearEngine>(mut engine: E, x: &[i8]) -> impl FnMut(&Encoded, &mut Vec<f32>) + use<E>
where
    E::Error: std::fmt::Display,
{
    let x = x.to_vec();
    let mut scratch = Vec::new();
    move |encoded, out| {
        let layer = encoded.layer();
        scratch.resize(layer.weights().fast_scratch_len(), 0);
        let x = I8Sym::new(&x).expect("no code of -128");
        let done = engine.matvec(&layer, x, 0.01, out, &mut scratch);
        done.unwrap_or_else(|error| panic!("{error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_naive_product_is_that_of_the_blocks_but_for_their_error() {
        let input = normals(8 * ROW);
        let x = codes(ROW);
        let floats: Vec<f32> = x.iter().map(|&x| f32::from(x) * 0.01).collect();
        let (mut ours, mut theirs) = (vec![0.0; 8], vec![0.0; 8]);
        let encoded = Encoded::new(Layout::from_name("q8_0").unwrap(), &input);
        product(Scalar, &x)(&encoded, &mut ours);
        naive::dot(&input, &floats, &mut theirs);
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!((ours - theirs).abs() < 3.0, "{ours}, {theirs}");
        }
        assert!(theirs.iter().any(|y| y.abs() > 10.0), "{theirs:?}");
    }

    #[test]
    fn every_layout_is_measured_on_sums_that_are_not_zero() {
        let input = normals(4 * ROW);
        for layout in Layout::ALL {
            let mut out = vec![0.0; 4];
            product(Scalar, &codes(ROW))(&Encoded::new(layout, &input), &mut out);
            assert!(out.iter().all(|&y| y != 0.0), "{}: {out:?}", layout.name());
        }
    }
}
