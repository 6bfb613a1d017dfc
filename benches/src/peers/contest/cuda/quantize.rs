//! Tensors of f32 to codes, and back.

use super::super::data::normals;
use super::super::quantize::{Quantize, ROW};
use super::super::{Case, Event, Inputs, Pools, Rival, Subject, TimedWork};
use super::{Copy, Device, PROCESSOR, expect};
use crate::peers::process::Answer;
use serde_json::json;
use std::io;
use std::sync::Arc;
use tercet_core::engine::MagnitudeBin;
use tercet_core::quant::{Method, Rule, ScaleRule, int8};
use tercet_gpu::engine::{DeviceBuffer, DeviceCodes};
use tercet_host::measure::short;

pub(super) fn events(quick: bool) -> Vec<Event> {
    let values = if quick { 64_000 } else { 100_000_000 };
    let ternary = Event::new(
        format!("ternary absmean, {}", short(values)),
        move |name, inputs| ternary(name, inputs, values),
    );
    let rows = Event::new(
        format!("int8 rows of {}, {}", short(ROW), short(values)),
        move |name, inputs| int8_rows(name, inputs, values),
    );
    vec![ternary, rows]
}

fn ternary(name: &str, mut inputs: Inputs, values: usize) -> io::Result<Case> {
    let x = normals(values);
    inputs.put("x", &x, &[values])?;
    let method = Method::Ternary {
        rule: Rule::AbsMean,
        scale_rule: ScaleRule::Rule,
    };
    // Read for the mean, and again for the codes.
    let copy = Copy::rival(9 * values, None)?;
    let rivals = vec![
        Rival::python("torch", "torch_cuda_", "ternary"),
        Rival::python("torch, compiled", "torch_cuda_", "ternary_compiled"),
        Rival::python("CuPy, fused", "cupy_", "ternary"),
    ];
    let options = json!({});
    case(name, (x, values, method), inputs, options, rivals, copy)
}

fn int8_rows(name: &str, mut inputs: Inputs, values: usize) -> io::Result<Case> {
    let x = normals(values);
    inputs.put("x", &x, &[values])?;
    let method = Method::Symmetric { limit: int8::LIMIT };
    let copy = Copy::rival(5 * values, None)?;
    let rivals = vec![
        Rival::python("torch", "torch_cuda_", "int8_rows"),
        Rival::python("torch, compiled", "torch_cuda_", "int8_rows_compiled"),
        Rival::python("CuPy, fused", "cupy_", "int8_rows"),
    ];
    let options = json!({"row": ROW});
    case(name, (x, ROW, method), inputs, options, rivals, copy)
}

fn case(
    name: &str,
    (x, len, method): (Arc<[f32]>, usize, Method),
    inputs: Inputs,
    options: serde_json::Value,
    mut rivals: Vec<Rival>,
    copy: Rival,
) -> io::Result<Case> {
    let work = x.len() as f64;
    let tercet = OnDevice::new(Quantize::new(x.clone(), len, method))?;
    rivals.push(Rival::Native {
        label: PROCESSOR,
        work: Box::new(Quantize::new(x, len, method)),
    });
    rivals.push(copy);
    Ok(Case {
        name: name.into(),
        work,
        unit: "values",
        steps: None,
        pools: Pools::All,
        inputs,
        options,
        tercet: Box::new(tercet),
        rivals,
    })
}

struct OnDevice {
    device: Device,
    values: DeviceBuffer<f32>,
    out: DeviceCodes,
    bins: Vec<MagnitudeBin>,
    /// The tensor, and the memory that its codes are copied to.
    host: Quantize,
}

impl OnDevice {
    fn new(host: Quantize) -> io::Result<Self> {
        let mut device = Device::first()?;
        let values = device.cuda.upload(&host.x).map_err(io::Error::other)?;
        let out = device.cuda.codes(host.groups, false);
        Ok(Self {
            out: out.map_err(io::Error::other)?,
            values,
            device,
            bins: Vec::new(),
            host,
        })
    }
}

impl TimedWork for OnDevice {
    fn run(&mut self, _: usize) -> f64 {
        let Self {
            device,
            values,
            out,
            bins,
            host,
        } = self;
        device.time(|cuda| cuda.quantize(values, host.method, bins, out))
    }
}

impl Subject for OnDevice {
    fn check(&mut self, answer: &Answer) -> Result<String, String> {
        let Self {
            device, out, host, ..
        } = self;
        expect(device.cuda.read(out.codes(), &mut host.codes));
        expect(device.cuda.read(out.scales(), &mut host.scales));
        host.check(answer)
    }
}
