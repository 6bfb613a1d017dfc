//! The importance of each value of a tensor: from a file of tensors with the same names and shapes, or, for each input
//! of a matrix, from a file in llama.cpp's form.

use tercet_core::palette::MAX_WEIGHT;

use super::plan::{Action, Conversion};
use super::stats;
use crate::language::{COUNTS, SUMS};
use crate::source::{CHUNK, Source};
use crate::{Error, TensorFile};

/// The importances of one tensor, as integers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Importance<'a> {
    source: Source<'a>,
    largest: f64,
    /// The integer for the largest importance: as large as 32 bits and the sum of all allow.
    top: f64,
}

impl<'a> Importance<'a> {
    /// Finds a tensor's importances and their scale, in one pass.
    ///
    /// Refuses importances that are negative, not finite, or 0 throughout.
    pub(crate) fn of(model: &'a TensorFile, name: &str) -> Result<Self, Error> {
        let source = find(model, name)?;
        let stats = stats::of_tensor(&source)?;
        let refuse = |reason: String| Err(Error::tensor(model.path(), name, reason));
        if stats.min < 0.0 {
            return refuse(format!("the importance {} is negative", stats.min));
        }
        if stats.max == 0.0 {
            return refuse("its importances are all 0".to_owned());
        }
        let most = MAX_WEIGHT / source.values().max(1) as u64;
        Ok(Self {
            source,
            largest: f64::from(stats.max),
            top: most.min(u64::from(u32::MAX)) as f64,
        })
    }

    /// Reads the importances from value `first` on: x / largest · top, rounded half to even.
    pub(crate) fn read(&self, first: usize, out: &mut [u32]) -> Result<(), Error> {
        let mut values = vec![0.0; out.len()];
        self.source.read(first, &mut values)?;
        for (importance, x) in out.iter_mut().zip(values) {
            *importance = (f64::from(x) / self.largest * self.top).round_ties_even() as u32;
        }
        Ok(())
    }
}

/// Matrices of language models that a file may omit: the embedding, which is looked up and not multiplied unless it is
/// also the head, and the head, which llama-imatrix omits unless it is requested.
const OUTER: [&str; 2] = ["token_embd.weight", "output.weight"];

/// Returns the mean square of each input of a matrix, from the sums that
/// [`Inputs::write`](crate::language::Inputs::write) and llama-imatrix write. If an embedding or a head is missing, all
/// its inputs count the same.
///
/// # Errors
/// [`Error::NoSuchTensor`]; [`Error::Tensor`] for another number of inputs than the matrix has, and for values that
/// cannot be sums of squares of some rows.
pub(crate) fn of_inputs(model: &TensorFile, matrix: &Source<'_>) -> Result<Vec<f64>, Error> {
    let name = matrix.tensor.name;
    let cols = matrix.tensor.row();
    if OUTER.contains(&name) && model.get(&format!("{name}{SUMS}")).is_none() {
        return Ok(vec![1.0; cols]);
    }
    let read = |end: &str, len: usize| {
        let name = format!("{name}{end}");
        let source = find(model, &name)?;
        let refuse = |reason: String| Err(Error::tensor(model.path(), &name, reason));
        if source.is_quantized() || !source.is_readable() {
            return refuse(format!("{} holds no importances", source.type_name()));
        }
        if source.values() != len {
            let found = source.values();
            return refuse(format!("it has {found} values, but {len} are needed"));
        }
        let mut values = vec![0.0; len];
        source.read(0, &mut values)?;
        match values.iter().find(|x| !(**x >= 0.0 && x.is_finite())) {
            Some(x) => refuse(format!("the importance {x} is negative or not finite")),
            None => Ok(values),
        }
    };
    let rows = read(COUNTS, 1)?[0];
    if rows == 0.0 {
        let name = format!("{name}{COUNTS}");
        return Err(Error::tensor(model.path(), &name, "it counts no rows"));
    }
    let sums = read(SUMS, cols)?;
    let means = sums.into_iter().map(|sum| f64::from(sum) / f64::from(rows));
    Ok(means.collect())
}

/// Returns the importance of each of the `cols` inputs of a matrix: its mean square as recorded, times the sum of
/// squares of the weights that it is multiplied with, which is the mean square of what it contributes.
///
/// # Errors
/// [`Error::Tensor`] for a matrix that is missing or has another number of inputs, and for a value that is not finite;
/// those of [`of_inputs`], and of reading a tensor.
pub(crate) fn scores(
    model: &TensorFile,
    importance: &TensorFile,
    (name, cols): (&str, usize),
) -> Result<Vec<f64>, Error> {
    let refuse = |reason: String| Error::tensor(model.path(), name, reason);
    let tensor = model
        .get(name)
        .ok_or_else(|| refuse("it is missing".into()))?;
    let source = Source::new(model, tensor)?;
    let means = of_inputs(importance, &source)?;
    if means.len() != cols {
        return Err(refuse(format!("it has {} inputs, not {cols}", means.len())));
    }
    let rows = source.values() / cols.max(1);
    let mut scores = vec![0.0; cols];
    let mut buffer = Vec::new();
    let each = (CHUNK / cols.max(1)).max(1);
    for first in (0..rows).step_by(each) {
        let len = each.min(rows - first) * cols;
        let values = source.view(first * cols, len, &mut buffer)?;
        if let Some(bad) = values.iter().position(|x| !x.is_finite()) {
            return Err(Error::not_finite(model.path(), name, first * cols + bad));
        }
        for row in values.chunks_exact(cols) {
            for (score, &weight) in scores.iter_mut().zip(row) {
                *score += f64::from(weight) * f64::from(weight);
            }
        }
    }
    source.release();
    for (score, mean) in scores.iter_mut().zip(means) {
        *score *= mean;
    }
    Ok(scores)
}

/// Returns the places of the largest scores, in order. Of equal ones the first.
pub(crate) fn best(scores: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    order.truncate(count);
    order.sort_unstable();
    order
}

fn find<'a>(model: &'a TensorFile, name: &str) -> Result<Source<'a>, Error> {
    let found = model.get(name).ok_or_else(|| Error::NoSuchTensor {
        path: model.path().to_path_buf(),
        tensor: name.to_owned(),
        close: crate::names::closest(name, model.tensors().map(|tensor| tensor.name)),
    })?;
    Source::new(model, found)
}

/// Checks before a byte is written that every palette has importances that are plain numbers in its own shape.
pub(crate) fn check(model: &TensorFile, steps: &[Conversion<'_>]) -> Result<(), Error> {
    let palettes = |step: &&Conversion<'_>| matches!(step.action, Action::Palette(_));
    for step in steps.iter().filter(palettes) {
        let name = step.source.tensor.name;
        let source = find(model, name)?;
        let refuse = |reason: String| Err(Error::tensor(model.path(), name, reason));
        if source.is_quantized() || !source.is_readable() {
            return refuse(format!("{} holds no importances", source.type_name()));
        }
        let (own, theirs) = (step.source.shape(), source.shape());
        if own != theirs {
            return refuse(format!(
                "its shape is {theirs:?}, that of the tensor to quantize {own:?}"
            ));
        }
    }
    Ok(())
}
