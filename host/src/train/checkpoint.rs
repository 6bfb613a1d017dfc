//! A run in a file: safetensors of weights and moments, which can be restored only to the same run.

use std::path::Path;

use tercet_core::conformance::Digest;

use super::state::State;
use super::watch::{Best, Watched};
use crate::file::output::Output;
use crate::file::{OutputTensor, safetensors};
use crate::tensor_file::Container;
use crate::{DType, Error, TensorFile};

/// The format that the file states.
const FORMAT: &str = "tercet training 2";
const NAMES: [&str; 3] = ["weights", "first_moments", "second_moments"];
/// The weights at the evaluation with the least cost, if a run keeps them.
const BEST: &str = "best_weights";

/// Writes the state of a run, completely or not at all. `origin` identifies the run: names and values, all of which
/// must be the same to resume it.
pub(super) fn write(
    path: &Path,
    state: &State,
    origin: &[(&'static str, String)],
) -> Result<u64, Error> {
    let output = Output::create(path, [], true)?;
    let Watched {
        best,
        waited,
        halvings,
    } = &state.watched;
    let kept = best.as_ref().filter(|best| !best.weights.is_empty());
    let all = [&state.weights, &state.first, &state.second];
    let all = all.into_iter().chain(kept.map(|best| &best.weights));
    let all: Vec<Vec<u8>> = all
        .map(|values| {
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect()
        })
        .collect();
    let parts: Vec<OutputTensor> = NAMES
        .iter()
        .chain([&BEST])
        .zip(&all)
        .map(|(name, bytes)| OutputTensor {
            name: (*name).to_owned(),
            shape: vec![bytes.len() / 4],
            dtype: DType::F32,
            bytes: bytes.len() as u64,
        })
        .collect();
    let mut metadata: Vec<(String, String)> = vec![
        ("format".into(), FORMAT.into()),
        ("step".into(), state.steps.to_string()),
        ("waited".into(), waited.to_string()),
        ("halvings".into(), halvings.to_string()),
    ];
    if let Some(best) = best {
        metadata.push(("best_sum".into(), best.sum.to_string()));
        metadata.push(("best_step".into(), best.step.to_string()));
    }
    for (name, power) in ["beta1_power", "beta2_power"].into_iter().zip(state.powers) {
        metadata.push((name.into(), format!("{:016x}", power.to_bits())));
    }
    metadata.extend(
        origin
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone())),
    );
    metadata.push(("digest".into(), digest(&all, &metadata)));
    let mut writer = safetensors::Writer::new(output, &metadata, &parts)?;
    for (index, bytes) in all.iter().enumerate() {
        writer.write(index, bytes)?;
    }
    writer.finish()
}

/// Restores a state that [`write`] wrote, if it has the same origin.
///
/// # Errors
/// [`Error::BadFile`] for another or a damaged file; [`Error::Unsupported`] for a run of another origin, with the
/// difference; [`Error::Tensor`].
pub(super) fn read(
    path: &Path,
    state: &mut State,
    origin: &[(&'static str, String)],
) -> Result<(), Error> {
    let model = TensorFile::open(path)?;
    let bad = |reason: &str| Error::bad(path, "checkpoint", reason);
    let value = |name: &str| {
        let mut all = model.metadata().iter();
        all.find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    };
    if model.container() != Container::Safetensors || value("format") != Some(FORMAT) {
        return Err(bad(&format!("its format is not `{FORMAT}`")));
    }
    for (name, expected) in origin {
        // Older files name no teacher, and had none.
        let found = value(name).unwrap_or("none");
        if found != expected {
            let reason = format!(
                "its {name} is `{found}`, not `{expected}`: a run continues only with the options that it began with"
            );
            return Err(Error::unsupported(path, reason));
        }
    }
    let values = |name: &str| {
        let tensor = model.get(name).filter(|tensor| tensor.dtype == DType::F32);
        let tensor =
            tensor.ok_or_else(|| Error::tensor(path, name, "it is missing, or not of f32"))?;
        match tensor.bytes.len() == 4 * state.weights.len() {
            true => Ok(tensor.bytes),
            false => {
                let reason = "it has another number of values than the model";
                Err(Error::tensor(path, name, reason))
            }
        }
    };
    let mut all: Vec<&[u8]> = NAMES.into_iter().map(values).collect::<Result<_, _>>()?;
    let has_best = model.get(BEST).is_some();
    if has_best {
        all.push(values(BEST)?);
    }
    let metadata: Vec<(String, String)> = model
        .metadata()
        .iter()
        .filter(|(name, _)| name != "digest")
        .cloned()
        .collect();
    if value("digest") != Some(&digest(&all, &metadata)) {
        return Err(bad("its values changed after they were written"));
    }
    let number =
        |name: &str, radix| value(name).and_then(|text| u64::from_str_radix(text, radix).ok());
    let count = |name: &str| value(name).and_then(|text| text.parse().ok());
    let numbers = (
        number("step", 10),
        number("beta1_power", 16),
        number("beta2_power", 16),
        count("waited"),
        count("halvings"),
    );
    let (Some(steps), Some(first), Some(second), Some(waited), Some(halvings)) = numbers else {
        return Err(bad("it does not name its step"));
    };
    let sum = value("best_sum").and_then(|text| text.parse().ok());
    let mut best = sum.zip(number("best_step", 10)).map(|(sum, step)| Best {
        sum,
        step,
        weights: Vec::new(),
    });
    let floats = |bytes: &[u8]| {
        let values = bytes.as_chunks().0.iter();
        values
            .map(|&bytes| f32::from_le_bytes(bytes))
            .collect::<Vec<f32>>()
    };
    if let (Some(best), [_, _, _, weights]) = (&mut best, &all[..]) {
        best.weights = floats(weights);
    }
    let slots = [&mut state.weights, &mut state.first, &mut state.second];
    for (slot, bytes) in slots.into_iter().zip(&all) {
        *slot = floats(bytes);
    }
    state.watched = Watched {
        best,
        waited,
        halvings,
    };
    state.steps = steps;
    state.powers = [f64::from_bits(first), f64::from_bits(second)];
    Ok(())
}

/// Returns FNV-1a of 64 bits over all tensors and, in the order of their names, the metadata.
fn digest(parts: &[impl AsRef<[u8]>], metadata: &[(String, String)]) -> String {
    let mut digest = Digest::new();
    for part in parts {
        digest.bytes(part.as_ref());
    }
    let mut sorted: Vec<_> = metadata.iter().collect();
    sorted.sort();
    for (name, value) in sorted {
        digest.bytes(name.as_bytes());
        digest.bytes(value.as_bytes());
    }
    format!("{:016x}", digest.value())
}
