//! Options for building a network.

use std::str::FromStr;

use tercet_core::linear::Layout;
use tercet_core::quant::{Rule, ScaleRule};

use tercet_core::quant::calibrate::RangeRule;

use crate::Error;

/// A layer to take from a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerOptions {
    /// Name of the tensors before `.weight` and `.bias`.
    pub name: String,
    /// True if outputs below 0 become 0; not for the last layer.
    pub relu: bool,
    /// The layout of its weights; `None` for [`BuildOptions::to`].
    pub to: Option<Layout>,
}

impl FromStr for LayerOptions {
    type Err = Error;

    /// Reads `NAME`, and after colons `relu` and the name of a layout, each at most once: `hidden:relu:tq2_0`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let mut layer = Self {
            name: text.to_owned(),
            relu: false,
            to: None,
        };
        // From the end, because names may contain colons.
        while let Some((name, word)) = layer.name.rsplit_once(':') {
            match Layout::from_name(word) {
                Some(layout) if layer.to.is_none() => layer.to = Some(layout),
                None if word == "relu" && !layer.relu => layer.relu = true,
                _ => break,
            }
            layer.name = name.to_owned();
        }
        if layer.name.is_empty() {
            return Err(Error::options(format!("`{text}` names no layer")));
        }
        Ok(layer)
    }
}

/// Options for building a network.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BuildOptions {
    /// The layers, first to last; at least one.
    pub layers: Vec<LayerOptions>,
    /// The layout of weights if a layer does not name one.
    pub to: Layout,
    /// The rule that chooses the ternary values that become ±1.
    pub rule: Rule,
    /// The source of a ternary scale.
    pub scale: ScaleRule,
    /// One scale per matrix instead of one per row; blocks have their own.
    pub per_tensor: bool,
    /// How the range of a layer's activations is chosen.
    pub range: RangeRule,
    /// The value of 1 in the input. `None`: the grid of int8 inputs with zero point 0; otherwise found as for
    /// activations.
    pub input_scale: Option<f32>,
}

impl BuildOptions {
    /// Returns the defaults: the optimal ternary rule, a scale per row, activations up to the largest seen.
    pub fn new(layers: Vec<LayerOptions>, to: Layout) -> Self {
        Self {
            layers,
            to,
            rule: Rule::Optimal,
            scale: ScaleRule::Rule,
            per_tensor: false,
            range: RangeRule::AbsMax,
            input_scale: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_a_name_and_words() {
        let parse = |text: &str| text.parse::<LayerOptions>().unwrap();
        let layer = |name: &str, relu, to| LayerOptions {
            name: name.into(),
            relu,
            to,
        };
        assert_eq!(parse("head"), layer("head", false, None));
        assert_eq!(parse("h:relu"), layer("h", true, None));
        assert_eq!(parse("h:int8"), layer("h", false, Some(Layout::Int8)));
        let both = layer("a:b", true, Some(Layout::TernaryLanes));
        assert_eq!(parse("a:b:relu:ternary_lanes"), both);
        assert_eq!(parse("a:b:ternary_lanes:relu"), both);
        // An unknown word, or a repeated one, is part of the name, which no tensor will have.
        assert_eq!(parse("h:rleu"), layer("h:rleu", false, None));
        assert_eq!(parse("h:relu:relu"), layer("h:relu", true, None));
        for text in ["", ":relu"] {
            assert!(text.parse::<LayerOptions>().is_err(), "{text}");
        }
    }
}
