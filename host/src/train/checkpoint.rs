//! A run in a file: safetensors of weights and moments, put back only where they came from.

use std::path::Path;

use tercet_core::conformance::Digest;

use super::state::State;
use crate::file::output::Output;
use crate::file::{Part, safetensors};
use crate::model::Container;
use crate::{DType, Error, Model};

/// What the file says it is.
const FORMAT: &str = "tercet training 1";
const NAMES: [&str; 3] = ["weights", "first_moments", "second_moments"];

/// Writes the state of a run, whole or not at all. `origin` says what it is of: names and values, all of which must be the same to resume.
pub(super) fn write(
    path: &Path,
    state: &State,
    origin: &[(&'static str, String)],
) -> Result<u64, Error> {
    let output = Output::create(path, [], true)?;
    let all = [&state.weights, &state.first, &state.second];
    let all = all.map(|values| {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect::<Vec<u8>>()
    });
    let parts: Vec<Part> = NAMES
        .iter()
        .zip(&all)
        .map(|(name, bytes)| Part {
            name: (*name).to_owned(),
            shape: vec![bytes.len() / 4],
            dtype: DType::F32,
            bytes: bytes.len() as u64,
        })
        .collect();
    let mut metadata: Vec<(String, String)> = vec![
        ("format".into(), FORMAT.into()),
        ("step".into(), state.steps.to_string()),
    ];
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

/// Puts a state back that [`write`] wrote, if it is of the same origin.
///
/// # Errors
/// [`Error::BadFile`] for another or a damaged file; [`Error::Unsupported`] for a run of another origin, with what differs; [`Error::Tensor`].
pub(super) fn read(
    path: &Path,
    state: &mut State,
    origin: &[(&'static str, String)],
) -> Result<(), Error> {
    let model = Model::open(path)?;
    let bad = |reason: &str| Error::bad(path, "checkpoint", reason);
    let value = |name: &str| {
        let mut all = model.metadata().iter();
        all.find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    };
    if model.container() != Container::Safetensors || value("format") != Some(FORMAT) {
        return Err(bad("it does not say that it is `tercet training 1`"));
    }
    for (name, expected) in origin {
        let found = value(name).unwrap_or_default();
        if found != expected {
            let reason = format!(
                "its {name} is `{found}`, not `{expected}`: a run goes on with what it began with"
            );
            return Err(Error::unsupported(path, reason));
        }
    }
    let mut all: Vec<&[u8]> = Vec::new();
    for name in NAMES {
        let tensor = model.get(name).filter(|tensor| tensor.dtype == DType::F32);
        let tensor =
            tensor.ok_or_else(|| Error::tensor(path, name, "it is missing, or not of f32"))?;
        if tensor.bytes.len() != 4 * state.weights.len() {
            return Err(Error::tensor(
                path,
                name,
                "it has another number of values than the model",
            ));
        }
        all.push(tensor.bytes);
    }
    let metadata: Vec<(String, String)> = model
        .metadata()
        .iter()
        .filter(|(name, _)| name != "digest")
        .cloned()
        .collect();
    if value("digest") != Some(&digest(&all, &metadata)) {
        return Err(bad("its values are not those that were written"));
    }
    let number =
        |name: &str, radix| value(name).and_then(|text| u64::from_str_radix(text, radix).ok());
    let numbers = (
        number("step", 10),
        number("beta1_power", 16),
        number("beta2_power", 16),
    );
    let (Some(steps), Some(first), Some(second)) = numbers else {
        return Err(bad("it does not say which step it is of"));
    };
    let slots = [&mut state.weights, &mut state.first, &mut state.second];
    for (slot, bytes) in slots.into_iter().zip(all) {
        for (value, &bytes) in slot.iter_mut().zip(bytes.as_chunks().0) {
            *value = f32::from_le_bytes(bytes);
        }
    }
    state.steps = steps;
    state.powers = [f64::from_bits(first), f64::from_bits(second)];
    Ok(())
}

/// FNV-1a of 64 bits over all tensors and, in the order of their names, the metadata.
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
