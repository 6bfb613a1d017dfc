//! A run in a file: safetensors of weights and moments, which can be restored only to the same run.

use std::path::Path;

use tercet_core::conformance::Digest;
use tercet_core::train::LEAN_BLOCK;

use super::latent::Weights;
use super::moments::{First, Moments, Second};
use super::state::State;
use super::watch::{Best, Watched};
use crate::file::output::Output;
use crate::file::{OutputTensor, safetensors};
use crate::tensor_file::Container;
use crate::{DType, Error, TensorFile};

/// The format that the file states.
const FORMAT: &str = "tercet training 2";
/// The weights, and their exponents if they are codes.
const WEIGHTS: [&str; 2] = ["weights", "exponents"];
/// Those at the evaluation with the least cost, if a run keeps them.
const BEST: [&str; 2] = ["best_weights", "best_exponents"];
/// The first moments, and the scales of all if they are codes.
const FIRST: [&str; 2] = ["first_moments", "moment_scales"];
/// The second moments, or their factors.
const SECOND: [&str; 2] = ["second_moments", "second_factors"];

/// A tensor of the file.
type Part = (&'static str, DType, Vec<u8>);

fn bytes<const N: usize, T: Copy>(values: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&value| bytes(value)).collect()
}

fn of_weights([codes, exponents]: [&'static str; 2], weights: &Weights) -> Vec<Part> {
    match weights {
        Weights::Full(values) => vec![(codes, DType::F32, bytes(values, f32::to_le_bytes))],
        Weights::Lean(values, own) => vec![
            (codes, DType::I16, bytes(values, i16::to_le_bytes)),
            (exponents, DType::I8, bytes(own, i8::to_le_bytes)),
        ],
    }
}

fn of_moments(moments: &Moments) -> Vec<Part> {
    let ([first, scales], [second, factors]) = (FIRST, SECOND);
    let (of_first, of_scales) = match &moments.first {
        First::Full(m) => ((first, DType::F32, bytes(m, f32::to_le_bytes)), None),
        First::Lean(m, own) => {
            let own = bytes(own.as_flattened(), f32::to_le_bytes);
            let first = (first, DType::I8, bytes(m, i8::to_le_bytes));
            (first, Some((scales, DType::F32, own)))
        }
    };
    let of_second = match &moments.second {
        Second::Full(v) => (second, DType::F32, bytes(v, f32::to_le_bytes)),
        Second::Lean(v) => (second, DType::U8, v.clone()),
        Second::Factored(own) => {
            let own = bytes(&own.values, f32::to_le_bytes);
            (factors, DType::F32, own)
        }
    };
    [of_first, of_second].into_iter().chain(of_scales).collect()
}

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
    let kept = best.as_ref().and_then(|best| best.weights.as_ref());
    let mut all = of_weights(WEIGHTS, &state.weights);
    all.extend(of_moments(&state.moments));
    all.extend(kept.into_iter().flat_map(|best| of_weights(BEST, best)));
    let parts: Vec<OutputTensor> = all
        .iter()
        .map(|(name, dtype, bytes)| OutputTensor {
            name: (*name).to_owned(),
            shape: vec![bytes.len() / dtype.block().1],
            dtype: *dtype,
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
    let values = all.iter().map(|(.., bytes)| &bytes[..]);
    metadata.push(("digest".into(), digest(values, &metadata)));
    let mut writer = safetensors::Writer::new(output, &metadata, &parts)?;
    for (index, (.., bytes)) in all.iter().enumerate() {
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
    let count = state.weights.len();
    let tensor = |name: &'static str, dtype: DType, len: usize| {
        let tensor = model.get(name).filter(|tensor| tensor.dtype == dtype);
        let tensor = tensor.ok_or_else(|| {
            Error::tensor(
                path,
                name,
                format!("it is missing, or not of {}", dtype.name()),
            )
        })?;
        match tensor.bytes.len() == len.saturating_mul(dtype.block().1) {
            true => Ok(tensor.bytes),
            false => {
                let reason = "it has another number of values than the model";
                Err(Error::tensor(path, name, reason))
            }
        }
    };
    let blocks = count.div_ceil(LEAN_BLOCK);
    let weights = |[codes, exponents]: [&'static str; 2]| {
        Ok(match &state.weights {
            Weights::Full(_) => Weights::Full(floats(tensor(codes, DType::F32, count)?)),
            Weights::Lean(..) => Weights::Lean(
                values(tensor(codes, DType::I16, count)?, i16::from_le_bytes),
                values(tensor(exponents, DType::I8, blocks)?, i8::from_le_bytes),
            ),
        })
    };
    let own = weights(WEIGHTS)?;
    let ([first, scales], [second, factors]) = (FIRST, SECOND);
    let first = match &state.moments.first {
        First::Full(_) => First::Full(floats(tensor(first, DType::F32, count)?)),
        First::Lean(..) => First::Lean(
            values(tensor(first, DType::I8, count)?, i8::from_le_bytes),
            values(tensor(scales, DType::F32, 2 * blocks)?, f32::from_le_bytes)
                .as_chunks()
                .0
                .to_vec(),
        ),
    };
    let second = match &state.moments.second {
        Second::Full(_) => Second::Full(floats(tensor(second, DType::F32, count)?)),
        Second::Lean(_) => Second::Lean(tensor(second, DType::U8, count)?.to_vec()),
        Second::Factored(own) => {
            let found = tensor(factors, DType::F32, own.values.len())?;
            Second::Factored(own.with(floats(found)))
        }
    };
    let moments = Moments { first, second };
    let kept = model.get(BEST[0]).map(|_| weights(BEST)).transpose()?;
    let metadata: Vec<(String, String)> = model
        .metadata()
        .iter()
        .filter(|(name, _)| name != "digest")
        .cloned()
        .collect();
    // In the order in which they were written.
    let [first, scales] = FIRST;
    let names = [first].into_iter().chain(SECOND).chain([scales]);
    let names = WEIGHTS.into_iter().chain(names).chain(BEST);
    let read = names
        .filter_map(|name| model.get(name))
        .map(|tensor| tensor.bytes);
    if value("digest") != Some(&digest(read, &metadata)) {
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
    let best = sum.zip(number("best_step", 10)).map(|(sum, step)| Best {
        sum,
        step,
        weights: kept,
    });
    (state.weights, state.moments) = (own, moments);
    state.watched = Watched {
        best,
        waited,
        halvings,
    };
    state.steps = steps;
    state.powers = [f64::from_bits(first), f64::from_bits(second)];
    Ok(())
}

fn values<const N: usize, T>(bytes: &[u8], value: impl Fn([u8; N]) -> T) -> Vec<T> {
    let values = bytes.as_chunks().0.iter();
    values.map(|&bytes| value(bytes)).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    values(bytes, f32::from_le_bytes)
}

/// Returns FNV-1a of 64 bits over all tensors and, in the order of their names, the metadata.
fn digest<'p>(parts: impl Iterator<Item = &'p [u8]>, metadata: &[(String, String)]) -> String {
    let mut digest = Digest::new();
    for part in parts {
        digest.bytes(part);
    }
    let mut sorted: Vec<_> = metadata.iter().collect();
    sorted.sort();
    for (name, value) in sorted {
        digest.bytes(name.as_bytes());
        digest.bytes(value.as_bytes());
    }
    format!("{:016x}", digest.value())
}
