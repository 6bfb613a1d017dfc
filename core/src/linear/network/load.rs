//! Reads a network from its file.

use super::entries::{Entries, positive};
use super::{Network, NetworkError, Stage, VERSION};
use crate::gguf::{Reader, TensorType, Value};
use crate::linear::{Layer, Layout, LinearError, Matrix, Requantize, Rescale, Table};

/// Descriptions of tables with one value in all or one per row.
const I32_ROWS: &str = "I32, one for all rows or one a row";
const I8_ROWS: &str = "I8, one for all rows or one a row";
const F32_ROWS: &str = "F32, one for all rows or one a row";

impl<'a, const LAYERS: usize> Network<'a, LAYERS> {
    /// Reads a network from `bytes`, a complete GGUF file, without copying its tensors. See [`Network::from_reader`].
    ///
    /// # Errors
    /// [`NetworkError::File`]; those of [`Network::from_reader`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, NetworkError> {
        let file = Reader::new(bytes).map_err(|error| NetworkError::File { error })?;
        Self::from_reader(&file)
    }

    /// Reads a network from an open file. Its tensors are borrowed from the file's bytes; one pass checks them.
    ///
    /// Time: O(layers · (keys + tensors) + weights). Stack: no array, some hundred bytes of calls.
    ///
    /// # Errors
    /// Every [`NetworkError`] except `File`, `NotFinite` and `Input`: the first error found, with its layer.
    pub fn from_reader(file: &Reader<'a>) -> Result<Self, NetworkError> {
        let bad = |key, expected| NetworkError::Key { key, expected };
        if file.get("tercet.network.version") != Some(Value::U32(VERSION)) {
            return Err(bad("version", "the u32 1"));
        }
        let input_scale = positive(file.get("tercet.network.input_scale"))
            .ok_or(bad("input_scale", "a positive finite f32"))?;
        let Some(Value::U32(found)) = file.get("tercet.network.layers") else {
            return Err(bad("layers", "a u32"));
        };
        let layers = NetworkError::Layers {
            found: found.into(),
            max: LAYERS,
        };
        let count = usize::try_from(found).map_err(|_| layers)?;
        let last = count.checked_sub(1).ok_or(layers)?;
        let mut network = Self {
            input_scale,
            stages: heapless::Vec::new(),
        };
        if count > LAYERS {
            return Err(layers);
        }
        for layer in 0..count {
            let stage = stage(&Entries { file, layer }, layer == last)?;
            if let Some(before) = network.stages.last() {
                let expected = before.layer.weights().rows();
                let found = stage.layer.weights().cols();
                if expected != found {
                    return Err(NetworkError::Width {
                        layer,
                        expected,
                        found,
                    });
                }
            }
            network.stages.push(stage).map_err(|_| layers)?;
        }
        Ok(network)
    }
}

fn stage<'a>(entries: &Entries<'_, 'a>, last: bool) -> Result<Stage<'a>, NetworkError> {
    let refused = |error: LinearError| NetworkError::Layer {
        layer: entries.layer,
        error,
    };
    let weights = weights(entries)?;
    let rows = weights.rows();
    let mut layer = Layer::new(weights);
    let bias = entries.words("bias", TensorType::I32, rows, false, "I32, one a row")?;
    if let Some(bias) = bias {
        layer = layer
            .with_bias(bias, bias_shift(entries)?)
            .map_err(refused)?;
    }
    if last {
        for tensor in ["multiplier", "shift"] {
            entries.refuse(tensor)?;
        }
        return Ok(Stage {
            layer,
            rescale: None,
        });
    }
    let multipliers = entries.words("multiplier", TensorType::I32, rows, true, I32_ROWS)?;
    let multipliers = multipliers.ok_or(entries.not("multiplier", I32_ROWS))?;
    let shifts = entries.values("shift", TensorType::I8, multipliers.len(), false, I8_ROWS)?;
    let shifts = shifts.ok_or(entries.not("shift", I8_ROWS))?;
    let mut rescale = rescale(multipliers, shifts).map_err(refused)?;
    if relu(entries)? {
        rescale = rescale.with_relu();
    }
    let output_scale = entries.positive("output_scale")?;
    Ok(Stage {
        layer,
        rescale: Some((rescale, output_scale)),
    })
}

fn rescale<'a>(multipliers: Table<'a>, shifts: &'a [u8]) -> Result<Rescale<'a>, LinearError> {
    match (multipliers.len(), multipliers.get(0), shifts.first()) {
        (1, Some(multiplier), Some(&shift)) => {
            Ok(Rescale::one(Requantize::new(multiplier, shift)?))
        }
        _ => Rescale::rows(multipliers, shifts),
    }
}

fn weights<'a>(entries: &Entries<'_, 'a>) -> Result<Matrix<'a>, NetworkError> {
    let refused = |error: LinearError| NetworkError::Layer {
        layer: entries.layer,
        error,
    };
    let layout = match entries.get("layout") {
        Some(Value::String(name)) => Layout::from_name(name),
        _ => None,
    };
    let layout = layout.ok_or(entries.bad("layout", "the name of a layout"))?;
    let (rows, cols) = (entries.count("rows")?, entries.count("cols")?);
    let (kind, matrix, expected) = match layout {
        Layout::Block(format) => (
            TensorType(format.gguf_type()),
            true,
            "of the layout's type, rows by cols",
        ),
        Layout::Int8 => (TensorType::I8, true, "I8, rows by cols"),
        _ => (TensorType::I8, false, "I8, the layout's bytes"),
    };
    let not = entries.not("weight", expected);
    let info = entries.tensor("weight").ok_or(not)?;
    let row = if matrix {
        cols as u64
    } else {
        info.data.len() as u64
    };
    if info.kind != kind || info.shape.row() != row {
        return Err(not);
    }
    let weights = Matrix::new(layout, rows, cols, info.data).map_err(refused)?;
    if let Layout::Block(_) = layout {
        entries.refuse("scale")?;
        return Ok(weights);
    }
    let scales = entries.words("scale", TensorType::F32, rows, true, F32_ROWS)?;
    let scales = scales.ok_or(entries.not("scale", F32_ROWS))?;
    match (scales.len(), scales.get_f32(0)) {
        (1, Some(scale)) => weights.with_scale(scale),
        _ => weights.with_row_scales(scales),
    }
    .map_err(refused)
}

/// Returns the bias shift; 0 if the key is missing.
fn bias_shift(entries: &Entries<'_, '_>) -> Result<u8, NetworkError> {
    match entries.get("bias_shift") {
        None => Some(0),
        Some(Value::U32(shift)) => u8::try_from(shift).ok(),
        Some(_) => None,
    }
    .ok_or(entries.bad("bias_shift", "a u32 of at most 30"))
}

/// Returns true if the activation is a ReLU. If the key is missing, there is no activation.
fn relu(entries: &Entries<'_, '_>) -> Result<bool, NetworkError> {
    match entries.get("activation") {
        None | Some(Value::String("none")) => Ok(false),
        Some(Value::String("relu")) => Ok(true),
        Some(_) => Err(entries.bad("activation", "`none` or `relu`")),
    }
}
