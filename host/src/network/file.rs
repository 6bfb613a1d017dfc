//! Writes the file of a network; [`tercet_core::linear::network`] describes its content.

use tercet_core::gguf::{Sink, TensorSpec, TensorType, Value, WriteError, Writer};
use tercet_core::linear::network::VERSION;
use tercet_core::linear::{Layout, Requantize};

use super::encode::Weights;

/// A layer that is ready to be written.
#[derive(Clone, Debug)]
pub(super) struct Finished {
    pub(super) weights: Weights,
    pub(super) bias: Vec<i32>,
    pub(super) bias_shift: u8,
    /// All layers except the last have one.
    pub(super) output: Option<Output>,
}

/// How sums become the inputs of the next layer.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) relu: bool,
    pub(super) scale: f32,
    /// One, or one per row.
    pub(super) rescale: Vec<Requantize>,
}

/// A tensor: name, dimensions with the row first, type, bytes.
type NetworkTensor = (String, Vec<u64>, TensorType, Vec<u8>);

/// Bytes in memory.
#[derive(Debug, Default)]
struct Bytes(Vec<u8>);

impl Sink for Bytes {
    type Error = std::convert::Infallible;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Returns the whole file.
pub(super) fn write(
    input_scale: f32,
    layers: &[Finished],
) -> Result<Vec<u8>, WriteError<std::convert::Infallible>> {
    let mut entries: Vec<(String, Value<'_>)> = vec![
        ("general.architecture".into(), "tercet".into()),
        ("tercet.network.version".into(), VERSION.into()),
        ("tercet.network.layers".into(), (layers.len() as u32).into()),
        ("tercet.network.input_scale".into(), input_scale.into()),
    ];
    let mut parts: Vec<NetworkTensor> = Vec::new();
    for (index, layer) in layers.iter().enumerate() {
        let weights = &layer.weights;
        let mut entry = |key: &str, value| {
            entries.push((format!("tercet.network.{index}.{key}"), value));
        };
        entry("layout", weights.layout.name().into());
        entry("rows", (weights.rows as u32).into());
        entry("cols", (weights.cols as u32).into());
        entry("bias_shift", u32::from(layer.bias_shift).into());
        if let Some(output) = &layer.output {
            entry(
                "activation",
                if output.relu { "relu" } else { "none" }.into(),
            );
            entry("output_scale", output.scale.into());
        }
        tensors(index, layer, &mut parts);
    }
    let specs = parts
        .iter()
        .enumerate()
        .map(|(tensor, (name, dims, kind, _))| {
            TensorSpec::new(name, dims, *kind).map_err(|error| {
                WriteError::Refused(tercet_core::gguf::Refusal::Layout {
                    tensor: tensor as u64,
                    error,
                })
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut writer = Writer::new(Bytes::default(), entries.len() as u64, &specs)?;
    for (key, value) in entries {
        writer.entry(&key, value)?;
    }
    let mut data = writer.into_data()?;
    for (name, _, _, bytes) in &parts {
        data.begin(name)?;
        data.write(bytes)?;
    }
    Ok(data.finish()?.0)
}

fn tensors(index: usize, layer: &Finished, parts: &mut Vec<NetworkTensor>) {
    let weights = &layer.weights;
    let (rows, cols) = (weights.rows as u64, weights.cols as u64);
    let mut part = |name: &str, dims: Vec<u64>, kind, bytes: Vec<u8>| {
        parts.push((format!("network.{index}.{name}"), dims, kind, bytes));
    };
    let (kind, dims) = match weights.layout {
        Layout::Block(format) => (TensorType(format.gguf_type()), vec![cols, rows]),
        Layout::Int8 => (TensorType::I8, vec![cols, rows]),
        _ => (TensorType::I8, vec![weights.bytes.len() as u64]),
    };
    part("weight", dims, kind, weights.bytes.clone());
    if !weights.scales.is_empty() {
        let dims = vec![weights.scales.len() as u64];
        part("scale", dims, TensorType::F32, weights.scale_bytes());
    }
    if !layer.bias.is_empty() {
        part("bias", vec![rows], TensorType::I32, words(&layer.bias));
    }
    if let Some(output) = &layer.output {
        let multipliers: Vec<i32> = output.rescale.iter().map(|r| r.multiplier()).collect();
        let shifts = output.rescale.iter().map(|r| r.shift()).collect();
        let dims = vec![multipliers.len() as u64];
        part(
            "multiplier",
            dims.clone(),
            TensorType::I32,
            words(&multipliers),
        );
        part("shift", dims, TensorType::I8, shifts);
    }
}

pub(super) fn words(values: &[i32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}
