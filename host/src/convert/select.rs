//! Selects the tensors to quantize.

use fast_glob::glob_match;

use super::options::QuantizeOptions;
use crate::tensor_file::Tensor;
use crate::{Error, TensorFile};

/// The tensors that the user wants to quantize.
pub(super) struct Selection {
    include: Option<Globs>,
    exclude: Globs,
}

impl Selection {
    pub(super) fn new(model: &TensorFile, options: &QuantizeOptions) -> Result<Self, Error> {
        let include = Globs::new(model, &options.include)?;
        Ok(Self {
            include: (!options.include.is_empty()).then_some(include),
            exclude: Globs::new(model, &options.exclude)?,
        })
    }

    /// Returns why a tensor is not to be quantized; `None` if it is.
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

/// The globs of one option.
struct Globs(Vec<String>);

impl Globs {
    fn new(model: &TensorFile, patterns: &[String]) -> Result<Self, Error> {
        let mut globs = Self(Vec::with_capacity(patterns.len()));
        for pattern in patterns {
            let bad = |error| Error::options(format!("bad glob `{pattern}`: {error}"));
            fast_glob::validate(pattern).map_err(bad)?;
            // A separate option excludes names, so a name may begin with this character.
            let escape = if pattern.starts_with('!') { "\\" } else { "" };
            globs.0.push(format!("{escape}{}", flat(pattern)));
            // A misspelt pattern must be reported.
            let last = &globs.0[globs.0.len() - 1..];
            if !model.tensors().any(|tensor| any(last, tensor.name)) {
                return Err(Error::options(format!(
                    "no tensor's name matches `{pattern}`"
                )));
            }
        }
        Ok(globs)
    }

    fn is_match(&self, name: &str) -> bool {
        any(&self.0, name)
    }
}

fn any(globs: &[String], name: &str) -> bool {
    let name = flat(name);
    globs.iter().any(|glob| glob_match(glob, &name))
}

/// Escapes slashes: a tensor's name is no path, so a star also matches its slashes, which the library treats as ends of
/// folders.
fn flat(text: &str) -> String {
    text.replace('/', "\u{1f}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_names() {
        let cases = [
            ("a.*", "a.weight", true),
            ("a.*", "ba.weight", false),
            ("*weight", "blk.0/attn/weight", true),
            ("blk/*/weight", "blk/0/attn/weight", true),
            ("blk/**", "blk/0/weight", true),
            ("blk?0", "blk/0", true),
            ("blk.[0-3].*", "blk.2.ffn", true),
            ("blk.[!0-3].*", "blk.2.ffn", false),
            ("*.{q,k}_proj", "layers.1.k_proj", true),
            ("*.{q,k}_proj", "layers.1.v_proj", false),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a*b*c*d*e", "abcdabcdabcdabcdabcdabcdabcd", false),
        ];
        for (glob, name, expected) in cases {
            assert_eq!(any(&[flat(glob)], name), expected, "{glob} {name}");
        }
    }
}
