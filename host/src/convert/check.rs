//! Checks that the output fits the target, and that options fit each other.

use std::path::Path;

use tercet_core::quant::{Rule, ScaleRule};

use super::i2_s;
use super::options::{Per, QuantizeOptions, Scheme, Target, read_only};
use crate::Error;
use crate::tensor_file::Container;

/// Returns the format for an output's extension.
pub(crate) fn container(out: &Path) -> Result<Container, Error> {
    match out.extension().and_then(|extension| extension.to_str()) {
        Some("safetensors") => Ok(Container::Safetensors),
        Some("gguf") => Ok(Container::Gguf),
        Some("npy") => Ok(Container::Npy),
        _ => Err(Error::unsupported(
            out,
            "the name must end in .gguf, .safetensors or .npy, which chooses the format",
        )),
    }
}

/// Checks options that contradict the output's format or each other.
pub(crate) fn check(options: &QuantizeOptions, out: &Path) -> Result<Container, Error> {
    let container = container(out)?;
    let target = options.target;
    let home = match target {
        Target::Int8 | Target::Ternary | Target::BitnetHf | Target::Palette(_) => {
            Container::Safetensors
        }
        _ => Container::Gguf,
    };
    if container != home {
        let (found, home) = (container.name(), home.name());
        return Err(Error::unsupported(
            out,
            format!("{found} does not hold {target}; name the output *.{home}"),
        ));
    }
    together(options)?;
    Ok(container)
}

/// Checks options that contradict each other.
pub(crate) fn together(options: &QuantizeOptions) -> Result<(), Error> {
    let target = options.target;
    if let Target::Blocks(format) = target
        && !format.can_encode()
    {
        return Err(read_only(format));
    }
    let refuse = |option: &str| {
        Err(Error::options(format!(
            "{option} does not apply to {target}"
        )))
    };
    let ternary = match target {
        Target::Blocks(format) => format.is_ternary(),
        Target::Ternary | Target::Auto => true,
        Target::I2S | Target::Int8 | Target::BitnetHf | Target::Palette(_) => false,
    };
    let coded = matches!(target, Target::Int8 | Target::Ternary);
    // The rule of I2_S is not abs-max either.
    let own = |rule| rule == Rule::AbsMax && target != Target::I2S;
    if !ternary && options.rule.is_some_and(|rule| !own(rule)) {
        return refuse("a ternary rule");
    }
    if !ternary && options.scale != ScaleRule::Rule {
        return refuse("a ternary scale rule");
    }
    let palette = matches!(target, Target::Palette(_));
    match options.per {
        Some(_) if !coded && !palette => return refuse("a choice of groups"),
        Some(Per::Block(_)) if palette => return refuse("a group of part of a row"),
        Some(Per::Rows(_)) if !palette => return refuse("a group of several rows"),
        _ => {}
    }
    if !palette && target != Target::Auto && options.importance.is_some() {
        return refuse("an importance");
    }
    if target != Target::Int8 && options.grid != Scheme::Symmetric {
        return refuse("an affine grid");
    }
    match (target, options.bits) {
        (Target::Auto, None) => Err(Error::options("auto needs a number of bits per weight")),
        (Target::Auto, Some(bits)) if !(bits > 0.0 && bits.is_finite()) => Err(Error::options(
            format!("{bits} is not a number of bits per weight"),
        )),
        (Target::Auto, _) | (_, None) => Ok(()),
        (_, Some(_)) => refuse("a number of bits per weight"),
    }
}

/// Returns llama.cpp's or bitnet.cpp's number of a file whose tensors are mostly of a format; mixtures have none.
pub(crate) fn file_type(target: Target) -> Option<u32> {
    match target {
        Target::Blocks(format) => Some(format.gguf_file_type()),
        Target::I2S => Some(i2_s::FILE_TYPE),
        Target::Auto | Target::Int8 | Target::Ternary | Target::BitnetHf | Target::Palette(_) => {
            None
        }
    }
}
