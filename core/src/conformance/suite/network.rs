//! A dense network from a file in a buffer, on any engine.

use super::Digest;
use crate::engine::LinearEngine;
use crate::gguf::{SliceSink, TensorSpec, TensorType, Value, Writer};
use crate::linear::network::{Buffers, Network, NetworkError};
use crate::linear::{I8Sym, pack};
use crate::number::Random;
use crate::scalar::Scalar;

/// Number of inputs, and of outputs of the three layers.
const INPUTS: usize = 64;
const FIRST: usize = 7;
const SECOND: usize = 9;
const CLASSES: usize = 3;
/// Number of bytes of the first layer: a group of rows of 64, one of them missing.
const LANES: usize = 128;
/// The file takes about 1,800.
const FILE: usize = 1824;
const SCRATCH: usize = 40;

/// Ternary lanes with one scale per row, int8 with one scale, and an int8 head.
const TENSORS: [(&str, &[u64], TensorType); 12] = [
    ("network.0.weight", &[LANES as u64], TensorType::I8),
    ("network.0.scale", &[FIRST as u64], TensorType::F32),
    ("network.0.bias", &[FIRST as u64], TensorType::I32),
    ("network.0.multiplier", &[FIRST as u64], TensorType::I32),
    ("network.0.shift", &[FIRST as u64], TensorType::I8),
    (
        "network.1.weight",
        &[FIRST as u64, SECOND as u64],
        TensorType::I8,
    ),
    ("network.1.scale", &[1], TensorType::F32),
    ("network.1.multiplier", &[1], TensorType::I32),
    ("network.1.shift", &[1], TensorType::I8),
    (
        "network.2.weight",
        &[SECOND as u64, CLASSES as u64],
        TensorType::I8,
    ),
    ("network.2.scale", &[CLASSES as u64], TensorType::F32),
    ("network.2.bias", &[CLASSES as u64], TensorType::I32),
];

/// Keys and values.
const ENTRIES: [(&str, Value<'static>); 19] = [
    ("general.alignment", Value::U32(8)),
    ("tercet.network.version", Value::U32(1)),
    ("tercet.network.layers", Value::U32(3)),
    ("tercet.network.input_scale", Value::F32(0.25)),
    ("tercet.network.0.layout", Value::String("ternary_lanes")),
    ("tercet.network.0.rows", Value::U32(FIRST as u32)),
    ("tercet.network.0.cols", Value::U32(INPUTS as u32)),
    ("tercet.network.0.bias_shift", Value::U32(2)),
    ("tercet.network.0.activation", Value::String("relu")),
    ("tercet.network.0.output_scale", Value::F32(0.5)),
    ("tercet.network.1.layout", Value::String("int8")),
    ("tercet.network.1.rows", Value::U32(SECOND as u32)),
    ("tercet.network.1.cols", Value::U32(FIRST as u32)),
    ("tercet.network.1.activation", Value::String("none")),
    ("tercet.network.1.output_scale", Value::F32(0.125)),
    ("tercet.network.2.layout", Value::String("int8")),
    ("tercet.network.2.rows", Value::U32(CLASSES as u32)),
    ("tercet.network.2.cols", Value::U32(SECOND as u32)),
    ("tercet.network.2.bias_shift", Value::U32(3)),
];

/// A fixed network over fixed inputs, then the file with inverted bytes: its errors.
#[inline(never)]
pub(super) fn run<E: LinearEngine>(engine: &mut E) -> u64 {
    let mut digest = Digest::new();
    let mut file = [0; FILE];
    let Some(len) = write(&mut file) else {
        // A file that does not fit is an error in this one.
        return u64::MAX;
    };
    let file = file.get_mut(..len).unwrap_or_default();
    infer(engine, file, &mut digest);
    for index in (0..len).step_by(5) {
        for _ in 0..2 {
            if let Some(byte) = file.get_mut(index) {
                *byte = !*byte;
            }
            refuse(file, &mut digest);
        }
    }
    digest.value()
}

/// Digests the error, or the properties of the network.
#[inline(never)]
fn refuse(file: &[u8], digest: &mut Digest) {
    let network = Network::<3>::new(file);
    // A float's message may differ between machines that print it; these messages contain none.
    if let Some(network) = digest.outcome::<_, NetworkError>(network) {
        digest.u64(network.inputs() as u64);
        digest.f32(network.input_scale());
    }
}

/// Digests the logits of some inputs.
#[inline(never)]
fn infer<E: LinearEngine>(engine: &mut E, file: &[u8], digest: &mut Digest) {
    let Some(network) = digest.outcome(Network::<3>::new(file)) else {
        return;
    };
    let (mut activations, mut scratch) = ([0; FIRST + SECOND], [0; SCRATCH]);
    let mut buffers = Buffers {
        activations: &mut activations,
        scratch: &mut scratch,
    };
    let mut random = Random::new(61);
    for round in 0..6 {
        let mut values = [0.0; INPUTS];
        for value in &mut values {
            *value = match round {
                0 => 127.0,
                1 => -127.0,
                _ => (random.below(2001) as f32 - 1000.0) / 30.0,
            };
        }
        let mut codes = [0; INPUTS];
        let Some(x) = digest.outcome(network.quantize(&values, &mut codes)) else {
            return;
        };
        digest.i8s(x.get());
        let mut sums = [0; CLASSES];
        digest.outcome(network.run(engine, x, &mut buffers, &mut sums));
        for (row, &sum) in sums.iter().enumerate() {
            digest.u64(sum as u64);
            digest.f32(network.logit(row, sum));
        }
        digest.u64(network.class(&sums) as u64);
    }
    // One activation and one word too few.
    let (x, mut sums) = ([1; INPUTS], [0; CLASSES]);
    let Ok(x) = I8Sym::new(&x) else { return };
    for (less, fewer) in [(1, 0), (0, 1)] {
        let mut buffers = Buffers {
            activations: activations.get_mut(less..).unwrap_or_default(),
            scratch: scratch
                .get_mut(..network.scratch_len() - fewer)
                .unwrap_or_default(),
        };
        // Engines that need scratch, including core's own.
        digest.outcome(network.run(&mut Scalar, x, &mut buffers, &mut sums));
    }
}

/// Writes the file; `None` if it does not fit.
#[inline(never)]
fn write(file: &mut [u8]) -> Option<usize> {
    let empty = TensorSpec::new("", &[], TensorType::I8).ok()?;
    let mut specs = [empty; TENSORS.len()];
    for (spec, (name, dims, kind)) in specs.iter_mut().zip(TENSORS) {
        *spec = TensorSpec::new(name, dims, kind).ok()?;
    }
    let mut writer = Writer::new(SliceSink::new(file), ENTRIES.len() as u64, &specs).ok()?;
    for (key, value) in &ENTRIES {
        writer.entry(key, *value).ok()?;
    }
    let mut data = writer.into_data().ok()?;
    let mut random = Random::new(60);
    for spec in &specs {
        data.begin(spec.name).ok()?;
        let elements = spec.shape.elements();
        if elements == LANES as u64 {
            data.write(&lanes(&mut random)?).ok()?;
            continue;
        }
        for _ in 0..elements {
            let bits = random.next_u64();
            match (spec.kind, spec.name.ends_with("shift")) {
                // Sums of 64 int8 products reach int8's range, and sometimes exceed it.
                (TensorType::I8, true) => data.write(&[33 + (bits % 5) as u8]),
                (TensorType::I8, false) => data.write(&[bits as u8]),
                (TensorType::F32, _) => {
                    let scale = (1 + bits % 500) as f32 / 1024.0;
                    data.write(&scale.to_le_bytes())
                }
                (_, _) if spec.name.ends_with("multiplier") => {
                    let multiplier = (1 << 30) | (bits as u32 >> 2) as i32;
                    data.write(&multiplier.to_le_bytes())
                }
                (_, _) => data.write(&((bits as i32) >> 22).to_le_bytes()),
            }
            .ok()?;
        }
    }
    Some(data.finish().ok()?.len())
}

/// Ternary weights of the first layer.
#[inline(never)]
fn lanes(random: &mut Random) -> Option<[u8; LANES]> {
    let mut codes = [0; FIRST * INPUTS];
    for code in &mut codes {
        *code = random.below(3) as i8 - 1;
    }
    let mut bytes = [0; LANES];
    pack::ternary_lanes(FIRST, INPUTS, &codes, &mut bytes).ok()?;
    Some(bytes)
}
