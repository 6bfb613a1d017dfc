//! The classifier from a model file, as codes and scales or as floats.

use tercet_core::block::{self, bitnet_hf, bitnet_hf::WeightScale};
use tercet_core::f16;
use tercet_core::palette::{self, IndexMatrix, Width};
use tercet_host::{DType, Tensor, TensorFile};

use super::network::{Layer, Network, Paletted, Stored};
use crate::failure::Failure;

/// Reads the classifier as the file stores it.
pub(crate) fn network(model: &TensorFile) -> Result<Network<Stored>, Failure> {
    Ok(Network {
        hidden: layer(model, "hidden")?,
        head: layer(model, "head")?,
    })
}

fn layer(model: &TensorFile, name: &str) -> Result<Layer<Stored>, Failure> {
    let tensor = get(model, &format!("{name}.weight"))?;
    let bias = floats_of(model, &format!("{name}.bias"))?;
    let scales = || floats_of(model, &format!("{name}.weight_scale"));
    let weights = match tensor.dtype {
        DType::F32 | DType::F16 => Stored::Float(floats_of(model, tensor.name)?),
        DType::Block(format) => Stored::Blocks(format, tensor.bytes.to_vec()),
        DType::I8 => Stored::Codes(tensor.bytes.to_vec(), scales()?),
        DType::U8 if model.get(&format!("{name}.weight_palette")).is_some() => {
            Stored::Palette(paletted(model, &tensor)?)
        }
        DType::U8 => {
            let mut codes = vec![0; bias.len() * tensor.row()];
            bitnet_hf::unpack(bias.len(), tensor.row(), tensor.bytes, &mut codes)
                .map_err(|error| Failure::new(format_args!("tensor `{}`: {error}", tensor.name)))?;
            // The file of `tercet quantize` contains the divisor, unless another option is given.
            let unit = |stored: f32| WeightScale::Divisor.unit(stored).map_err(Failure::new);
            let scales = scales()?
                .into_iter()
                .map(unit)
                .collect::<Result<_, Failure>>()?;
            let codes = codes.into_iter().map(i8::cast_unsigned).collect();
            Stored::Codes(codes, scales)
        }
        other => return Err(unreadable(model, tensor.name, &other.name())),
    };
    Ok(Layer { weights, bias })
}

/// Reads a matrix in palettes, as `tercet quantize` writes it.
fn paletted(model: &TensorFile, tensor: &Tensor<'_>) -> Result<Paletted, Failure> {
    let name = tensor.name;
    let codebooks = get(model, &format!("{name}_palette"))?;
    let shape = get(model, &format!("{name}_palette_shape"))?;
    let shape: Vec<usize> = elements(shape.bytes, |dim| i64::from_le_bytes(dim) as usize);
    let &[rows, cols] = shape.as_slice() else {
        return Err(unreadable(
            model,
            name,
            "the palette is not that of a matrix",
        ));
    };
    let bits = codebooks.row().trailing_zeros() as u8;
    let groups = codebooks.values() / codebooks.row();
    let layout = Width::new(bits).and_then(|width| IndexMatrix::new(width, rows, cols, groups));
    Ok(Paletted {
        layout: layout.map_err(Failure::new)?,
        indices: tensor.bytes.to_vec(),
        codebooks: elements(codebooks.bytes, i8::from_le_bytes),
        scales: floats_of(model, &format!("{name}_palette_scale"))?,
    })
}

/// Returns the same network with its weights as floats: code · scale.
pub(crate) fn floats(network: &Network<Stored>) -> Result<Network<Vec<f32>>, Failure> {
    let layer = |layer: &Layer<Stored>| -> Result<Layer<Vec<f32>>, Failure> {
        let weights = match &layer.weights {
            Stored::Float(weights) => weights.clone(),
            Stored::Blocks(format, bytes) => {
                let mut weights = vec![0.0; bytes.len() / format.bytes() * format.len()];
                block::decode(*format, bytes, &mut weights).map_err(Failure::new)?;
                weights
            }
            Stored::Palette(weights) => {
                let mut restored = vec![0.0; weights.layout.values()];
                palette::decode(&weights.view(), &mut restored).map_err(Failure::new)?;
                restored
            }
            Stored::Codes(codes, scales) => {
                let group = codes.len() / scales.len().max(1);
                codes
                    .chunks(group.max(1))
                    .zip(scales)
                    .flat_map(|(row, s)| row.iter().map(move |&c| f32::from(c as i8) * s))
                    .collect()
            }
        };
        Ok(Layer {
            weights,
            bias: layer.bias.clone(),
        })
    };
    Ok(Network {
        hidden: layer(&network.hidden)?,
        head: layer(&network.head)?,
    })
}

fn get<'a>(model: &'a TensorFile, name: &str) -> Result<Tensor<'a>, Failure> {
    model.get(name).ok_or_else(|| {
        Failure::new(format_args!(
            "{}: no tensor named `{name}`",
            model.path().display()
        ))
    })
}

fn floats_of(model: &TensorFile, name: &str) -> Result<Vec<f32>, Failure> {
    let tensor = get(model, name)?;
    match tensor.dtype {
        DType::F32 => Ok(elements(tensor.bytes, f32::from_le_bytes)),
        DType::F16 => Ok(elements(tensor.bytes, |bytes| {
            f16::from_le_bytes(bytes).to_f32()
        })),
        other => Err(unreadable(model, name, &other.name())),
    }
}

fn elements<T, const N: usize>(bytes: &[u8], decode: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|&bytes| decode(bytes))
        .collect()
}

fn unreadable(model: &TensorFile, name: &str, dtype: &str) -> Failure {
    Failure::new(format_args!(
        "{}: tensor `{name}`: the demo does not read {dtype}",
        model.path().display()
    ))
}
