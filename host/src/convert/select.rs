//! Which tensors are to be quantized.

use globset::{Glob, GlobSet, GlobSetBuilder};

use super::options::QuantizeOptions;
use crate::model::Tensor;
use crate::{Error, Model};

/// Which tensors the user wants quantized.
pub(super) struct Selection {
    include: Option<GlobSet>,
    exclude: GlobSet,
}

impl Selection {
    pub(super) fn new(model: &Model, options: &QuantizeOptions) -> Result<Self, Error> {
        let include = globs(model, &options.include)?;
        Ok(Self {
            include: (!options.include.is_empty()).then_some(include),
            exclude: globs(model, &options.exclude)?,
        })
    }

    /// Why a tensor is not to be quantized; `None` where it is.
    pub(super) fn refusal(&self, tensor: &Tensor<'_>) -> Option<&'static str> {
        if self.exclude.is_match(tensor.name) {
            return Some("excluded");
        }
        match &self.include {
            Some(include) if !include.is_match(tensor.name) => Some("not included"),
            None if tensor.shape.len() < 2 => Some("fewer than two dimensions"),
            _ => None,
        }
    }
}

fn globs(model: &Model, patterns: &[String]) -> Result<GlobSet, Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = Glob::new(pattern).map_err(Error::options)?;
        // A misspelt pattern must not pass in silence.
        let matcher = glob.compile_matcher();
        if !model.tensors().any(|tensor| matcher.is_match(tensor.name)) {
            return Err(Error::options(format!(
                "no tensor's name matches `{pattern}`"
            )));
        }
        set.add(glob);
    }
    set.build().map_err(Error::options)
}
