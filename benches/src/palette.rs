//! Palettes: encode, decode, multiply.

use crate::peers::naive;
use crate::{Case, Traffic, Who, codes, normals};
use std::rc::Rc;
use tercet_core::engine::PaletteEngine;
use tercet_core::palette::{Layout, Output, Palette, Width};
use tercet_core::scalar::Scalar;
use tercet_host::parallel::Threads;

/// Weights in a row.
const ROW: usize = 4096;

/// An encoded matrix of one group.
#[derive(Clone)]
struct Encoded {
    layout: Layout,
    indices: Vec<u8>,
    codebook: Vec<i8>,
    scale: [f32; 1],
    scratch: Vec<u64>,
}

impl Encoded {
    fn new(bits: u8, values: usize) -> Self {
        let width = Width::new(bits).expect("1 to 8 bits");
        let layout = Layout::new(width, values / ROW, ROW, 1).expect("a matrix");
        Self {
            indices: vec![0; layout.index_bytes()],
            codebook: vec![0; layout.codebook_len()],
            scale: [0.0],
            scratch: vec![0; layout.scratch_len()],
            layout,
        }
    }

    fn encode(&mut self, engine: &mut impl PaletteEngine, values: &[f32]) {
        let out = Output {
            indices: &mut self.indices,
            codebooks: &mut self.codebook,
            scales: &mut self.scale,
        };
        let done = engine.encode(&self.layout, values, &[], out, &mut self.scratch);
        done.unwrap_or_else(|error| panic!("{error}"));
    }

    fn view(&self) -> Palette<'_> {
        Palette {
            layout: self.layout,
            indices: &self.indices,
            codebooks: &self.codebook,
            scales: &self.scale,
        }
    }

    fn decode(&self, engine: &mut impl PaletteEngine, out: &mut [f32]) {
        let done = engine.decode(&self.view(), out);
        done.unwrap_or_else(|error| panic!("{error}"));
    }

    fn multiply(&self, engine: &mut impl PaletteEngine, x: &[i8], out: &mut [f32]) {
        let done = engine.matvec(&self.view(), x, 0.01, out);
        done.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// The cases of 2 and 4 bits over `values` values (a multiple of 4,096), each built when it is asked for.
pub fn palette(values: usize) -> impl Iterator<Item = Case> {
    let input = normals(values);
    [2, 4].into_iter().flat_map(move |bits| {
        let mut encoded = Encoded::new(bits, values);
        encoded.encode(&mut Scalar, &input);
        let (input, encoded) = (input.clone(), Rc::new(encoded));
        let cases: [fn(u8, &_, &_) -> Case; 3] = [encoding, decoding, product];
        cases
            .into_iter()
            .map(move |case| case(bits, &input, &encoded))
    })
}

fn encoding(bits: u8, input: &Rc<[f32]>, encoded: &Rc<Encoded>) -> Case {
    let out = Encoded::clone(encoded);
    let bytes = input.len() * 4 + encoded.indices.len();
    case("encode", bits, bytes, input, Traffic::Narrow)
        .with(Who::Scalar, input, out.clone(), |x, out| {
            out.encode(&mut Scalar, x);
        })
        .with(Who::Threads, input, out, |x, out| {
            out.encode(&mut Threads::default(), x);
        })
}

fn decoding(bits: u8, input: &Rc<[f32]>, encoded: &Rc<Encoded>) -> Case {
    let out = vec![0.0; input.len()];
    let bytes = input.len() * 4 + encoded.indices.len();
    case("decode", bits, bytes, input, Traffic::Widen)
        .with(Who::Scalar, encoded, out.clone(), |encoded, out| {
            encoded.decode(&mut Scalar, out);
        })
        .with(Who::Threads, encoded, out, |encoded, out| {
            encoded.decode(&mut Threads::default(), out);
        })
}

/// A matrix of rows of 4,096 weights times one int8 vector, entries looked up in place. The naive loop multiplies the
/// f32 weights themselves, so it reads several times the bytes.
fn product(bits: u8, input: &Rc<[f32]>, encoded: &Rc<Encoded>) -> Case {
    let out = vec![0.0; input.len() / ROW];
    let x = codes(ROW);
    let floats: Vec<f32> = x.iter().map(|&x| f32::from(x) * 0.01).collect();
    let shared = x.clone();
    let bytes = encoded.indices.len() + ROW + out.len() * 4;
    case("dot", bits, bytes, input, Traffic::Read)
        .with(Who::Scalar, encoded, out.clone(), move |encoded, out| {
            encoded.multiply(&mut Scalar, &x, out);
        })
        .with(Who::Threads, encoded, out.clone(), move |encoded, out| {
            encoded.multiply(&mut Threads::default(), &shared, out);
        })
        .with(Who::Naive, input, out, move |weights, out| {
            naive::dot(weights, &floats, out);
        })
}

fn case(what: &str, bits: u8, bytes: usize, input: &[f32], traffic: Traffic) -> Case {
    Case::new(
        format!("{what} palette:{bits}"),
        input.len(),
        bytes,
        traffic,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_naive_product_is_the_same_but_for_the_palette() {
        let input = normals(8 * ROW);
        let x = codes(ROW);
        let floats: Vec<f32> = x.iter().map(|&x| f32::from(x) * 0.01).collect();
        let (mut ours, mut theirs) = ([0.0; 8], [0.0; 8]);
        let mut encoded = Encoded::new(8, input.len());
        encoded.encode(&mut Scalar, &input);
        encoded.multiply(&mut Scalar, &x, &mut ours);
        naive::dot(&input, &floats, &mut theirs);
        // 8 bits err by about 1 % of a weight's spread, and 4,096 errors grow as their root does.
        for (ours, theirs) in ours.iter().zip(theirs) {
            assert!((ours - theirs).abs() < 3.0, "{ours}, {theirs}");
        }
        assert!(theirs.iter().any(|y| y.abs() > 10.0), "{theirs:?}");
    }
}
