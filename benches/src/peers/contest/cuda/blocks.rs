//! GGUF blocks: ggml's CUDA code quantizes few of these formats, and none of the ternary ones.

use super::super::data::normals;
use super::super::encode::Encode;
use super::super::{Case, Event, Inputs, Pools, Rival, Subject, TimedWork};
use super::{Copy, Device, PROCESSOR, expect};
use crate::peers::process::Answer;
use serde_json::json;
use std::io;
use tercet_core::block::Format;
use tercet_core::quant::{Rule, ScaleRule};
use tercet_gpu::engine::{DeviceBlocks, DeviceBuffer};
use tercet_host::measure::short;

pub(super) fn events(quick: bool) -> Vec<Event> {
    let values = if quick { 51_200 } else { 102_400_000 };
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
    let host = || Encode {
        x: x.clone(),
        bytes: vec![0; format.encoded_len(values).expect("whole blocks")],
        format,
    };
    let mut rivals = Vec::new();
    if format == Format::Q8_0 {
        rivals.push(Rival::python("torch, compiled", "torch_cuda_", "q8_0"));
    }
    rivals.push(Rival::Native {
        label: PROCESSOR,
        work: Box::new(host()),
    });
    rivals.push(Copy::rival(4 * values + host().bytes.len(), None)?);
    let mut device = Device::first()?;
    let there = device.cuda.upload(&x).map_err(io::Error::other)?;
    let out = device.cuda.blocks(format, values);
    Ok(Case {
        name: name.into(),
        work: values as f64,
        unit: "values",
        steps: None,
        pools: Pools::All,
        inputs,
        options: json!({}),
        tercet: Box::new(OnDevice {
            values: there,
            out: out.map_err(io::Error::other)?,
            host: host(),
            device,
        }),
        rivals,
    })
}

struct OnDevice {
    device: Device,
    values: DeviceBuffer<f32>,
    out: DeviceBlocks,
    /// The memory that the bytes are copied to.
    host: Encode,
}

impl TimedWork for OnDevice {
    fn run(&mut self, _: usize) -> f64 {
        let Self {
            device,
            values,
            out,
            ..
        } = self;
        device.time(|cuda| cuda.encode_resident(values, Rule::AbsMax, ScaleRule::Rule, out))
    }
}

impl Subject for OnDevice {
    fn check(&mut self, answer: &Answer) -> Result<String, String> {
        let Self {
            device, out, host, ..
        } = self;
        expect(device.cuda.read(out.bytes(), &mut host.bytes));
        host.check(answer)
    }
}
