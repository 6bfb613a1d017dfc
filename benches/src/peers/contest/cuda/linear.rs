//! A matrix times few vectors, and times many vectors.

use super::super::matmat::Matmat;
use super::super::{Case, Event, Inputs, Pools, Rival, Subject, TimedWork};
use super::{Copy, Device, PROCESSOR, expect};
use crate::peers::process::Answer;
use serde_json::json;
use std::io;
use tercet_core::block::Format;
use tercet_core::linear::{I8Sym, Layout};
use tercet_gpu::engine::{DeviceActivations, DeviceBuffer, DeviceLayer};
use tercet_host::measure::short;

pub(super) fn events(quick: bool) -> Vec<Event> {
    let (side, many) = if quick {
        (512, [64, 256, 64])
    } else {
        (16_384, [8192; 3])
    };
    let ternary = Layout::Block(Format::Tq2_0);
    let shapes = [
        (ternary, [side, side, 1]),
        (ternary, [side, side, 8]),
        (Layout::Int8, many),
        (ternary, many),
    ];
    let events = shapes.into_iter().map(|(layout, shape)| {
        let [rows, cols, vectors] = shape.map(short);
        Event::new(
            format!("matmat {}, {rows}×{cols}×{vectors}", layout.name()),
            move |name, inputs| case(name, inputs, layout, shape),
        )
    });
    events.collect()
}

fn case(
    name: &str,
    mut inputs: Inputs,
    layout: Layout,
    [rows, cols, vectors]: [usize; 3],
) -> io::Result<Case> {
    let (host, _) = Matmat::drawn(&mut inputs, layout, [rows, cols, vectors])?;
    let moved = host.moved();
    let tercet = OnDevice::new(host.clone())?;
    Ok(Case {
        name: name.into(),
        work: (rows * cols * vectors) as f64,
        unit: "products",
        steps: None,
        pools: Pools::All,
        inputs,
        options: json!({}),
        tercet: Box::new(tercet),
        rivals: vec![
            Rival::python("torch, int8", "torch_cuda_", "matmat"),
            Rival::Native {
                label: PROCESSOR,
                work: Box::new(host),
            },
            Copy::rival(moved, None)?,
        ],
    })
}

struct OnDevice {
    device: Device,
    layer: DeviceLayer,
    x: DeviceActivations,
    scales: DeviceBuffer<f32>,
    out: DeviceBuffer<f32>,
    /// The memory that the products are copied to.
    host: Matmat,
}

impl OnDevice {
    fn new(host: Matmat) -> io::Result<Self> {
        let mut device = Device::first()?;
        let cuda = &mut device.cuda;
        let made = cuda.layer(&host.layer()).and_then(|layer| {
            let x = I8Sym::new(&host.x)?;
            let x = cuda.activations(&layer, x)?;
            let scales = cuda.upload(&host.scales)?;
            let out = cuda.zeros(host.y.len())?;
            Ok((layer, x, scales, out))
        });
        let (layer, x, scales, out) = made.map_err(io::Error::other)?;
        Ok(Self {
            device,
            layer,
            x,
            scales,
            out,
            host,
        })
    }
}

impl TimedWork for OnDevice {
    fn run(&mut self, _: usize) -> f64 {
        let Self {
            device,
            layer,
            x,
            scales,
            out,
            ..
        } = self;
        device.time(|cuda| cuda.multiply(layer, x, scales, out))
    }
}

impl Subject for OnDevice {
    fn check(&mut self, answer: &Answer) -> Result<String, String> {
        expect(self.device.cuda.read(&self.out, &mut self.host.y));
        self.host.check(answer)
    }
}
