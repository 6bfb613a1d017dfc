//! GGUF blocks: encode, decode, multiply.

use crate::peers::{ggml, naive};
use crate::{Case, Traffic, Who, normals};
use rayon::prelude::*;
use std::rc::Rc;
use std::sync::Arc;
use tercet_core::block::Format;
use tercet_core::engine::BlockEngine;
use tercet_core::number::Random;
use tercet_core::quant::{Rule, ScaleRule};
use tercet_core::scalar::Scalar;
use tercet_host::parallel::Threads;

/// Weights in a row of a product.
const ROW: usize = 4096;

/// The cases over `values` values (a multiple of 4,096), each built when it is asked for.
///
/// # Panics
/// When ggml gives other bytes or floats: then the two do not do the same work.
pub fn blocks(values: usize) -> impl Iterator<Item = Case> {
    let input = normals(values);
    Format::ALL.into_iter().flat_map(move |format| {
        let mut bytes = vec![0; format.encoded_len(values).expect("whole blocks")];
        encode(&mut Scalar, format, &input, &mut bytes);
        let (input, bytes) = (input.clone(), Rc::from(bytes));
        let cases: [fn(_, &_, &_) -> Case; 3] = [encoding, decoding, product];
        cases
            .into_iter()
            .map(move |case| case(format, &input, &bytes))
    })
}

fn encode(engine: &mut impl BlockEngine, format: Format, values: &[f32], out: &mut [u8]) {
    let done = engine.encode(format, Rule::AbsMax, ScaleRule::Rule, values, out);
    done.unwrap_or_else(|error| panic!("{error}"));
}

fn encoding(format: Format, input: &Rc<[f32]>, bytes: &Rc<[u8]>) -> Case {
    let mut out = vec![0; bytes.len()];
    let case = case(
        "encode",
        format,
        input.len() * 4 + bytes.len(),
        input,
        Traffic::Narrow,
    )
    .with(Who::Scalar, input, out.clone(), move |x, out| {
        encode(&mut Scalar, format, x, out)
    })
    .with(Who::Threads, input, out.clone(), move |x, out| {
        encode(&mut Threads::default(), format, x, out)
    });
    let Some(run) = ggml::encoder(format) else {
        return case;
    };
    run(input, &mut out);
    assert!(
        out[..] == bytes[..],
        "ggml encodes other bytes in {}",
        format.name()
    );
    case.with(Who::Ggml, input, out, move |x, out| run(x, out))
}

fn decode(engine: &mut impl BlockEngine, format: Format, bytes: &[u8], out: &mut [f32]) {
    let done = engine.decode(format, bytes, out);
    done.unwrap_or_else(|error| panic!("{error}"));
}

fn decoding(format: Format, input: &Rc<[f32]>, bytes: &Rc<[u8]>) -> Case {
    let mut out = vec![0.0; input.len()];
    let case = case(
        "decode",
        format,
        input.len() * 4 + bytes.len(),
        input,
        Traffic::Widen,
    )
    .with(Who::Scalar, bytes, out.clone(), move |b, out| {
        decode(&mut Scalar, format, b, out)
    })
    .with(Who::Threads, bytes, out.clone(), move |b, out| {
        decode(&mut Threads::default(), format, b, out)
    });
    let Some(run) = ggml::decoder(format) else {
        return case;
    };
    let mut ours = out.clone();
    decode(&mut Scalar, format, bytes, &mut ours);
    run(bytes, &mut out);
    assert!(
        ours == out,
        "ggml decodes other floats from {}",
        format.name()
    );
    case.with(Who::Ggml, bytes, out, move |b, out| run(b, out))
}

/// A matrix of rows of 4,096 weights times one int8 vector; `threads` shares the rows out. The naive loop
/// multiplies the f32 weights themselves, so it reads several times the bytes.
fn product(format: Format, input: &Rc<[f32]>, bytes: &Rc<[u8]>) -> Case {
    let out = vec![0.0; input.len() / ROW];
    let row_bytes = bytes.len() / out.len();
    let mut random = Random::new(8);
    let x: Arc<[i8]> = (0..ROW)
        .map(|_| (random.below(255) as i32 - 127) as i8)
        .collect();
    let floats: Vec<f32> = x.iter().map(|&x| f32::from(x) * 0.01).collect();
    let dot = move |row: &[u8], y: &mut f32| {
        *y = Scalar
            .dot(format, row, &x, 0.01)
            .unwrap_or_else(|error| panic!("{error}"));
    };
    let shared = dot.clone();
    case(
        "dot",
        format,
        bytes.len() + ROW + out.len() * 4,
        input,
        Traffic::Read,
    )
    .with(Who::Scalar, bytes, out.clone(), move |bytes, out| {
        bytes
            .chunks(row_bytes)
            .zip(out)
            .for_each(|(row, y)| dot(row, y));
    })
    .with(Who::Threads, bytes, out.clone(), move |bytes, out| {
        bytes
            .par_chunks(row_bytes)
            .zip(out)
            .for_each(|(row, y)| shared(row, y));
    })
    .with(Who::Naive, input, out, move |weights, out| {
        naive::dot(weights, &floats, out)
    })
}

fn case(what: &str, format: Format, bytes: usize, input: &[f32], traffic: Traffic) -> Case {
    Case::new(
        format!("{what} {}", format.name()),
        input.len(),
        bytes,
        traffic,
    )
}
