//! GGUF blocks, encoded with ggml's reference quantizers and with the gguf package's.

use super::data::normals;
use super::{Case, Event, Inputs, Native, Pools, Rival, Subject, TimedWork};
use crate::peers::ggml;
use crate::peers::process::Answer;
use serde_json::json;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use tercet_core::block::Format;
use tercet_core::engine::BlockEngine;
use tercet_core::quant::{Rule, ScaleRule};
use tercet_host::measure::short;
use tercet_host::parallel::Threads;

pub(super) fn events(quick: bool) -> Vec<Event> {
    let values = if quick { 1_024_000 } else { 16_384_000 };
    let events = Format::ENCODED.into_iter().map(|format| {
        Event::new(
            format!("encode {}, {}", format.name(), short(values)),
            move |name, inputs| case(name, inputs, format, values),
        )
    });
    events.collect()
}

fn case(name: &str, mut inputs: Inputs, format: Format, values: usize) -> io::Result<Case> {
    let x = normals(values);
    inputs.put("x", &x, &[values])?;
    let bytes = vec![0; format.encoded_len(values).expect("whole blocks")];
    let mut rivals = Vec::new();
    if let Some(encode) = ggml::encoder(format) {
        let work = Box::new(Reference {
            x: x.clone(),
            bytes: bytes.clone(),
            encode,
        });
        let label = "ggml's reference";
        rivals.push(Rival::Native { label, work });
    }
    // Of these formats the package lacks Q2_0.
    if format != Format::Q2_0 {
        rivals.push(Rival::python("gguf", "gguf_", "encode"));
    }
    // candle has no ternary formats.
    if !format.is_ternary() {
        rivals.push(Rival::rust("candle", "candle", "encode"));
    }
    Ok(Case {
        name: name.into(),
        work: values as f64,
        unit: "values",
        steps: None,
        // ggml's quantizer has one thread.
        pools: Pools::One,
        inputs,
        options: json!({"format": format.name()}),
        tercet: Box::new(Encode { x, bytes, format }),
        rivals,
    })
}

pub(super) struct Encode {
    pub(super) x: Arc<[f32]>,
    pub(super) bytes: Vec<u8>,
    pub(super) format: Format,
}

impl TimedWork for Encode {
    fn run(&mut self, _: usize) -> f64 {
        let start = Instant::now();
        let (rule, scale) = (Rule::AbsMax, ScaleRule::Rule);
        let done =
            Threads::default().encode_blocks(self.format, rule, scale, &self.x, &mut self.bytes);
        done.unwrap_or_else(|error| panic!("{error}"));
        start.elapsed().as_secs_f64()
    }
}

impl Native for Encode {
    fn answer(&self) -> Answer {
        Answer::of("bytes", &self.bytes)
    }
}

impl Subject for Encode {
    fn check(&mut self, answer: &Answer) -> Result<String, String> {
        match answer.bytes("bytes") == self.bytes {
            true => Ok("same bytes".into()),
            false => Err("other bytes".into()),
        }
    }
}

struct Reference<F> {
    x: Arc<[f32]>,
    bytes: Vec<u8>,
    encode: F,
}

impl<F: Fn(&[f32], &mut [u8]) + Send> TimedWork for Reference<F> {
    fn run(&mut self, _: usize) -> f64 {
        let start = Instant::now();
        (self.encode)(&self.x, &mut self.bytes);
        start.elapsed().as_secs_f64()
    }
}

impl<F: Fn(&[f32], &mut [u8]) + Send> Native for Reference<F> {
    fn answer(&self) -> Answer {
        Answer::of("bytes", &self.bytes)
    }
}
