//! GGUF blocks: encode, decode, multiply.

use crate::guest;
use crate::peers::{ggml, naive};
use tercet_core::block::{self, Format};
use tercet_core::quant::{Rule, ScaleRule};
use tercet_host::measure::{Guest, input};

pub(crate) fn guests(operation: &str, values: usize) -> Vec<Guest> {
    let Some((part, format)) = operation.split_once(' ') else {
        return Vec::new();
    };
    let found = match (part, Format::from_name(format)) {
        ("encode", Some(format)) => encoder(format, values),
        ("decode", Some(format)) => decoder(format, values),
        ("dot", Some(_)) => Some(dot(values)),
        _ => None,
    };
    found.into_iter().collect()
}

/// Returns Tercet's encoding of the values.
fn encoded(format: Format, values: &[f32]) -> Vec<u8> {
    let len = format.encoded_len(values.len());
    let mut bytes = vec![0; len.unwrap_or_else(|error| panic!("{error}"))];
    let (rule, scale) = (Rule::AbsMax, ScaleRule::Rule);
    let done = block::encode(format, rule, scale, values, &mut bytes);
    done.unwrap_or_else(|error| panic!("{error}"));
    bytes
}

fn encoder(format: Format, values: usize) -> Option<Guest> {
    let run = ggml::encoder(format)?;
    let input = input::normals(values);
    let bytes = encoded(format, &input);
    let mut out = vec![0; bytes.len()];
    run(&input, &mut out);
    assert!(
        out == bytes,
        "ggml encodes other bytes in {}",
        format.name()
    );
    Some(guest("ggml", move || run(&input, &mut out)))
}

fn decoder(format: Format, values: usize) -> Option<Guest> {
    let run = ggml::decoder(format)?;
    let bytes = encoded(format, &input::normals(values));
    let (mut ours, mut out) = (vec![0.0; values], vec![0.0; values]);
    block::decode(format, &bytes, &mut ours).unwrap_or_else(|error| panic!("{error}"));
    run(&bytes, &mut out);
    assert!(
        ours == out,
        "ggml decodes other floats from {}",
        format.name()
    );
    Some(guest("ggml", move || run(&bytes, &mut out)))
}

/// Multiplies a row of f32 weights by f32 activations, so it reads several times the bytes.
fn dot(values: usize) -> Guest {
    let (weights, x) = (input::normals(values), floats(values));
    let mut out = vec![0.0];
    guest("naive", move || naive::dot(&weights, &x, &mut out))
}

/// Returns the activations as f32.
pub(crate) fn floats(len: usize) -> Vec<f32> {
    let codes = input::codes(len);
    codes.iter().map(|&x| f32::from(x) * 0.01).collect()
}
